"""Runs of which only that is asked that does not hold any more, over this machine's own sh."""

import json
import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from clustercheck import cached_run, inventory, slurm_nodes
from clustercheck.answer import Answer
from clustercheck.cache import Cache
from clustercheck.cached_run import Asking, Outcome, StillAsking
from clustercheck.check import AnyCheck, Facts, Finding, NoOptions, warn
from clustercheck.judging import OptionsOf
from clustercheck.planning import Chosen
from clustercheck.report import Report
from clustercheck.run import Watch, run
from clustercheck.slurm_nodes import SlurmNode
from clustercheck.transport import Transport
from clustercheck.transport.here import Here
from tests.made_up_run import REMEDY, Unwell, check, plan, told

KEY = "0" * 32
BOOT = 1_700_000_000.0


def slurm_node(name: str, **about: Any) -> SlurmNode:
    idle = SlurmNode(name, name, name, ("IDLE",), "", "", (), BOOT, BOOT + 9, BOOT + 99)
    return idle._replace(**about)


@dataclass
class Site:
    """Nodes that say what is in `words`, by check; Slurm's controller; and a clock.

    asked: what was asked in each run, by node.
    """

    folder: Path
    checks: dict[str, AnyCheck]
    count: int = 3
    with_slurm: bool = True
    transport: Transport = field(default_factory=Here)
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    prepared: int = 0
    more: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slurm = slurm_nodes.Answer()
        if self.with_slurm:
            nodes = [slurm_node(f"n{i}") for i in range(self.count)]
            self.slurm = slurm_nodes.Answer(tuple(nodes))

    def say(self, check: str, word: str) -> None:
        (self.folder / check).write_text(word)

    def slurm_says(self, name: str, **about: Any) -> None:
        nodes = [n._replace(**about) if n.name == name else n for n in self.slurm.nodes]
        self.slurm = slurm_nodes.Answer(tuple(nodes))

    def asking(self) -> Asking:
        self.prepared += 1
        whole = plan(self.checks, self.count, transport=self.transport)
        chosen = Chosen(inventory.empty(self.checks), whole.nodes, self.checks)

        def ask(
            chosen: Chosen,
            watch: Watch,
            options_of: OptionsOf,
            only: Mapping[str, Collection[str]],
            known: Mapping[str, Answer],
        ) -> Report:
            if only:
                self.asked.append({node: list(checks) for node, checks in only.items()})
            part = replace(
                whole,
                nodes=chosen.nodes,
                checks=chosen.checks,
                options_of=options_of,
                only=only,
                known=known,
            )
            return run(part, watch)

        return Asking(chosen, whole.options_of, ask, more=self.more)

    def gate(self, max_age: float = 900, wait: float = 5, key: str = KEY) -> Outcome:
        self.cache = Cache(self.folder / "cache")
        return cached_run.results(
            self.cache, key, max_age, wait, self.asking, slurm=lambda: self.slurm
        )


def word_of(folder: Path, name: str) -> str:
    """A probe that says what is in a file, and yes where there is none."""
    return f'said=yes; [ -r {folder}/{name} ] && read -r said <{folder}/{name}; fact said "$said"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def site(folder: Path) -> Site:
    kinds = {"boots": "boot", "times": "time", "uses": "use"}
    checks = {name: check(word_of(folder, name), stale=kind) for name, kind in kinds.items()}
    return Site(folder, checks)


class Later:
    """A clock that can be put forward and back: all that asks for the time sees it."""

    def __init__(self) -> None:
        self.by = 0.0
        self._real = time.time

    def __call__(self) -> float:
        return self._real() + self.by


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Later:
    later = Later()
    monkeypatch.setattr(time, "time", later)
    return later


ALL = ["boots", "times", "uses"]
YES = [f"pass {name}.found: it said yes" for name in ALL]


def test_the_second_call_asks_nobody_and_loads_nothing(site: Site) -> None:
    site.more = {"profile": "benchmark"}
    first, second = site.gate(), site.gate()
    assert told(first.kept.report) == {"n0": YES, "n1": YES, "n2": YES}
    assert told(second.kept.report) == told(first.kept.report)
    assert first.asked == {f"n{i}": tuple(ALL) for i in range(3)} and second.asked == {}
    assert second.kept.report.started == first.kept.report.started
    assert second.kept.more == {"profile": "benchmark"}
    assert len(site.asked) == site.prepared == 1
    assert site.cache.notes == []


