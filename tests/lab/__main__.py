"""The laboratory by hand.

python -m tests.lab up [N]     N nodes with nothing wrong (default 8); they stay
python -m tests.lab demo       a few nodes with faults, what clustercheck says of them, and away
python -m tests.lab down       away with it, also after a crash
"""

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.host import make_keys
from tests.lab.cluster import DidNotComeUp, Lab, why_not
from tests.lab.demo import NODES
from tests.lab.ending import remove
from tests.lab.spec import Spec, healthy
from tools.fetch import PROJECT, TOOLS, CannotFetch, fetch

FOLDER = TOOLS / "lab"
DEMO = TOOLS / "demo"
COMMAND = Path(sys.prefix) / "bin" / "clustercheck"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="A cluster to try.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("up").add_argument("nodes", type=int, nargs="?", default=8)
    verbs.add_parser("demo")
    verbs.add_parser("down")
    words = parser.parse_args()
    if why := why_not():
        print(why.removeprefix("cannot here: "), file=sys.stderr)
        return 1
    try:
        if words.verb == "up":
            _up(words.nodes)
        elif words.verb == "demo":
            return _demo()
        elif not remove(FOLDER):
            print("there was no laboratory", file=sys.stderr)
    except (CannotFetch, DidNotComeUp) as trouble:
        print(trouble, file=sys.stderr)
        return 1
    return 0


def _up(count: int) -> None:
    if not 1 <= count <= 250:
        raise DidNotComeUp("the number of nodes must be 1 to 250")
    lab = _made(FOLDER, healthy(count), stays=True)
    head = lab.folder / "head"
    head.write_text(f'#!/bin/sh\nexec {shlex.join(lab.in_head([]))} "$@"\n')
    head.chmod(0o755)
    print(
        f"{count} nodes are up, {', '.join(list(lab.numbers)[:3])}, … "
        "Their network has no way out: commands that are to reach them begin with\n"
        f"{_short(head)}. An inventory: {_short(lab.inventory)}\n\n"
        f"  {_short(head)} {_command(lab)}\n"
        f"  {_short(head)} ssh -F {_short(lab.ssh_config)} {next(iter(lab.numbers))}\n"
        "  make lab-down"
    )


def _demo() -> int:
    before = time.monotonic()
    lab = _made(DEMO, NODES, stays=False)
    try:
        print(f"{len(NODES)} nodes up in {time.monotonic() - before:.1f} s\n")
        print("$ clustercheck run -i inventory.ini", flush=True)
        status = subprocess.run(lab.in_head(shlex.split(_command(lab)))).returncode
        print(f"\n$ echo $?\n{status}")
    finally:
        lab.close()
        remove(DEMO)
    return 0 if status in range(4) else 1


def _made(folder: Path, specs: Sequence[Spec], *, stays: bool) -> Lab:
    fetch()
    if remove(folder):
        print("the laboratory that was there is gone", file=sys.stderr)
    (folder / "keys").mkdir(parents=True)
    try:
        return Lab(folder, make_keys(folder / "keys"), specs, stays=stays)
    except BaseException:
        remove(folder)
        raise


def _command(lab: Lab) -> str:
    words = [_short(COMMAND), "run", "-i", _short(lab.inventory), "-F", _short(lab.ssh_config)]
    return shlex.join(words)


def _short(path: Path) -> str:
    """As it is named from the project's folder, which is where make runs."""
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
