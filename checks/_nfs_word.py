"""Numbers and lines of what a node told, which may be anything and of any length."""

import re


def whole(text: str) -> int | None:
    """A number without sign or point; None for all else."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def real(text: str) -> float | None:
    """A number without sign; None for all else."""
    number = re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?(e-[0-9]{1,2})?", text)
    return float(text) if number else None


def lines_of(text: str) -> list[str]:
    """The lines, as many as the probe sends at most."""
    return text[:200_000].split("\n")[:500]