def test_what_is_older_than_is_wanted_is_asked_alone(site: Site, clock: Later) -> None:
    site.gate()
    clock.by = 1000
    site.say("times", "no")
    site.say("boots", "no")  # nobody asks
    outcome = site.gate()
    assert site.asked[1:] == [{f"n{i}": ["times"] for i in range(3)}]
    expected = [YES[0], "fail times.found: it said no, should say yes", YES[2]]
    assert told(outcome.kept.report) == dict.fromkeys(("n0", "n1", "n2"), expected)


def test_a_node_that_has_booted_is_asked_all_again_and_no_other(site: Site) -> None:
    site.gate()
    site.slurm_says("n1", boot=BOOT + 5000, slurmd=BOOT + 5009)
    site.gate()
    assert site.asked[1:] == [{"n1": ALL}]
    site.gate()
    assert len(site.asked) == 2


def test_a_node_that_was_used_is_asked_what_use_changes(site: Site, clock: Later) -> None:
    site.gate()
    clock.by = 60
    site.slurm_says("n2", busy=clock() - 30)
    site.gate()
    assert site.asked[1:] == [{"n2": ["uses"]}]
    site.slurm_says("n0", states=("MIXED",))
    clock.by = 120
    site.gate()
    assert site.asked[2:] == [{"n0": ["uses"]}]


def test_a_failure_is_looked_at_again_soon(site: Site, clock: Later) -> None:
    site.say("boots", "no")
    assert told(site.gate().kept.report)["n0"][0].startswith("fail boots.found")
    site.say("boots", "yes")
    clock.by = 100
    assert told(site.gate().kept.report)["n0"][0].startswith("fail boots.found")
    clock.by = 130
    assert told(site.gate().kept.report)["n0"] == YES
    assert site.asked[1:] == [{f"n{i}": ["boots"] for i in range(3)}]


def test_a_node_that_cannot_be_reached_is_tried_again_soon(site: Site, clock: Later) -> None:
    site.transport, site.count = Unwell(), 2
    refused = ["unknown access.refused: nothing listens on port 22 of 10.0.0.1"]
    assert told(site.gate().kept.report) == {"n0": YES, "n1": refused}
    site.transport = Here()
    clock.by = 60
    assert told(site.gate().kept.report)["n1"] == refused
    clock.by = 150
    assert told(site.gate().kept.report) == {"n0": YES, "n1": YES}
    assert site.asked[1:] == [{"n1": ALL}]


def test_a_node_that_went_away_is_not_what_it_was_before(site: Site, clock: Later) -> None:
    site.count = 2
    site.gate()
    clock.by, site.transport = 1000, Unwell()
    outcome = site.gate()
    assert told(outcome.kept.report) == {
        "n0": YES,
        "n1": ["unknown access.refused: nothing listens on port 22 of 10.0.0.1"],
    }
    assert site.asked[1:] == [{"n0": ["times"], "n1": ["times"]}]


def test_nodes_are_compared_with_what_the_others_said_before(folder: Path, clock: Later) -> None:
    def compare(
        facts: Mapping[str, Facts], options: Mapping[str, NoOptions]
    ) -> Iterable[tuple[str, Finding]]:
        for node, its in facts.items():
            others = [told["said"] for name, told in facts.items() if name != node]
            if others and its["said"] not in others:
                yield node, warn("found", f"{len(others)} others differ", REMEDY)

    site = Site(folder, {"c": check(word_of(folder, "c"), compare=compare, stale="boot")})
    site.gate()
    site.say("c", "no")
    site.slurm_says("n1", boot=BOOT + 5000)
    outcome = site.gate()
    assert site.asked[1:] == [{"n1": ["c"]}]
    assert told(outcome.kept.report)["n1"] == [
        "fail c.found: it said no, should say yes",
        "warn c.found: 2 others differ",
    ]
    assert told(site.gate().kept.report) == told(outcome.kept.report)


def test_fields_are_kept_too(folder: Path) -> None:
    site = Site(folder, {"c": check(fields=lambda facts: {"said": facts["said"]})})
    expected = {"c": dict.fromkeys(("n0", "n1", "n2"), {"said": "yes"})}
    assert site.gate().kept.fields == expected
    assert site.gate().kept.fields == expected
    site.slurm_says("n1", boot=BOOT + 5000)
    assert site.gate().kept.fields == expected
    assert len(site.asked) == 2
    site.transport = Unwell()
    site.slurm_says("n1", boot=BOOT + 9000)
    assert sorted(site.gate().kept.fields["c"]) == ["n0", "n2"], "nothing is known of it now"


