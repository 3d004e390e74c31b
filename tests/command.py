"""Runs the command line as a user does."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.host import Host


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def clustercheck(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout: float = 200,
) -> Done:
    """Run `clustercheck` with these arguments."""
    done = subprocess.run(
        [sys.executable, "-m", "clustercheck", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def write_inventory(path: Path, host: Host, lines: Sequence[str], rest: str = "") -> Path:
    """An inventory whose nodes are the host under different addresses."""
    reached = f"user={host.user} port={host.port} key={host.keys.plain}"
    path.write_text(
        "[node]\n" + "\n".join(lines) + "\n[all:vars]\n" + reached.replace(" ", "\n") + f"\n{rest}"
    )
    return path


def ssh_words(host: Host) -> list[str]:
    """What makes the command line independent of the developer's own ~/.ssh."""
    return ["--known-hosts", str(host.known_hosts), "-F", os.devnull]
