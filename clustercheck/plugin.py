"""A monitoring plug-in, as Nagios, Icinga and Checkmk run them, asked on each node.

The plug-in's exit status is the verdict (0 as it should be, 1 warning, 2 critical, 3 unknown), the
first line that it prints is the message, and the first value behind the sign | is kept as a
number. Anything else that it may do (no output, another status, not there, too slow) is UNKNOWN.
It must be on the node already: a name without a path is looked for on the PATH and in the folders
where distributions keep plug-ins. It is run as it stands, so what it writes or loads is its own.
"""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from clustercheck import reach
from clustercheck.check import (
    AnyCheck,
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    Remedy,
    fail,
    ok,
    option,
    unknown,
    warn,
)
from clustercheck.options import instance
from clustercheck.script import is_word
from clustercheck.settings import OVERRIDE, Fault, Inventory, Setting, refuse

# Where Debian and Ubuntu, RHEL (64 and 32 bits), SUSE, Alpine and a build from source put them.
FOLDERS = (
    "/usr/lib/nagios/plugins",
    "/usr/lib64/nagios/plugins",
    "/usr/lib/monitoring-plugins",
    "/usr/lib64/monitoring-plugins",
    "/usr/local/nagios/libexec",
)

# The output goes by files, which the kernel bounds, in the directory of the run.
PROBE = rf"""
for folder in {" ".join(FOLDERS)}; do
    PATH=$PATH:$ROOT$folder
done
kept=${{0%/*}}/$cc_name
sh -c "$command" >"$kept.stdout" 2>"$kept.stderr" 3>&-
fact status $?
head -c 8192 "$kept.stdout" | lines output
head -c 8192 "$kept.stderr" | tail -n 1 | head -c 400 | lines stderr
"""

LONGEST_MESSAGE = 300  # characters of the first line that are shown

SEE_PLUGIN = (
    "See the plug-in's own documentation for what the message means, and run the command on the"
    " node by hand to see all that it prints."
)
INSTALL = Remedy(
    "Install the plug-in on the node, or give its full path in command =, and let the user that"
    " clustercheck logs in as run it."
)
RUN_BY_HAND = Remedy(
    "Run the command on the node by hand and look at its exit status (`echo $?`): a plug-in ends"
    " with 0, 1, 2 or 3 and prints one line at least."
)


@dataclass(frozen=True)
class Options:
    command: str = option("", "the plug-in and its arguments, as sh reads them on the node")
    limit: Annotated[int, Ge(1), Le(3600)] = option(
        10, "how long it may take, alike for all nodes", unit="s"
    )
    needs_root: bool = option(False, "run it as root, alike for all nodes")
    remedy: str = option(SEE_PLUGIN, "what to do about a warning or a failure")
    see: str = option("", "where to read more: a section of the field notes such as §4.1.3")


# What the script settles for all nodes at once.
FOR_ALL_NODES = ("limit", "needs_root")

_PERFDATA = re.compile(r"\s*(?:'(?:[^']|'')*'|[^'=\s][^=]*)=([^;\s]*)")
_VALUE = re.compile(r"(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)([A-Za-z%]*)")


def checks_of(inventory: Inventory) -> dict[str, AnyCheck]:
    """The checks that the inventory makes of plug-ins, by name.

    Raises ConfigError or UsageError with the place of each fault in what it says of them.
    """
    refuse(_faults(inventory))
    plain = {name: _check(Options()) for name in inventory.plugins}
    inventory.with_checks(plain)  # refuses unknown options and values that cannot be
    return {name: _check(_options(name, plain[name], inventory)) for name in inventory.plugins}