def test_fields_that_cannot_be_made_are_not_there(folder: Path) -> None:
    site = Site(folder, {"c": check(fields=lambda facts: {"said": facts["other"]})})
    assert site.gate().kept.fields == site.gate().kept.fields == {}


def test_without_slurm_a_small_probe_says_whether_a_node_is_as_it_was(
    site: Site, clock: Later
) -> None:
    site.slurm = slurm_nodes.Answer()
    site.gate()
    assert site.asked == [{f"n{i}": [*ALL, "node_use"] for i in range(3)}]
    site.gate()  # a moment later: they were seen just now
    assert len(site.asked) == 1
    clock.by = 300
    outcome = site.gate()
    assert site.asked[1:] == [{f"n{i}": ["node_use"] for i in range(3)}]
    assert outcome.asked == {} and told(outcome.kept.report)["n0"] == YES
    assert outcome.kept.report.checks == ALL


def test_without_slurm_a_node_that_booted_is_asked_again(
    site: Site, clock: Later, folder: Path
) -> None:
    site.slurm = slurm_nodes.Answer()
    site.gate()
    cache = Cache(folder / "cache")
    kept = cache.answer("n1")
    assert kept is not None
    other = {c: s._replace(state=s.state._replace(boot_id="b")) for c, s in kept.stamps.items()}
    cache.keep(replace(kept, stamps=other))
    clock.by = 300
    site.gate()
    assert site.asked[2:] == [{"n1": [*ALL, "node_use"]}]


def test_a_node_that_does_not_answer_the_small_probe_is_not_waited_for_twice(
    site: Site, clock: Later
) -> None:
    site.slurm, site.count = slurm_nodes.Answer(), 2
    site.gate()
    clock.by, site.transport = 300, Unwell()
    outcome = site.gate()
    assert site.asked[1:] == [{"n0": ["node_use"], "n1": ["node_use"]}]
    assert told(outcome.kept.report)["n1"] == [
        "unknown access.refused: nothing listens on port 22 of 10.0.0.1"
    ]
    assert told(outcome.kept.report)["n0"] == YES


def test_when_the_controller_is_down_nodes_are_asked_themselves(site: Site, clock: Later) -> None:
    site.gate()
    clock.by = 300
    down = "Slurm's controller did not answer within 10 s"
    site.slurm = slurm_nodes.Answer(trouble=down)
    outcome = site.gate()
    assert site.asked[1:] == [
        {f"n{i}": ["node_use"] for i in range(3)},  # the boot is the same
        {f"n{i}": ["uses", "node_use"] for i in range(3)},  # what they worked is new to us
    ]
    assert outcome.slurm.trouble == down
    assert site.cache.notes == [
        f"Slurm does not say when nodes booted ({down}): they are asked themselves"
    ]


def test_a_node_that_slurm_has_never_seen_is_asked_itself(site: Site, clock: Later) -> None:
    site.slurm_says("n1", boot=0, slurmd=0, busy=0, states=("UNKNOWN",))
    site.gate()
    clock.by = 300
    assert site.gate().asked == {}
    assert site.asked == [
        {"n0": ALL, "n1": [*ALL, "node_use"], "n2": ALL},
        {"n1": ["node_use"]},
    ]


def test_what_is_too_long_to_be_kept_is_asked_each_time(folder: Path) -> None:
    long = check('fact said yes; x=$(printf "%0100000d" 1); fact a "$x"; fact b "$x"; fact c "$x"')
    site = Site(folder, {"long": long, "short": check()}, count=1)
    yes = ["pass long.found: it said yes", "pass short.found: it said yes"]
    for _ in range(2):
        assert told(site.gate().kept.report) == {"n0": yes}
    assert site.asked == [{"n0": ["long", "short"]}, {"n0": ["long"]}]


def test_a_drained_node_is_told_though_all_that_was_kept_is_well(site: Site) -> None:
    site.gate()
    site.slurm_says("n1", states=("IDLE", "DRAIN"), reason="bad disk", reason_by="root")
    outcome = site.gate()
    assert outcome.asked == {}
    assert {name: node.trouble for name, node in outcome.slurm_of.items()} == {
        "n0": "",
        "n1": "drained: bad disk, by root",
        "n2": "",
    }


