"""The controller asked from this machine, once for all nodes: facts for each of them."""

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import NamedTuple

from clustercheck.check import Target

from ._slurm_read import Record, read_nodes

# Seconds for all questions together: a stopped controller lets each wait for 10 s (MessageTimeout).
ALL_WITHIN = 13.0


class Said(NamedTuple):
    """What a command printed; status 124 where it was ended."""

    status: int
    text: str
    error: str


def facts(targets: Sequence[Target]) -> dict[str, dict[str, str]]:
    """ "here.node" for each node that the controller has, and "here.ping" or "here.error" for all.

    {} where this machine has no scontrol.
    """
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return {}
    until = time.monotonic() + ALL_WITHIN
    ping = _start(scontrol, "ping")
    settings = _start(scontrol, "show", "config")
    nodes = _start(scontrol, "show", "node", "--json")
    said = _finish(nodes, until)
    records = read_nodes(said.text)
    if not records and until - time.monotonic() > ALL_WITHIN / 2:
        # no --json before 21.08, nor where it was built without; a silence need not be tried again
        said = _finish(_start(scontrol, "show", "node", "-o"), until)
        records = read_nodes(said.text)
    pinged = _finish(ping, until)
    found = {"here.ping": pinged.text.strip()}
    version = re.search(r"(?m)^SLURM_VERSION\s*=\s*(\S{1,40})$", _finish(settings, until).text)
    if version:
        found["here.version"] = version[1]
    if not records:
        found["here.error"] = error_of(said)
    by_name = names_of(records)
    told = {}
    for target in targets:
        record = record_for(by_name, (target.name, target.host))
        told[target.name] = found | ({"here.node": record.line()} if record else {})
    return told


def error_of(said: Said) -> str:
    """Why there are no nodes, in words: the last line that scontrol gave."""
    if said.status == 124:
        return f"no answer within {ALL_WITHIN:g} s"
    lines = (said.error.strip() or said.text.strip()).splitlines()
    return lines[-1].strip()[:300] if lines else f"no nodes (exit status {said.status})"


def names_of(records: Sequence[Record]) -> dict[str, Record]:
    """The records by each of their names, NodeName before all others; "" is none of them."""
    found: dict[str, Record] = {}
    for record in records:
        for name in record.names[1:]:
            found.setdefault(name.lower(), record)
    # several nodes on one machine share its name, which then says nothing of any
    shared = [record.names[1:] for record in records]
    seen: dict[str, int] = {}
    for names in shared:
        for name in {name.lower() for name in names}:
            seen[name] = seen.get(name, 0) + 1
    found = {name: record for name, record in found.items() if seen[name] == 1}
    return found | {record.names[0].lower(): record for record in records}


def record_for(by_name: dict[str, Record], names: Sequence[str]) -> Record | None:
    """The record of a node that goes by any of the names, whole or without the domain."""
    for name in names:
        for form in (name.lower(), name.lower().partition(".")[0]):
            if form in by_name and not form.isdigit():
                return by_name[form]
    return None


def _start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _finish(process: subprocess.Popen[bytes], until: float) -> Said:
    try:
        out, error = process.communicate(timeout=max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Said(124, "", "")
    return Said(
        process.returncode, *(part.decode(errors="backslashreplace") for part in (out, error))
    )
