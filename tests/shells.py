"""The kinds of sh that nodes have, as commands of this machine."""

import pytest

from tools.fetch import CannotFetch, fetch, program

SHELLS = ["dash", "bash", "busybox"]


def shell_command(shell: str) -> list[str]:
    """The words that run the shell as sh; skips, loudly, where it cannot be had."""
    path = program(shell)
    if path is None:
        try:
            fetch()
        except CannotFetch as why:
            pytest.skip(f"no {shell}: {why}")
        path = program(shell)
    assert path is not None
    return [str(path), "sh"] if shell == "busybox" else [str(path)]