def _faults(inventory: Inventory) -> Iterator[Fault]:
    for name, settings in inventory.plugins.items():
        place = settings["command"].place
        if not is_word(name) or name == reach.NAME:
            text = f"{name!r} cannot be a check's name; write small letters, digits and _"
            if name == reach.NAME:
                text = f"{name!r} stands for the way to a node in reports; take another name"
            yield Fault(place, text)
        for scope, layer in inventory.layers.items():
            for option_name, setting in layer.get(name, {}).items():
                if option_name == "command" and (fault := _unreadable(setting)):
                    yield Fault(setting.place, fault)
                elif option_name in FOR_ALL_NODES and scope not in ("check", OVERRIDE):
                    yield Fault(
                        setting.place,
                        f"{name}.{option_name} is the same for all nodes; "
                        f"write it below [check:{name}]",
                    )


def _unreadable(command: Setting) -> str:
    try:
        words = shlex.split(command.text)
    except ValueError:
        return f"command: a quote is not closed in {command.text!r}"
    return "" if words else "command is empty; write the plug-in and its arguments"


def _options(name: str, check: AnyCheck, inventory: Inventory) -> Options:
    """What is set for all nodes: `[check:NAME]`, and -o before it."""
    settings: Mapping[str, Setting] = {
        **inventory.plugins[name],
        **inventory.layers.get(OVERRIDE, {}).get(name, {}),
    }
    made = instance(check, {option: setting.text for option, setting in settings.items()})
    assert isinstance(made, Options)
    return made


def _check(options: Options) -> AnyCheck:
    words = shlex.split(options.command)
    remedies = (_remedy(options),)
    return Check(
        title=f"Monitoring plug-in {words[0].rpartition('/')[2] if words else ''}".rstrip(),
        options=options,
        judge=judge,
        codes={
            "ok": Code("The plug-in ended with 0: as it should be."),
            "warning": Code("The plug-in ended with 1: a warning.", remedies),
            "critical": Code("The plug-in ended with 2: critical.", remedies),
            "unknown": Code("The plug-in ended with 3: it could not tell.", remedies),
            "not_run": Code("The plug-in is not on the node, or may not be run.", (INSTALL,)),
            "no_output": Code("The plug-in printed nothing.", (RUN_BY_HAND,)),
            "bad_exit": Code("The plug-in ended in a way that plug-ins do not.", (RUN_BY_HAND,)),
        },
        probe=PROBE,
        probe_options=("command",),
        needs_root=options.needs_root,
        limit=options.limit,
    )


def _remedy(options: Options) -> Remedy:
    return Remedy(options.remedy, options.see)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    status = facts["status"]
    first = facts["output"].partition("\n")[0]
    message, _, perfdata = (part.strip() for part in first.partition("|"))
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    said = f": {facts['stderr'].strip()}" if facts["stderr"].strip() else ""
    remedy, value = _remedy(options), _first_value(perfdata)
    if status in ("126", "127"):
        what = "was not found" if status == "127" else "cannot be run"
        yield unknown("not_run", f"the command {what} (exit status {status}){said}", INSTALL)
    elif status not in ("0", "1", "2", "3"):
        yield unknown("bad_exit", f"{_ending(status)}, should be 0 to 3{said}", RUN_BY_HAND)
    elif not message:
        words = f"no message was printed (exit status {status}){said}"
        yield unknown("no_output", words, RUN_BY_HAND)
    elif status == "0":
        yield ok("ok", message, value=value)
    elif status == "1":
        yield warn("warning", message, remedy, value=value)
    elif status == "2":
        yield fail("critical", message, remedy, value=value)
    else:
        yield unknown("unknown", message, remedy)


def _ending(status: str) -> str:
    number = int(status) if status.isdecimal() else 0
    return f"exit status {status}" + (f" (signal {number - 128})" if number > 128 else "")


def _first_value(perfdata: str) -> Quantity | None:
    """The first value of `'label'=12.5ms;warn;crit;min;max …`, None where it is no number."""
    match = _PERFDATA.match(perfdata)
    value = _VALUE.fullmatch(match[1]) if match else None
    if value is None or not math.isfinite(number := float(value[1])):
        return None
    return Quantity(number, value[2])
