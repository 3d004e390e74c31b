"""Made-up reports, with all that nodes may put into text."""

import string
from datetime import datetime, timedelta, timezone

from hypothesis import strategies as st

from clustercheck.check import Finding, Quantity, Remedy, Status
from clustercheck.report import NodeResult, Report

# Nasty in one way or another, beside hypothesis's own.
HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "abc\u202egnp.exe",
    "two\nlines\r\nor\u2028three\u2029",
    "\x00\x08\x7f",
    "\udc80\udcff",
    "\u200b\u200d\ufeff",
    "a | b `c` <script>x</script> [d](http://e) ![f](g) *h* _i_ ~j~ &amp; # k",
    "- 1. x",
    "1. x",
    "+ x",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    " =1",
    "\uff1d1",
    "节点の名前が長い 한국어",
    "e\u0301\u0301",
    'say "no", he said; \\ \'',
    "word" * 40,
    "",
]

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec=None), max_size=60),
    st.text(string.ascii_letters + " ", min_size=1, max_size=300),
)
names = st.one_of(
    st.from_regex(r"(gpu|r[0-9]n|login-)[0-9]{1,3}(\.example)?", fullmatch=True),
    st.from_regex(r"10\.0\.[0-9]\.[0-9]{1,2}", fullmatch=True),
    st.sampled_from(["login", "fe80::1", "节点01", "::1"]),
)
words = st.sampled_from(["ntp", "selinux", "tmp", "path_mtu"])
remedies = st.builds(Remedy, texts, st.sampled_from(["", "§4.1.1", "\x1b[2J"]), st.booleans())
quantities = st.builds(
    Quantity, st.floats(), st.sampled_from(["s", "%", "MB/s", "", "\x1b"]), st.booleans()
)


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    status = draw(st.sampled_from(Status))
    need = status in (Status.WARN, Status.FAIL)
    return Finding(
        status,
        draw(st.sampled_from(["offset", "mode", "space"])),
        draw(texts),
        draw(remedies if need else st.none()),
        draw(st.one_of(st.just(""), names, texts)),
        draw(st.one_of(st.none(), quantities)),
    )


@st.composite
def reports(draw: st.DrawFn) -> Report:
    nodes = {
        node: NodeResult(
            node,
            draw(st.dictionaries(words, st.lists(findings(), max_size=3), max_size=3)),
            draw(st.one_of(st.none(), st.floats(0, 1e6))),
        )
        for node in draw(st.lists(st.one_of(names, texts.filter(bool)), unique=True, max_size=8))
    }
    return Report(
        started=datetime(
            2026, 3, 1, 2, 30, tzinfo=timezone(timedelta(hours=draw(st.integers(-12, 14))))
        ),
        seconds=draw(st.floats(0, 1e6)),
        checks=draw(st.lists(words, unique=True)),
        nodes=nodes,
        stopped=draw(st.one_of(st.just(""), texts)),
        notes=draw(st.lists(texts, max_size=3)),
    )
