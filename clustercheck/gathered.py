"""What an inventory file says: its groups, its nodes, and the variables of each, unread."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from clustercheck.check import AnyCheck
from clustercheck.errors import nearest
from clustercheck.groups import Groups
from clustercheck.inventoryfile import OURS, SWEEP, Line, Section
from clustercheck.nodeset import LIMIT, NodeSetError, check_name, evaluate, expand, shorten
from clustercheck.parts import PARTS
from clustercheck.settings import Fault, Setting

Variables = dict[str, Setting]
WITHOUT_HEADER = ("all", "ungrouped")  # groups that are there in every inventory


class Gathered:
    """What the sections say. What is wrong with them is in `faults`.

    ansible: some variable is Ansible's, so that all are read as Ansible reads them.
    nodes: variables on host lines by node, in the order of the file; nodes of one line may share
        one dictionary.
    of_group, of_check, of_profile: variables of `[GROUP:vars]`, `[check:NAME]`, `[profile:NAME]`.
    of_sweep: those of `[sweep]`.
    plugins: the names that are no check's and have a `command`.
    """

    def __init__(
        self, path: Path, sections: Sequence[Section], checks: Mapping[str, AnyCheck]
    ) -> None:
        self.path = path
        self.faults: dict[Fault, None] = {}
        self.groups = Groups()
        self.nodes: dict[str, Variables] = {}
        self.of_group: dict[str, Variables] = {}
        self.of_check: dict[str, Variables] = {}
        self.of_profile: dict[str, Variables] = {}
        self.of_sweep: Variables = {}
        self._named: dict[tuple[str, str], int] = {}  # (group, node): line
        self._children: list[tuple[int, str, str]] = []  # line, group, child
        self.ansible = any(
            name.startswith("ansible_")
            for section in sections
            if section.kind not in (SWEEP, *OURS)
            for line in section.lines
            for name, _ in line.variables
        )
        self.plugins = {
            section.name
            for section in sections
            if section.kind == "check" and section.name not in (*checks, *PARTS)
            if any(name == "command" for line in section.lines for name, _ in line.variables)
        }
        self.known = [*checks, *self.plugins]
        for section in sections:
            if section.kind in ("hosts", "children") and section.name not in WITHOUT_HEADER:
                self.groups.declare(section.name)
        for section in sections:
            self._section(section)
        self._join_children()

    def fault(self, number: int, text: str) -> None:
        """Note what is wrong in a line; once, however many nodes the line names."""
        self.faults[Fault(f"{self.path}:{number}", text)] = None

    def _section(self, section: Section) -> None:
        """Take in the lines of one section."""
        if section.kind == "check":
            if section.name in PARTS:
                text = f"{section.name!r} is set below [sweep]; give the check another name"
                self.fault(section.number, text)
                return
            if section.name not in self.known:
                hint = (
                    nearest(section.name, self.known) or "; a monitoring plug-in needs command = …"
                )
                self.fault(section.number, f"no check is called {section.name!r}{hint}")
                return
        elif section.kind == "profile":
            if section.name in self.known:
                text = f"{section.name!r} is a check; give the profile another name"
                self.fault(section.number, text)
                return
            self.of_profile.setdefault(section.name, {})
        elif section.kind == "vars" and section.name not in (*WITHOUT_HEADER, *self.groups.parents):
            self.fault(section.number, self._no_group(section.name))
            return
        for line in section.lines:
            if section.kind == "hosts":
                self._host_line(line, section)
            elif section.kind == "children":
                self._children.append((line.number, section.name, line.head))
            elif section.kind == SWEEP:
                self._set_all(self.of_sweep, line, section)
            else:
                scopes = self._scopes(section.kind)
                self._set_all(scopes.setdefault(section.name, {}), line, section)

    def _scopes(self, kind: str) -> dict[str, Variables]:
        if kind == "check":
            return self.of_check
        return self.of_profile if kind == "profile" else self.of_group

    def _no_group(self, name: str) -> str:
        return f"no group is called {name!r}{nearest(name, self.groups.parents)}"

    def _set_all(self, variables: Variables, line: Line, section: Section) -> None:
        for name, text in line.variables:
            old = variables.get(name)
            if old and old.text != text and not self.ansible:
                self.fault(
                    line.number,
                    f"{name} is {shorten(text)} here and {shorten(old.text)} "
                    f"in line {old.place.rpartition(':')[2]}; keep one of them",
                )
            variables[name] = Setting(text, f"{self.path}:{line.number}", section.title)

    def _host_line(self, line: Line, section: Section) -> None:
        """`gpu[01-16] port=2222`, `gpu01:2222`."""
        try:
            head, port = _split_port(line.head)
            names = _names(head)
        except NodeSetError as error:
            self.fault(line.number, str(error))
            return
        if len(self.nodes) + len(names) > LIMIT and len(self.nodes.keys() | names) > LIMIT:
            self.fault(line.number, f"more than {LIMIT:,} nodes in all; split the inventory")
            return
        if port:
            variable = ("ansible_port" if self.ansible else "port", port)
            line = line._replace(variables=(variable, *line.variables))
        shared: Variables = {}
        self._set_all(shared, line, section)
        direct = self.groups.nodes.get(section.name)
        twice = [name for name in names if (section.name, name) in self._named]
        if twice and not self.ansible:
            first = self._named[section.name, twice[0]]
            self.fault(
                line.number,
                f"{_some(twice)} is in {f'[{section.name}]' if section.title else 'the list'} "
                f"already, in line {first}; name it once",
            )
        for name in names:
            self._named.setdefault((section.name, name), line.number)
            if direct is not None:
                direct[name] = None
            if name not in self.nodes:
                self.nodes[name] = shared
            elif shared:
                # a copy: the variables so far may be shared with the other nodes of their line
                self.nodes[name] = dict(self.nodes[name])
                self._set_all(self.nodes[name], line, section)

    def _join_children(self) -> None:
        """Put children into their groups, once all groups are known."""
        lines: dict[tuple[str, str], int] = {}
        for number, parent, child in self._children:
            if child in WITHOUT_HEADER:
                self.fault(number, f"{child!r} cannot be a child; name the groups themselves")
            elif child not in self.groups.parents:
                self.fault(number, self._no_group(child))
            elif parent not in WITHOUT_HEADER:
                self.groups.parents[child][parent] = None
                lines[child, parent] = number
        for circle in self.groups.circles():
            child, parent = circle[-2:]
            self.fault(
                lines[child, parent],
                f"groups hold each other in a circle: {' < '.join(circle)}; "
                f"take {child!r} out of [{parent}:children]",
            )


def _names(text: str) -> list[str]:
    """The nodes of a host line's node set."""
    if text.startswith("@"):
        raise NodeSetError(f"{shorten(text)}: a group goes into another by [GROUP:children]")
    names = list(evaluate(text, lambda operand: dict.fromkeys(expand(operand))))
    for name in names:
        check_name(name)
    return names


def _split_port(text: str) -> tuple[str, str]:
    """Ansible's `gpu[01:16]:2222` and `[2001:db8::1]:22` to the nodes and the port, or ""."""
    if match := re.fullmatch(r"\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\](?::(.*))?", text):
        with suppress(ValueError):
            return str(ipaddress.IPv6Address(match[1])), match[2] or ""
    outside = re.sub(r"\[[^\]]*\]", "", text)
    if outside.count(":") == 1 and not text.endswith("]"):
        head, _, port = text.rpartition(":")
        return head, port
    return text, ""


def _some(names: Sequence[str]) -> str:
    """`gpu01`, or `gpu01 (and 15 more)`."""
    return names[0] + (f" (and {len(names) - 1:,} more)" if len(names) > 1 else "")
