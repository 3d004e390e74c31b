"""What is set for each check on each node, by whom, and which of it counts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from clustercheck.check import AnyCheck
from clustercheck.errors import ConfigError, UsageError, nearest
from clustercheck.node import Node
from clustercheck.nodeset import shorten
from clustercheck.options import Settable, as_text, instance, parse, unknown_option
from clustercheck.parts import PARTS, SWEEP

OVERRIDE = "-o"
PROFILE, SHIPPED = "profile", "shipped"  # layers
MOST_FAULTS = 20  # shown; a file that is no inventory at all has one in each line
NOBODY = ""  # a node that is in no inventory


class Setting(NamedTuple):
    """What somebody set: the text, and where.

    place: "inventory.ini:12", or "-o". section: "gpu:vars", or "" outside any.
    """

    text: str
    place: str
    section: str = ""

    @property
    def where(self) -> str:
        """As `explain --effective` shows it: "inventory.ini:12 [gpu:vars]"."""
        return f"{self.place} [{self.section}]" if self.section else self.place


class Fault(NamedTuple):
    """What is wrong: the place ("inventory.ini:12", "-o"), and what, with the remedy."""

    place: str
    text: str


Layer = Mapping[str, Mapping[str, Setting]]
"""Settings by check and option, all from equally near."""


@dataclass(frozen=True)
class Profile:
    """A named set of checks and of how strictly they judge, for one kind of work.

    checks: their names; empty: all. skip: names of those that are left out.
    fail_on: names of findings ("cpu.busy", "mtu.*"): as a warning they count as a failure.
    settings: what the inventory says in `[profile:NAME]`; only -o is nearer.
    shipped: what the product says; whatever the inventory sets is nearer.
    """

    name: str
    checks: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    settings: Layer = field(default_factory=dict)
    shipped: Layer = field(default_factory=dict)


class Effective(NamedTuple):
    """An option as it stands for a node, and where it comes from ("default", "-o", a line)."""

    check: str
    option: str
    value: str
    where: str
    unit: str = ""


@dataclass(frozen=True, eq=False)
class Inventory:
    """Nodes, groups and options. Made by `inventory.load` or `inventory.empty`.

    checks: the checks that options may be set for.
    nodes: by name, in the order of the file.
    groups: names of nodes by group, in the order of the file, children's among them; "all" too.
    plugins: what `[check:NAME]` says, by NAME, where it gives a `command` for a name that is no
        check. Make checks of them and give those to `with_checks`.
    notes: what was left aside, one line each, for `-v`.
    layers: settings by "node NAME", "group NAME" ("group all" too), "check" and "-o"; with a
        profile in use, "profile" and "shipped" too.
    profiles: by name, the product's among them. profile: the one in use.
    """

    checks: Mapping[str, AnyCheck]
    nodes: Mapping[str, Node] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plugins: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    layers: Mapping[str, Layer] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    profile: Profile | None = None
    _made: dict[Any, Any] = field(default_factory=dict)
    _equal: dict[tuple[str, Any], Any] = field(default_factory=dict)

    def options(self, check: str, node: str) -> Any:
        """The check's options for the node: an instance of the class of its `options`.

        check: or a part, "mail". node: NOBODY for what is set for all.
        Where all is set alike it is the same object, so that nodes can be sorted by `id`. A node
        that is not in the inventory has what is set for all.
        """
        known = self.nodes.get(node)
        own = self.layers.get(f"node {node}", {}).get(check)
        groups = known.groups if known else None
        key = (check, groups, tuple(sorted(own.items())) if own else None)
        if key not in self._made:
            texts = {name: s.text for name, s in self.settings(check, node).items()}
            options = instance(self._settable(check), texts)
            self._made[key] = self._equal.setdefault((check, options), options)
        return self._made[key]

    def settings(self, check: str, node: str) -> dict[str, Setting]:
        """What is set for the check on the node, by option, the nearest of each."""
        nearest_of: dict[str, Setting] = {}
        for layer in self._layers(node):
            for option, setting in layer.get(check, {}).items():
                nearest_of.setdefault(option, setting)
        shipped = self.layers.get(SHIPPED, {}).get(check, {})
        whole = {**shipped, **nearest_of}
        if not shipped or _fits(self._settable(check), whole):
            return whole
        return nearest_of  # the site's warning may lie above our failure: the site's count

    def _settable(self, name: str) -> Settable:
        return self.checks[name] if name in self.checks else PARTS[name]

    def _layers(self, node: str) -> Iterator[Layer]:
        """From the nearest to the farthest."""
        known = self.nodes.get(node)
        scopes = [OVERRIDE, PROFILE, f"node {node}"]
        if known:
            scopes += [f"group {name}" for name in known.groups or ("ungrouped",)]
        for scope in (*scopes, "group all", "check"):
            if scope in self.layers:
                yield self.layers[scope]

    def effective(self, node: str) -> list[Effective]:
        """Every option of every check as it stands for the node, and where from."""
        rows = []
        for name, check in self.checks.items():
            options, settings = self.options(name, node), self.settings(name, node)
            for option in check.option_fields():
                value = as_text(getattr(options, option.name))
                where = settings[option.name].where if option.name in settings else "default"
                unit = option.metadata.get("unit", "")
                rows.append(Effective(name, option.name, value, where, unit))
        return rows

    def with_checks(self, checks: Mapping[str, AnyCheck]) -> "Inventory":
        """The same with more checks, those made of `plugins`, whose settings are now looked at.

        Raises ConfigError or UsageError for an option that these checks do not have or that
        cannot be.
        """
        if not checks:
            return self
        grown = replace(self, checks={**self.checks, **checks}, _made={}, _equal={})
        refuse(grown.faults(checks))
        return grown

    @property
    def fail_on(self) -> tuple[str, ...]:
        """Names of findings that count as failures where they are warnings."""
        return self.profile.fail_on if self.profile else ()

    def with_profile(self, name: str) -> "Inventory":
        """The same with a profile in use; itself for "".

        Raises UsageError where there is no such profile, ConfigError where its options cannot be.
        """
        if not name:
            return self
        if name not in self.profiles:
            known = ", ".join(self.profiles)
            hint = nearest(name, self.profiles) or f"; the profiles are {known}"
            raise UsageError(f"--profile: no profile is called {shorten(name)}{hint}")
        profile = self.profiles[name]
        layers = {**self.layers, PROFILE: profile.settings, SHIPPED: profile.shipped}
        grown = replace(self, layers=layers, profile=profile, _made={}, _equal={})
        refuse(grown.faults(self.checks))
        return grown

    def faults(self, checks: Mapping[str, Settable]) -> list[Fault]:
        """What is wrong in the settings of these checks, also of groups without nodes."""
        wrong: dict[Fault, None] = {}
        for layer in (*self.layers.values(), *(p.settings for p in self.profiles.values())):
            for name, settings in layer.items():
                if name in checks:
                    wrong |= dict.fromkeys(_faults_of(name, checks[name], settings))
        wrong |= dict.fromkeys(self._faults_of_place(checks))
        return list(wrong or dict.fromkeys(self._faults_together(checks)))

    def _faults_of_place(self, checks: Mapping[str, Settable]) -> Iterator[Fault]:
        """What is set for some nodes and can only be set for all."""
        for scope, layer in self.layers.items():
            if scope in (OVERRIDE, PROFILE, "group all", "check"):
                continue
            for name, part in PARTS.items():
                for option, setting in layer.get(name, {}).items() if name in checks else ():
                    if option not in part.of_groups and not unknown_option(name, part, option):
                        text = f"{name}.{option} is the same for all nodes; write it below"
                        yield Fault(setting.place, f"{text} [{SWEEP}]")

    def _faults_together(self, checks: Mapping[str, Settable]) -> Iterator[Fault]:
        """Values that are right one by one and wrong together, as a warning above a failure."""
        alike = {node.groups: name for name, node in self.nodes.items()}
        own = (scope.removeprefix("node ") for scope in self.layers if scope.startswith("node "))
        one_of_each_kind = [NOBODY, *alike.values(), *own]
        set_at_all = {name for layer in self.layers.values() for name in layer if name in checks}
        for check in sorted(set_at_all):
            for node in one_of_each_kind:
                try:
                    self.options(check, node)
                except ValueError as error:
                    setting = next(iter(self.settings(check, node).values()))
                    yield Fault(setting.place, f"{check}: {error}")


def _fits(check: Settable, settings: Mapping[str, Setting]) -> bool:
    try:
        instance(check, {name: setting.text for name, setting in settings.items()})
    except ValueError:
        return False
    return True


def _faults_of(name: str, check: Settable, settings: Mapping[str, Setting]) -> Iterator[Fault]:
    for option, setting in settings.items():
        if unknown := unknown_option(name, check, option):
            yield Fault(setting.place, unknown)
            continue
        try:
            parse(check, option, setting.text)
        except ValueError as error:
            yield Fault(setting.place, f"{name}.{option}: {error}")


def refuse(faults: Iterable[Fault]) -> None:
    """Raise ConfigError with the faults in the file, else UsageError with those in `-o`."""
    faults = list(faults)
    in_file = [fault for fault in faults if fault.place != OVERRIDE]
    if in_file:
        in_file.sort(key=lambda fault: int(fault.place.rpartition(":")[2]))
        shown = [f"{fault.place}: {fault.text}" for fault in in_file[:MOST_FAULTS]]
        if len(in_file) > MOST_FAULTS:
            shown.append(f"and {len(in_file) - MOST_FAULTS:,} faults more")
        raise ConfigError(*shown)
    if faults:
        raise UsageError("\n".join(f"{fault.place}: {fault.text}" for fault in faults))
