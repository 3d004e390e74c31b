"""What the real probe of a check tells of this machine, by the real script under any shell."""

import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from clustercheck import facts, script
from tests.made_up import CHECKS, options_of
from tests.shells import SHELLS, sh_folder, shell_words

__all__ = ["SHELLS", "facts_here", "shell_words", "told_here"]


def told_here(
    name: str, shell: str = "sh", *, before: Sequence[str] = (), **changed: Any
) -> facts.Told:
    """What a check's probe, run in that shell, tells of this machine.

    before: words that start the shell somewhere else (`unshare -m …`).
    """
    words = shell_words(shell) if shell in SHELLS else shell.split()
    path = f"{sh_folder(shell)}:{script.PATH}" if shell in SHELLS else script.PATH
    frame = script.Frame(path=path)
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
