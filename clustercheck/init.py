"""A first inventory, to be looked through: from Slurm, from /etc/hosts, or from a node set.

Of Slurm's forms the plain ones are read: `sinfo --json` has had three shapes and says nothing more.
"""

import ipaddress
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clustercheck.errors import UsageError
from clustercheck.fold import fold
from clustercheck.nodeset import NodeSetError, check_name, evaluate, expand, operands

HOSTS = Path("/etc/hosts")
SLURM_SECONDS = 30  # for slurmctld to answer; its own tools wait so long for a busy one

SCONTROL = ("scontrol", "--oneliner", "show", "nodes")
SINFO = ("sinfo", "--all", "--Node", "--noheader", "--format=%N|%R|%o|%T")

HEADER = """\
# The nodes to be checked, {source}.
#
# Look through it, and take out what is no node to be checked. Then ask one node, and all:
#   clustercheck run -i FILE -w {first}
#   clustercheck run -i FILE
#
# Login name, port, key and jump host are those of ~/.ssh/config, if not set here.
# Options of a check: clustercheck explain NAME; they go below [check:NAME].
"""

VARIABLES = """
# For all nodes; [GROUP:vars] is for a group.
[all:vars]
#user = root
#become = sudo
"""


@dataclass
class Found:
    """Nodes as a source has them.

    groups: nodes by group, "" for those in none; a node may be in several.
    hosts: addresses of nodes that are not reached by their name.
    remarks: what the reader ought to know, a sentence each.
    """

    source: str
    groups: dict[str, list[str]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def first_inventory(source: str = "") -> str:
    """The text of an inventory.

    source: "slurm", "hosts" (/etc/hosts), a node set, or "" for Slurm where it is there, else
        /etc/hosts. Raises UsageError where the source has no nodes or does not answer.
    """
    if source == "slurm" or (not source and any(map(shutil.which, ("scontrol", "sinfo")))):
        return text(slurm())
    if source in ("hosts", ""):
        try:
            content = HOSTS.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"{HOSTS} cannot be read: {error.strerror}") from None
        return text(of_hosts(content, socket.gethostname()))
    return text(of_nodeset(source))


def write_new(path: Path, content: str) -> None:
    """Write a file that is not there yet; raises UsageError where it is, or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        message = "is there already and is not written over; name another file"
        raise UsageError(f"{path} {message}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def slurm() -> Found:
    """What Slurm's own tools say of its nodes. Raises UsageError where they cannot."""
    instead = "start from /etc/hosts (--hosts) or a node set (-w 'gpu[01-16]') instead"
    for command, read in ((SCONTROL, of_scontrol), (SINFO, of_sinfo)):
        if not shutil.which(command[0]):
            continue
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=SLURM_SECONDS,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            said = f"no answer within {SLURM_SECONDS} s"
        except OSError as error:
            said = str(error.strerror)
        else:
            found = read(done.stdout)
            if found.groups:
                return found
            said = " ".join(done.stderr.split())[-200:] or "it names no nodes"
        raise UsageError(f"Slurm's {command[0]} gives no nodes: {said}; {instead}")
    raise UsageError(f"Slurm's scontrol and sinfo are not on this machine; {instead}")


def of_scontrol(output: str) -> Found:
    """Nodes from `scontrol show nodes`, in one line each or in many."""
    rows = []
    for block in re.split(r"(?m)^(?=NodeName=)", output):
        # the first of each name: free text (Comment=, Reason=) comes behind
        values = {
            key: match[1]
            for key in ("NodeName", "Partitions", "NodeAddr", "State")
            if (match := re.search(rf"(?:^|\s){key}=(\S+)", block))
        }
        if "NodeName" in values:
            partitions = values.get("Partitions", "").split(",")
            rows += [
                (values["NodeName"], name, values.get("NodeAddr", ""), values.get("State", ""))
                for name in partitions
            ]
    return _of_slurm(rows)


def of_sinfo(output: str) -> Found:
    """Nodes from `sinfo -N -o '%N|%R|%o|%T'`: one line for each node and partition."""
    rows = []
    for line in output.splitlines():
        name, partition, address, state = (line.strip().split("|") + [""] * 4)[:4]
        if name and partition:
            rows.append((name, partition, address, state))
    return _of_slurm(rows)


