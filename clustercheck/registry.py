"""Finds the checks: those of the package, then other packages' by entry point.

Nobody imports a check by name. A check that cannot be loaded stays in the list and says so as an
UNKNOWN finding of its own; it harms no other.
"""

import dataclasses
import importlib
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from clustercheck import reach
from clustercheck.check import AnyCheck, Check, Code, Facts, Finding, NoOptions, unknown
from clustercheck.script import is_word

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clustercheck.checks"


class Checks(Mapping[str, AnyCheck]):
    """Checks by name, each loaded when it is first asked for: loading them all takes a while."""

    def __init__(self, sources: Mapping[str, Callable[[], object]]) -> None:
        self._sources = sources
        self._loaded: dict[str, AnyCheck] = {}

    def __getitem__(self, name: str) -> AnyCheck:
        if name not in self._loaded:
            self._loaded[name] = _check(self._sources[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def own() -> Checks:
    """The package's own checks by name, in alphabetical order."""
    return Checks(_own())


def load() -> Checks:
    """Every check by name: the package's own, then other packages', each in alphabetical order.

    Another package cannot take the name of a check that is there already: its check is then
    listed under "PACKAGE_NAME" and says that it could not be loaded.
    """
    found = _own()
    for point in _points():
        if why := _refused(point.name, found):
            origin = point.dist.name if point.dist else "unknown"
            name = re.sub(r"[^a-z0-9_]", "_", f"{origin}_{point.name}".lower())
            found[name] = partial(broken, f"{point.name!r} of the package {origin} {why}")
        else:
            found[point.name] = point.load
    return Checks(found)


def _own() -> dict[str, Callable[[], object]]:
    package = importlib.import_module(GROUP)
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name[0] != "_")
    return {name: partial(importlib.import_module, f"{GROUP}.{name}") for name in names}


def docs(name: str) -> str:
    """What the module of a check says of it; "" for one that cannot be loaded or is no module's."""
    modules = [f"{GROUP}.{name}", *(point.module for point in _points() if point.name == name)]
    for module in modules:
        # why it cannot be loaded is told by the check
        with suppress(Exception, SystemExit), redirect_stdout(sys.stderr):
            return inspect.getdoc(importlib.import_module(module)) or ""
    return ""


def _points() -> list["EntryPoint"]:
    if not _may_have_points():
        return []
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP), key=lambda point: point.name)


def _may_have_points() -> bool:
    """Whether any installed package names our group; "yes" where that is not easily seen.

    importlib.metadata would tell, and takes ten times as long to load as this takes to look.
    """
    if any(hasattr(f, "find_distributions") and f is not PathFinder for f in sys.meta_path):
        return True
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except FileNotFoundError:
            continue
        except OSError:  # an archive, which may hold packages
            return True
        if any(name.endswith(".egg") for name in names):
            return True
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                with suppress(FileNotFoundError, NotADirectoryError):
                    text = Path(folder, name, "entry_points.txt").read_bytes()
                    if GROUP.encode() in text:
                        return True
    return False


def _refused(name: str, found: Collection[str]) -> str:
    """Why a check of another package cannot have the name; "" where it can."""
    if name in found or name == reach.NAME:
        return "is the name of another check"
    return "" if is_word(name) else "is no plain word (small letters, digits and _)"


def _check(get: Callable[[], object]) -> AnyCheck:
    try:
        # what it prints must not stand in a report
        with redirect_stdout(sys.stderr):
            value = get()
        check = getattr(value, "CHECK", value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever another's module raises is its own fault
        return broken(f"{type(error).__name__}: {error}")
    if not isinstance(check, Check):
        return broken(f"it has no CHECK of type Check, but {type(check).__name__}")
    if not dataclasses.is_dataclass(check.options):
        return broken(f"its options are no dataclass, but {type(check.options).__name__}")
    return check


def broken(reason: str) -> AnyCheck:
    """A check in place of one that could not be loaded: UNKNOWN on every node, with the reason."""

    def judge(facts: Facts, options: NoOptions) -> Iterator[Finding]:
        yield unknown("not_loaded", f"the check could not be loaded: {reason}")

    return Check(
        title="Could not be loaded",
        options=NoOptions(),
        judge=judge,
        codes={"not_loaded": Code("The check's own module cannot be loaded; mend or remove it.")},
    )
