"""Options from text to their types, with words a user understands where that cannot be."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Le
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from clustercheck.check import Check, NoOptions, option
from clustercheck.options import as_text, instance, parse, unknown_option


@dataclass(frozen=True)
class Options:
    seconds: float = option(0.5, "a number", unit="s")
    share: float = option(90.0, "a share", unit="%")
    count: int = option(3, "a whole number")
    strict: bool = option(True, "yes or no")
    mode: Literal["enforcing", "permissive"] = option("permissive", "a word")
    path: str = option("", "any text")
    paths: tuple[str, ...] = option(("/tmp",), "several texts")
    modes: tuple[Literal["a", "b"], ...] = option((), "several words")
    pair: tuple[float, float] = option((1.0, 2.0), "two numbers", unit="s")
    limit: float | None = option(None, "a number or none", unit="s")
    positive: Annotated[int, Field(gt=0)] = option(1, "above nought")
    percent: Annotated[float, Ge(0), Le(100)] = option(5.0, "a share", unit="%")
    above: tuple[Annotated[int, Gt(0)], ...] = option((1,), "above nought")


CHECK = Check(title="", options=Options(), judge=lambda facts, options: [], codes={})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seconds", "2", 2.0),
        ("seconds", " 2.5 s ", 2.5),
        ("seconds", "1e-3s", 0.001),
        ("seconds", ".5", 0.5),
        ("share", "85%", 85.0),
        ("share", "85 %", 85.0),
        ("count", "-4", -4),
        ("count", "50%", 50),
        ("strict", "no", False),
        ("strict", "On", True),
        ("strict", "0", False),
        ("mode", "enforcing", "enforcing"),
        ("path", "/a, b", "/a, b"),
        ("paths", "/tmp, /var/tmp ,/scratch", ("/tmp", "/var/tmp", "/scratch")),
        ("paths", "", ()),
        ("modes", "b,a", ("b", "a")),
        ("pair", "3 s, 4", (3.0, 4.0)),
        ("limit", "none", None),
        ("limit", "7", 7.0),
        ("positive", "1", 1),
        ("percent", "0", 0.0),
        ("percent", "100%", 100.0),
        ("above", "1, 2", (1, 2)),
    ],
)
def test_value(name: str, text: str, value: object) -> None:
    parsed = parse(CHECK, name, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("seconds", "2 ms", "'2 ms' is not a number of s; write one such as 0.5"),
        ("seconds", "85%", "'85%' is not a number of s; write one such as 0.5"),
        ("seconds", "nan", "'nan' is not a number of s; write one such as 0.5"),
        ("seconds", "inf", "'inf' is not a number of s; write one such as 0.5"),
        ("seconds", "1e999", "'1e999' is not a number of s; write one such as 0.5"),
        ("seconds", "1_000", "'1_000' is not a number of s; write one such as 0.5"),
        ("seconds", "٣", "'٣' is not a number of s; write one such as 0.5"),
        ("seconds", "", "'' is not a number of s; write one such as 0.5"),
        ("count", "2.0", "'2.0' is not a whole number; write one such as 3"),
        ("count", "9" * 5000, f"'{'9' * 59}…' is not a whole number; write one such as 3"),
        ("strict", "maybe", "'maybe' is neither yes nor no; write yes or no"),
        ("strict", "", "'' is neither yes nor no; write yes or no"),
        (
            "mode",
            "permisive",
            "'permisive' is not one of enforcing, permissive; did you mean 'permissive'?",
        ),
        ("modes", "a,c", "'c' is not one of a, b"),
        ("paths", "/tmp,,/x", "'/tmp,,/x' has an empty place between commas"),
        ("pair", "1, x", "'x' is not a number of s; write one such as 1, 2"),
        ("pair", "1", "'1' is not 2 values with commas between; write such as 1, 2"),
        ("limit", "x", "'x' is not a number of s"),
        ("percent", "-0.1", "'-0.1' should be greater than or equal to 0; write one such as 5"),
        ("percent", "100.1", "'100.1' should be less than or equal to 100; write one such as 5"),
        ("above", "3, 0", "'3, 0' should be greater than 0; write one such as 1"),
        ("positive", "0", "'0' should be greater than 0; write one such as 1"),
    ],
)
def test_fault(name: str, text: str, expected: str) -> None:
    with pytest.raises(ValueError) as error:
        parse(CHECK, name, text)
    assert str(error.value) == expected


def test_what_is_not_set_keeps_the_checks_own_value() -> None:
    check = Check(title="", options=Options(count=9), judge=lambda facts, options: [], codes={})
    assert instance(check, {"seconds": "2"}) == Options(count=9, seconds=2.0)
    assert instance(check, {}) is check.options


def test_an_unknown_option() -> None:
    none = Check(title="", options=NoOptions(), judge=lambda facts, options: [], codes={})
    assert unknown_option("x", CHECK, "count") is None
    assert unknown_option("x", none, "a") == "check x has no options, so not 'a' either"


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "seconds": st.floats(allow_nan=False, allow_infinity=False),
    "count": st.integers(-(10**17), 10**17),
    "strict": st.booleans(),
    "mode": st.sampled_from(["enforcing", "permissive"]),
    "paths": st.lists(st.from_regex(r"\A[a-z/]+\Z")).map(tuple),
    "pair": st.tuples(st.floats(0, 9), st.floats(0, 9)),
    "limit": st.none() | st.floats(0, 9),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_shown_can_be_written(name: str) -> None:
    @given(VALUES[name])
    def shown_and_written(value: Any) -> None:
        assert parse(CHECK, name, as_text(value)) == value

    shown_and_written()


@given(st.text())
def test_no_text_is_a_number_that_is_none(text: str) -> None:
    try:
        value = parse(CHECK, "seconds", text)
    except ValueError:
        return
    assert isinstance(value, float) and math.isfinite(value)