def _of_slurm(rows: Iterable[tuple[str, str, str, str]]) -> Found:
    """From (node, partition, address, state)."""
    found = Found("as Slurm has them, a group for each partition")
    asleep: dict[str, None] = {}
    for name, partition, address, state in rows:
        nodes = found.groups.setdefault(_group_name(partition), [])
        if name not in nodes:
            nodes.append(name)
        if address not in ("", name, "(null)"):
            found.hosts[name] = address
        if "POWERED_DOWN" in state.upper() or state.endswith("~"):
            asleep[name] = None
    if asleep:
        nodes_asleep = fold(list(asleep))
        found.remarks.append(
            f"Powered down when this was written: {nodes_asleep} (-x leaves nodes out)."
        )
    return found


def _group_name(partition: str) -> str:
    """A group's name for a partition; "" for none."""
    name = re.sub(r"[^\w.+-]", "_", partition)
    reserved = name in ("all", "ungrouped") or name[:1] in (".", "+", "-")
    return f"partition_{name}" if reserved else name


def of_hosts(content: str, own_name: str) -> Found:
    """Nodes from the text of /etc/hosts, each by its first name without a dot.

    own_name: this machine's.
    """
    found = Found("as /etc/hosts names them")
    names: dict[str, None] = {}
    own = {own_name, own_name.partition(".")[0]}
    addresses = set()
    for line in content.splitlines():
        address, *called = line.partition("#")[0].split() or [""]
        called = [name for name in called if not name.startswith(("ip6-", "localhost"))]
        if not called or not _is_nodes(address) or address in addresses:
            continue
        addresses.add(address)
        name = next((name for name in called if "." not in name), called[0])
        names[name] = None
        if own & set(called) and name not in own:
            own.add(name)
    if not names:
        raise UsageError("/etc/hosts names no other machine; give a node set: -w 'gpu[01-16]'")
    found.groups[""] = list(names)
    found.remarks += [f"{name} is this machine." for name in names if name in own]
    return found


def _is_nodes(address: str) -> bool:
    """Whether a machine of a network can have it."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (
        known.is_loopback
        or known.is_multicast
        or known.is_unspecified
        or known.is_link_local
        or known.is_reserved
    )


def of_nodeset(nodes: str) -> Found:
    """Nodes from a node set. Raises UsageError where it cannot be read."""
    try:
        names = list(evaluate(nodes, lambda operand: dict.fromkeys(expand(operand))))
        for name in names:
            check_name(name)
    except NodeSetError as error:
        raise UsageError(f"{error}") from None
    if not names:
        raise UsageError(f"no node is left of {nodes!r}")
    return Found("as a node set named them", {"": names})


def text(found: Found) -> str:
    """The inventory, with comments that tell the next step."""
    kept, refused = _nodes_by_group(found)
    first = next(name for names in kept.values() for name in names)
    lines = [HEADER.format(source=found.source, first=first).rstrip("\n")]
    lines += [f"# {remark}" for remark in found.remarks]
    if refused:
        lines.append(f"# Left out, for such a name cannot be a node's: {', '.join(refused)}")
    told: set[str] = set()
    for group in sorted(kept):
        lines.append("")
        if group:
            lines.append(f"[{group}]")
        apart = [n for n in kept[group] if n in found.hosts and n not in told]
        together = [n for n in kept[group] if n not in apart]
        lines += _folded(together)
        lines += [f"{name} host={found.hosts[name]}" for name in apart]
        told.update(kept[group])
    return "\n".join(lines) + "\n" + VARIABLES


def _nodes_by_group(found: Found) -> tuple[dict[str, list[str]], list[str]]:
    """The nodes that an inventory can have, and what cannot be one's name, as text for people."""
    kept: dict[str, list[str]] = {}
    refused: dict[str, None] = {}
    for group, names in found.groups.items():
        for name in names:
            try:
                check_name(name)
                check_name(found.hosts.get(name, name))
            except NodeSetError:
                refused[repr(name)] = None
            else:
                kept.setdefault(group, []).append(name)
    if not kept:
        raise UsageError(f"no name can be a node's: {', '.join(refused)}")
    return kept, list(refused)


def _folded(names: list[str]) -> Iterator[str]:
    """Node sets, one a line; names one by one where a node set would be read as others."""
    if not names:
        return
    parts = [part for _, part in operands(fold(names))]
    try:
        same = sorted(name for part in parts for name in expand(part)) == sorted(names)
    except NodeSetError:
        same = False
    # [01-16], of names that are numbers, would be a section
    fits = same and not any(part.startswith("[") for part in parts)
    yield from parts if fits else names
