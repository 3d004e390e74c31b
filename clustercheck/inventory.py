"""Reads an inventory: an INI file of our own, or an existing one of Ansible's as it stands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from clustercheck.check import AnyCheck
from clustercheck.errors import UsageError, nearest
from clustercheck.gathered import Gathered, Variables
from clustercheck.inventoryfile import read
from clustercheck.node import Node
from clustercheck.nodeset import shorten
from clustercheck.parts import PARTS, SWEEP
from clustercheck.profile import LISTS, changed, shipped, unfitting
from clustercheck.settings import OVERRIDE, Fault, Inventory, Layer, Profile, Setting, refuse
from clustercheck.variables import ANSIBLE, OURS, ansible_node, ansible_note, near_ours, our_node

__all__ = ["Inventory", "empty", "load"]


def load(path: Path, checks: Mapping[str, AnyCheck], overrides: Sequence[str] = ()) -> Inventory:
    """Read the file. overrides: the texts of `-o`, "CHECK.option=value".

    Raises ConfigError with all that is wrong in the file, UsageError for what is wrong in `-o`.
    """
    sections, faults = read(path)
    said = Gathered(path, sections, checks)
    for number, text in faults:
        said.fault(number, text)
    made = _Maker(said).inventory(checks, _overrides(overrides))
    if not made.nodes and not said.faults:
        said.fault(1, "no node is named; write names of nodes, one a line, or gpu[01-16]")
    refuse([*said.faults, *made.faults(checks), *made.faults(PARTS)])
    _check_overrides(made)
    return made


def empty(checks: Mapping[str, AnyCheck], overrides: Sequence[str] = ()) -> Inventory:
    """The inventory of who has none: no nodes, and the options are the defaults and `-o`.

    Raises UsageError for a fault in `-o`.
    """
    made = Inventory(
        checks,
        groups={"all": ()},
        layers={OVERRIDE: _overrides(overrides)},
        profiles=shipped(),
    )
    _check_overrides(made)
    refuse([*made.faults(checks), *made.faults(PARTS)])
    return made


def _overrides(overrides: Sequence[str]) -> Layer:
    """The layer of `-o CHECK.option=value`; of two for one option the last counts."""
    layer: dict[str, dict[str, Setting]] = {}
    for text in overrides:
        name, equals, value = (part.strip() for part in text.partition("="))
        check, dot, option = name.partition(".")
        if not (equals and dot and check and option):
            raise UsageError(
                f"-o: {shorten(text)} is not CHECK.OPTION=VALUE, as tmp.warn_percent=70"
            )
        layer.setdefault(check, {})[option] = Setting(value, OVERRIDE)
    return layer


def _check_overrides(made: Inventory) -> None:
    known = [*made.checks, *made.plugins, *PARTS]
    for name in made.layers[OVERRIDE]:
        if name not in known:
            raise UsageError(f"-o: no check is called {name!r}{nearest(name, known)}")


class _Maker:
    """Makes of what a file says what it means."""

    def __init__(self, said: Gathered) -> None:
        self.said = said
        self.kinds = ANSIBLE if said.ansible else OURS
        self.notes: dict[str, tuple[str, int, str]] = {}  # variable: first place, how many, text
        self.values: dict[tuple[str, Setting], object] = {}

    def inventory(self, checks: Mapping[str, AnyCheck], overrides: Layer) -> Inventory:
        """The inventory; what is wrong with it goes to the faults of what the file says."""
        said = self.said
        layers: dict[str, Layer] = {
            OVERRIDE: overrides,
            "check": {**said.of_check, **self.of_parts()},
        }
        reach: dict[str, dict[str, object]] = {}
        for name, variables in said.of_group.items():
            reach[name], layers[f"group {name}"] = self.read_variables(variables)
        nodes = self.make_nodes(reach, layers)
        places = {name: place for place, name in enumerate(nodes)}
        groups = {"all": tuple(nodes)}
        for name, members in said.groups.members().items():
            groups[name] = tuple(sorted(members, key=places.__getitem__))
        notes = (
            f"{place}: {variable}: {text}" + (f" ({count:,} places)" if count > 1 else "")
            for variable, (place, count, text) in self.notes.items()
        )
        return Inventory(
            checks=checks,
            nodes=nodes,
            groups=groups,
            plugins={name: said.of_check[name] for name in sorted(said.plugins)},
            notes=tuple(notes),
            layers={scope: layer for scope, layer in layers.items() if layer or scope == OVERRIDE},
            profiles={**shipped(), **self.profiles(checks)},
        )

    def of_parts(self) -> dict[str, dict[str, Setting]]:
        """What `[sweep]` says, by part."""
        found: dict[str, dict[str, Setting]] = {}
        for name, setting in self.said.of_sweep.items():
            part, dot, option = name.partition(".")
            if not dot:
                found.setdefault(SWEEP, {})[name] = setting
            elif part in PARTS:
                found.setdefault(part, {})[option] = setting
            elif part in self.said.known:
                self.fault(setting, f"{option} of a check stands below [check:{part}]")
            else:
                self.fault(setting, f"nothing is called {part!r} here{nearest(part, PARTS)}")
        return found

    def profiles(self, checks: Mapping[str, AnyCheck]) -> dict[str, Profile]:
        """The profiles that the file names."""
        made = {}
        for name, variables in self.said.of_profile.items():
            lists: dict[str, tuple[str, ...]] = {}
            settings: dict[str, dict[str, Setting]] = {}
            for key, setting in variables.items():
                if key in LISTS:
                    words = setting.text.replace(",", " ").split()
                    lists[key] = tuple(dict.fromkeys(words))
                    self.known_words(key, setting, lists[key], checks)
                elif "." in key:
                    check, _, option = key.partition(".")
                    self.known_check(check, setting)
                    settings.setdefault(check, {})[option] = setting
                else:
                    hint = nearest(key, LISTS) or f"; write {', '.join(LISTS)} or CHECK.OPTION"
                    self.fault(setting, f"a profile has no {key!r}{hint}")
            made[name] = changed(name, lists, settings)
        return made

    def known_words(
        self, key: str, setting: Setting, words: Iterable[str], checks: Mapping[str, AnyCheck]
    ) -> None:
        """Whether these are names of checks, or of findings."""
        for word in words:
            if key != "fail_on":
                self.known_check(word, setting)
            elif unfitting(word, checks, self.said.plugins):
                names = (f"{check}.{code}" for check in checks for code in checks[check].codes)
                hint = nearest(word, names) or "; write such as ntp.offset or mtu.*"
                self.fault(setting, f"fail_on: no finding is called {word!r}{hint}")

    def note(self, variable: str, setting: Setting, text: str) -> None:
        place, count, first = self.notes.get(variable, (setting.place, 0, text))
        self.notes[variable] = (place, count + 1, first)

    def fault(self, setting: Setting, text: str) -> None:
        self.said.faults[Fault(setting.place, text)] = None

    def read_variables(
        self, variables: Variables
    ) -> tuple[dict[str, object], dict[str, dict[str, Setting]]]:
        """Variables sorted into how a node is reached (by variable) and options (by check)."""
        reach: dict[str, object] = {}
        options: dict[str, dict[str, Setting]] = {}
        for name, setting in variables.items():
            if "." in name:
                check, _, option = name.partition(".")
                if check not in PARTS:
                    self.known_check(check, setting)
                options.setdefault(check, {})[option] = setting
            elif name in self.kinds:
                value = self.value(name, setting)
                if value is not None:
                    reach[name] = value
            elif not self.said.ansible and (ours := near_ours(name)):
                text = f"there is no variable {name!r}; did you mean {ours!r}?"
                self.fault(setting, text)
            else:
                self.note(name, setting, "not a variable of clustercheck; left aside")
        return reach, options

    def known_check(self, name: str, setting: Setting) -> None:
        known = self.said.known
        if name not in known:
            self.fault(setting, f"no check is called {name!r}{nearest(name, known)}")

    def value(self, name: str, setting: Setting) -> object:
        """The variable's value, read once for all nodes of a line; None where it cannot be."""
        if (name, setting) not in self.values:
            try:
                self.values[name, setting] = self.kinds[name](setting.text)
            except ValueError as error:
                self.values[name, setting] = None
                self.fault(setting, f"{name}: {error}")
            if note := ansible_note(name, self.values[name, setting]):
                self.note(name, setting, note)
        return self.values[name, setting]

    def make_nodes(
        self, reach: Mapping[str, Mapping[str, object]], layers: dict[str, Layer]
    ) -> dict[str, Node]:
        """The nodes; their own options are added to `layers`."""
        direct: dict[str, list[str]] = {}
        for group, nodes in self.said.groups.nodes.items():
            for name in nodes:
                direct.setdefault(name, []).append(group)
        nearest_first = self.order(reach)
        make_node = ansible_node if self.said.ansible else our_node
        ordered: dict[tuple[str, ...], tuple[str, ...]] = {}
        of_line: dict[int, tuple[dict[str, object], dict[str, dict[str, Setting]]]] = {}
        made = {}
        for name, variables in self.said.nodes.items():
            groups = tuple(direct.get(name, ()))
            if groups not in ordered:
                ordered[groups] = nearest_first(groups)
            if id(variables) not in of_line:
                of_line[id(variables)] = self.read_variables(variables)
            own, options = of_line[id(variables)]
            if options:
                layers[f"node {name}"] = options
            values = dict(reach.get("all", {}))
            for group in reversed(ordered[groups] or ("ungrouped",)):
                values.update(reach.get(group, {}))
            values.update(own)
            made[name] = make_node(name, values, ordered[groups])
        return made

    def order(
        self, reach: Mapping[str, Mapping[str, object]]
    ) -> Callable[[Iterable[str]], tuple[str, ...]]:
        """From the groups a node is directly in to all it is in, nearest first."""
        if not self.said.ansible:
            return self.said.groups.by_file
        depths = self.said.groups.depths()
        priorities = {
            group: int(str(values.get("ansible_group_priority", 1)))
            for group, values in reach.items()
        }
        return lambda names: self.said.groups.by_ansible(names, depths, priorities)
