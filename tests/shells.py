"""The kinds of sh that nodes have, as commands of this machine."""

import atexit
import shlex
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tools.fetch import TOOLS, CannotFetch, fetch, program

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
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, *words = shell_words(shell)
    if Path(path).resolve().is_relative_to(TOOLS):  # where a made-up login may not be let in
        # busybox is one by the first letters of its name; by its whole name probes would find it
        path = str(shutil.copy2(Path(path).resolve(), folder / f"{Path(path).name}-copy"))
    command = folder / "sh"
    command.write_text(f'#!/bin/sh\nexec {shlex.join([path, *words])} "$@"\n')
    command.chmod(0o755)
    folder.chmod(0o755)
    return str(folder)