def test_a_clock_that_was_set_back_makes_all_stale(site: Site, clock: Later) -> None:
    clock.by = 600
    site.gate()
    clock.by = 0
    outcome = site.gate()
    assert outcome.asked == {f"n{i}": tuple(ALL) for i in range(3)}
    assert site.cache.notes == [
        "the clock was set back since results were kept: they are asked anew"
    ]
    assert site.gate().asked == {} and site.cache.notes == []


def test_other_options_are_another_question_to_the_node(site: Site) -> None:
    @dataclass(frozen=True)
    class Options:
        most: int = 1

    site.gate()
    site.checks["times"] = replace(site.checks["times"], options=Options(2))
    outcome = site.gate(key="1" * 32)
    assert outcome.asked == {f"n{i}": ("times",) for i in range(3)}


def test_nodes_share_their_answers_between_questions(site: Site) -> None:
    site.gate()
    whole = dict(site.checks)
    site.count, site.checks = 2, {"times": whole["times"]}
    assert site.gate(key="1" * 32).asked == {}
    site.count, site.checks = 3, {**whole, "more": check(stale="boot")}
    assert site.gate(key="2" * 32).asked == {f"n{i}": ("more",) for i in range(3)}
    site.checks = whole
    site.slurm_says("n1", boot=BOOT + 5000)
    site.gate()
    site.checks = {"more": check(stale="boot")}
    assert site.gate(key="3" * 32).asked == {"n1": ("more",)}


def test_peers_of_another_set_are_other_peers(folder: Path) -> None:
    probe = 'fact said yes; for peer in $PEERS; do fact "peer@$peer" 1; done'
    site = Site(folder, {"pairs": check(probe, probe_peers=True), "alone": check()})
    site.gate()
    site.count = 2
    assert site.gate(key="1" * 32).asked == {"n0": ("pairs",), "n1": ("pairs",)}


def test_nothing_is_kept_where_no_age_is_allowed(site: Site) -> None:
    site.gate(max_age=0)
    site.gate(max_age=0)
    assert len(site.asked) == 2


def test_a_damaged_file_is_left_aside_and_made_anew(site: Site, folder: Path) -> None:
    site.gate()
    (file,) = (folder / "cache/questions").glob("*.json")
    file.write_bytes(file.read_bytes()[:-100])
    outcome = site.gate()
    assert outcome.asked == {}, "the nodes' own answers are whole"
    assert site.cache.notes == [f"{str(file)!r} is damaged; it is left aside, and written anew"]
    site.gate()
    assert site.cache.notes == [] and len(site.asked) == 1


def test_with_a_folder_that_cannot_be_used_all_is_asked(site: Site, folder: Path) -> None:
    (folder / "cache").write_text("a file")
    assert site.gate().asked == site.gate().asked == {f"n{i}": tuple(ALL) for i in range(3)}
    assert site.cache.notes == [
        f"results are not kept: the folder {str(folder / 'cache')!r} cannot be used: File exists"
    ]


def test_who_asks_the_same_is_waited_for_and_named(site: Site, folder: Path) -> None:
    cache = Cache(folder / "cache")
    lock = cache.lock(KEY)
    assert lock.try_to_get()
    try:
        words = f"process {os.getpid()} on {os.uname().nodename} asks the same nodes"
        with pytest.raises(StillAsking, match=words):
            site.gate(wait=0.05)
    finally:
        lock.release()
    assert site.gate().asked and not list((folder / "cache/questions").glob("*.lock"))


def test_a_run_that_was_interrupted_is_not_taken_for_a_whole_one(site: Site) -> None:
    asking = site.asking()

    def interrupted(chosen: Chosen, watch: Watch, *rest: Any) -> Any:
        keep = watch.ended

        def ended(answer: Answer, result: Any) -> None:
            keep(answer, result)
            raise KeyboardInterrupt

        return asking.ask(chosen, replace(watch, ended=ended), *rest)

    cut: Any = interrupted
    whole = site.asking
    site.asking = lambda: replace(asking, ask=cut)  # type: ignore[method-assign]
    outcome = site.gate()
    assert outcome.kept.report.stopped == "interrupted"
    site.asking = whole  # type: ignore[method-assign]
    again = site.gate().asked
    assert len(again) == 2, "of the one node that had answered nothing is lost"


def test_what_is_kept_is_small(folder: Path) -> None:
    site = Site(folder, {f"c{i}": check(stale="boot") for i in range(10)}, count=16)
    site.gate()
    (file,) = (folder / "cache/questions").glob("*.json")
    content = file.read_bytes().partition(b"\n")[2]
    assert len(json.loads(content)["findings"]) == 1
    assert len(content) < 16 * 150
