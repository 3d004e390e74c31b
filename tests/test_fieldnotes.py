"""The summaries of the field notes."""

import pytest

from clustercheck.fieldnotes import sections


def test_every_section_is_there_in_order() -> None:
    numbers = [number.removeprefix("§") for number in sections()]
    assert numbers == sorted(numbers)
    assert {"4.1", *(f"4.1.{item}" for item in range(1, 6)), "5.5"} <= set(numbers)
    assert len(numbers) == 21


@pytest.mark.parametrize("number", sections())
def test_a_summary_is_whole_sentences(number: str) -> None:
    text = sections()[number]
    assert text[0].isupper() or text.startswith("slurm.conf")
    assert text.endswith(".")


def test_a_summary_says_whether_it_holds() -> None:
    assert "Too strict: Slurm runs under Enforcing" in sections()["§4.1.5"]
    assert "§9" not in sections()
