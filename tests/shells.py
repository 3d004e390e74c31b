"""The kinds of sh that nodes have, as commands of this machine."""

import shlex
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tools.fetch import CannotFetch, fetch, program

SHELLS = ("dash", "bash", "busybox sh")


def shell_words(shell: str) -> list[str]:
    """The command for one of SHELLS; skips the test, loudly, where it cannot be had."""
    name, *rest = shell.split()
    if program(name) is None:
        try:
            fetch()
        except CannotFetch as why:
            pytest.skip(f"no {name}: {why}")
    return [str(program(name)), *rest]


@cache
def sh_folder(shell: str) -> str:
    """A folder whose `sh` is the shell: put before a PATH, it is what probes run in, too."""
    folder = Path(mkdtemp(prefix="sh-"))
    command = folder / "sh"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(shell_words(shell))} "$@"\n')
    command.chmod(0o755)
    folder.chmod(0o755)
    return str(folder)
