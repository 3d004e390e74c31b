"""What a broken or hostile node tells crashes no check, costs it no time, and passes nowhere.

All checks are held to it; `full_facts` has for each what the made-up answers start from.
"""

import contextlib
import re
import signal
from collections.abc import Iterator, Sequence
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustercheck import verdict
from clustercheck.check import Facts, Finding, Status
from clustercheck.facts import Told
from tests.full_facts import FULL
from tests.made_up import CHECKS

PEERS = ["node02", "node03"]
EVERY = pytest.mark.parametrize("name", [name for name, check in CHECKS.items() if check.probe])

DIGITS = "9" * 5000  # more than int() takes
WORDS = [
    *("", "-", "0", "-0", "-1", "+5", "1_000", "1e999", "-1e999", "nan", "inf", "0x10", "1.5"),
    *("٣", "²", "½", "１２", DIGITS, f"{DIGITS}.0", "1" + "0" * 400, "4294967295"),
    *("yes", "no", "late", "absent", "unreadable", "read", "hung", "124", "127", "255"),
    *("[N/A]", "ERR!", "[Unknown Error]", "[GPU is lost]", "N/A", "Not Found", "\x1b[31m", "\x00"),
    *("::", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "10.0.0.256", "127.0.0.1", "@", "a@b", "%"),
    *("\u2028", "\x85", "\x0c", "\xa0", "\\x80", "..", "/", "{", "(", "*", "[", "a" * 3000),
]


def asked(facts: dict[str, str]) -> list[str]:
    """The facts that come from the node; those of its clock are the frame's own numbers."""
    return [key for key in facts if not key.startswith(("clock.", "here."))]


class TooSlow(BaseException):
    """The judge took more time than it is given."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TooSlow after so much time of the processor: other programs do not count."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def findings_of(name: str, facts: dict[str, str]) -> list[Finding]:
    told = Told(Facts(facts), whole=True, status="0")
    return verdict.judge(CHECKS[name], told, CHECKS[name].options, peers=PEERS)


def everything(name: str, facts: dict[str, str], others: Sequence[dict[str, str]]) -> list[Finding]:
    """What the check finds on a node, and between it and others; never its own crash."""
    check = CHECKS[name]
    found = findings_of(name, facts)
    nodes = {f"node{number:02}": Facts(of) for number, of in enumerate([facts, *others], 1)}
    options = dict.fromkeys(nodes, check.options)
    if check.follow:
        assert set(check.follow(nodes, options)) <= set(nodes)
    if check.shared:
        assert isinstance(check.shared(nodes["node01"], check.options), str)
    if check.compare:
        compared = list(check.compare(nodes, options))
        # that another node passes, whose facts are whole, is right
        found += [f for node, f in compared if node == "node01" or f.status is not Status.PASS]
    assert "crashed" not in {f.code for f in found}, found
    return found


@EVERY
def test_full_facts_are_such_that_the_check_knows_them(name: str) -> None:
    for facts in FULL[name]:
        found = findings_of(name, facts)
        assert "not_answered" not in {f.code for f in found if not f.peer}, found
        assert len(found) > 1 or found[0].status not in (Status.UNKNOWN, Status.SKIP)


@st.composite
def damaged(draw: st.DrawFn, name: str) -> dict[str, str]:
    """A full answer with some facts missing, exchanged, or with other words in them."""
    facts = dict(draw(st.sampled_from(FULL[name])))
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.sampled_from(asked(facts)))
        text = facts[key]
        way = draw(st.sampled_from(("gone", "any", "word", "other", "word in it", "lines", "key")))
        if way == "gone" and len(asked(facts)) > 1:
            del facts[key]
        elif way == "any":
            facts[key] = draw(st.text(max_size=40))
        elif way == "word":
            facts[key] = draw(st.sampled_from(WORDS))
        elif way == "other":
            facts[key] = facts[draw(st.sampled_from(sorted(facts)))]
        elif way == "lines":
            lines = text.split("\n")
            facts[key] = "\n".join(draw(st.lists(st.sampled_from(lines), max_size=6)))
        elif way == "key":
            facts[key.partition("@")[0] + "@" + draw(st.sampled_from(WORDS))] = text
        else:
            parts = re.split(r"([\s,;:=|./()<>]+)", text)
            place = draw(st.integers(0, len(parts) - 1))
            parts[place] = draw(st.sampled_from(WORDS) | st.text(max_size=5))
            facts[key] = "".join(parts)
    return facts


@EVERY
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_fact_crashes_it(name: str, data: st.DataObject) -> None:
    facts = data.draw(damaged(name))
    others = data.draw(st.lists(damaged(name), max_size=2))
    everything(name, facts, [*others, FULL[name][0]])


@EVERY
def test_no_word_in_place_of_a_fact_or_of_a_word_in_it_crashes_it(name: str) -> None:
    for facts in FULL[name]:
        for key in asked(facts):
            text = facts[key]
            parts = re.split(r"([\s,;:=|./()<>]+)", text)
            for word in WORDS:
                everything(name, {**facts, key: word}, [facts])
            for place in range(0, min(len(parts), 60), 4):
                for word in ("", "-", "²", "nan", DIGITS):
                    changed = "".join([*parts[:place], word, *parts[place + 1 :]])
                    everything(name, {**facts, key: changed}, [facts])


@EVERY
@pytest.mark.parametrize("word", ["", " ", "§", "nan", "1e999", "-", DIGITS, "[N/A]", "\x00"])
def test_what_says_nothing_passes_nowhere(name: str, word: str) -> None:
    for facts in FULL[name]:
        found = everything(name, dict.fromkeys(asked(facts), word), [facts])
        assert Status.PASS not in {f.status for f in found}, found


# Each shape fills a fact with far more than an honest probe tells: what takes time by the square of
# it shows, and what does not is done soon. (The prelude lets 512 KiB pass.)
MOST = 128 * 1024
SHAPES = {
    "letters": "x",
    "digits": "1",
    "numbers": "1.",
    "blanks": " ",
    "lines": "\n",
    "commas": ",",
    "bars": "|",
    "slashes": "/",
    "elements": "<pid>",
    "brackets": "[",
    "colons": ":",
    "memory": "MiB / ",
    "kubepods": "kubepods",
    "row": "| 0 ",
    "spaced": "| 0" + " " * 997,
}


@EVERY
@pytest.mark.parametrize("shape", SHAPES)
def test_no_amount_of_text_in_a_fact_takes_long(name: str, shape: str) -> None:
    much = SHAPES[shape] * (MOST // len(SHAPES[shape]))
    for facts in FULL[name]:
        for key in asked(facts):
            head = facts[key].split(" ")[0]
            for whole in (much, f"{facts[key]} {much}", f"{facts[key]}\n{head} {much}"):
                with at_most(2):
                    everything(name, {**facts, key: whole}, [facts])


@EVERY
def test_many_lines_of_a_fact_do_not_take_long(name: str) -> None:
    for facts in FULL[name]:
        for key in asked(facts):
            lines = (facts[key] + "\n") * (MOST // (len(facts[key]) + 1))
            with at_most(2):
                everything(name, {**facts, key: lines}, [facts])
