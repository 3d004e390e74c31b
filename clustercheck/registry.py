"""Finds the checks: those of the package, then other packages' by entry point.

Nobody imports a check by name. A check that cannot be loaded stays in the list and says so as an
UNKNOWN finding of its own; it harms no other.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import entry_points

from clustercheck.check import AnyCheck, Check, Code, Facts, Finding, NoOptions, unknown
from clustercheck.script import is_word

GROUP = "clustercheck.checks"


def load() -> dict[str, AnyCheck]:
    """Every check by name, in alphabetical order, the package's own before other people's.

    Another package cannot take the name of a check that is there already: its check is then
    listed under "PACKAGE_NAME" and says that it could not be loaded.
    """
    package = importlib.import_module("clustercheck.checks")
    found: dict[str, AnyCheck] = {}
    for name in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        if not name.startswith("_"):
            found[name] = _check(partial(importlib.import_module, f"{GROUP}.{name}"))
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        if point.name in found or not is_word(point.name):
            reason = "is the name of another check" if point.name in found else "is no plain word"
            origin = point.dist.name if point.dist else "unknown"
            name = f"{origin}_{point.name}".replace("-", "_").replace(".", "_").lower()
            found[name] = broken(f"{point.name!r} of the package {origin} {reason}")
        else:
            found[point.name] = _check(point.load)
    return found


def _check(get: Callable[[], object]) -> AnyCheck:
    try:
        value = get()
        check = getattr(value, "CHECK", value)
    except Exception as error:  # whatever another's module raises is its own fault
        return broken(f"{type(error).__name__}: {error}")
    if not isinstance(check, Check):
        return broken(f"it has no CHECK of type Check, but {type(check).__name__}")
    return check


def broken(reason: str) -> AnyCheck:
    """A check in place of one that could not be loaded: UNKNOWN on every node, with the reason."""

    def judge(facts: Facts, options: NoOptions) -> Iterator[Finding]:
        yield unknown("not_loaded", f"the check could not be loaded: {reason}")

    return Check(
        title="could not be loaded",
        options=NoOptions(),
        judge=judge,
        codes={"not_loaded": Code("The check's own module cannot be loaded; mend or remove it.")},
    )
