"""No bytes make what reads foreign text fail in any other way than by what a user is told."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.targets import TARGETS, seeds
from tests.test_hostile_facts import WORDS, at_most

FOUND = Path(__file__).parents[1] / "data/hostile"
PIECES = [
    *(word.encode(errors="surrogatepass") for word in WORDS if len(word) < 100),
    *(b"\n", b"\r\n", b"\0", b"\xff\xfe", b"\xed\xb2\x80", b" ", b"\t", b'"', b"'", b"=", b"#"),
    *(b"@m ", b"@m - ", b"@m tmp ", b"! whole\n", b"! end ", b"= ", b": ", b"+ ", b"[", b"]", b"%"),
    *(b"Match ", b"Host ", b"Include ", b"|1|", b"@revoked ", b"{", b"}", b"[[[[[[", b"null"),
]


@st.composite
def worse(draw: st.DrawFn, target: str) -> bytes:
    """A seed with pieces cut out, doubled, exchanged and put in."""
    data = draw(st.sampled_from(seeds(target)))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        way = draw(st.sampled_from(("cut", "double", "put in", "exchange", "any")))
        if way == "cut":
            data = data[:start] + data[end:]
        elif way == "double":
            data = data[:end] + data[start:]
        elif way == "put in":
            data = data[:start] + draw(st.sampled_from(PIECES)) + data[start:]
        elif way == "exchange":
            data = data[:start] + draw(st.sampled_from(PIECES)) + data[end:]
        else:
            data = data[:start] + draw(st.binary(max_size=8)) + data[end:]
    return data


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_bytes_are_a_fault_of_ours(target: str, data: st.DataObject) -> None:
    with at_most(10):
        TARGETS[target](data.draw(worse(target)))


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_fuzzing_starts_from_is_understood(target: str) -> None:
    for data in seeds(target):
        TARGETS[target](data)


@pytest.mark.parametrize("path", sorted(FOUND.glob("*/*")), ids=lambda path: path.name)
def test_what_was_a_fault_once(path: Path) -> None:
    """Each file is one input, in a folder named as what reads it."""
    with at_most(10):
        TARGETS[path.parent.name](path.read_bytes())
