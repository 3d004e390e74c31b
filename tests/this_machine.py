"""What the real probe of a check tells of this machine, by the real script under any shell."""

import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import pytest

from clustercheck import facts, script
from tests.made_up import CHECKS, options_of
from tools.fetch import CannotFetch, fetch, program

SHELLS = ("dash", "bash", "busybox sh")


def shell_words(shell: str) -> list[str]:
    """The command for one of SHELLS; skips the test where it cannot be had."""
    name, *rest = shell.split()
    try:
        fetch()
    except CannotFetch as why:
        if not program(name):
            pytest.skip(str(why))
    return [str(program(name)), *rest]


def told_here(
    name: str, shell: str = "sh", *, before: Sequence[str] = (), **changed: Any
) -> facts.Told:
    """What a check's probe tells of this machine.

    before: words that start the shell somewhere else (`unshare -m …`).
    """
    words = shell_words(shell) if shell in SHELLS else shell.split()
    frame = script.Frame()
    asked = [script.Asked(name, CHECKS[name], options_of(name, **changed))]
    done = subprocess.run(
        [*before, *words, "-s"],
        input=script.build(frame, asked).encode(),
        capture_output=True,
        timeout=110,
        env={"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]},
        check=False,
    )
    reader = facts.Reader(frame.mark, time.time)
    reader.feed(done.stdout)
    assert reader.done, done.stderr.decode(errors="replace")
    return reader.told[name]


def facts_here(
    name: str, shell: str = "sh", *, before: Sequence[str] = (), **changed: Any
) -> dict[str, str]:
    """The facts of `told_here`; the probe must come to its own end."""
    told = told_here(name, shell, before=before, **changed)
    assert told.whole, told
    return dict(told.facts)
