"""The example inventory: every variable and every option of every check, commented out.

python -m clustercheck.example > inventory.example.ini
"""

import dataclasses
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from clustercheck import parts, plugin, profile, registry
from clustercheck.check import AnyCheck
from clustercheck.options import as_text
from clustercheck.parts import PARTS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WIDTH = 79

HEADER = """\
# An example inventory for clustercheck. Copy it and keep what you need.
#
# A line that begins with "#" and a blank is a comment. One that begins with "#"
# alone is a setting, with its default or an example: take the "#" away.
# An existing INI inventory of Ansible's can be used as it stands instead.
#
#   clustercheck run -i FILE                   ask all nodes
#   clustercheck run -i FILE -w @gpu -c ntp    one group, one check
#   clustercheck explain NAME                  all about a check
#   clustercheck explain --effective -i FILE -w gpu01    what is set for a node

# Nodes that are in no group, one name or node set a line. ~/.ssh/config applies
# as with ssh; a variable may stand behind a node.
login1
"""

GROUPS = """\

# A group, for -w @gpu and for variables and options that only its nodes have.
# Node sets are written as in Slurm, gpu[01-16,20], or in Ansible, gpu[01:16].
[gpu]
gpu[01-04]

[cpu]
cpu[001-002]

# A group of groups.
[compute:children]
gpu
cpu

# How nodes are reached: below [all:vars] for all, below [GROUP:vars] for a
# group, as NAME=VALUE behind a node; the nearest counts. What is not set is as
# with ssh.
[all:vars]
"""

OPTIONS = """\

# What checks tolerate. Below [check:NAME] an option is for all nodes. Below
# [GROUP:vars] or behind a node it is written NAME.OPTION=VALUE and is nearer;
# on the command line, -o NAME.OPTION=VALUE is nearest.
"""

PROFILE = """\

# A profile: checks, and how strictly they judge, for one kind of work, chosen
# with --profile NAME. `benchmark` is shipped: what is written below it here
# takes the place of what is shipped. An option is nearer here than anywhere but
# in -o.
#[profile:benchmark]
"""

PLUGIN = """\

# Any monitoring plug-in that the nodes have is a check too, under a name of
# your own: its exit status and its first line are the finding.
#[check:var_space]
"""

SWEEP = """\

# The sweep that a timer starts each night (`clustercheck sweep`), and its mail.
# mail.to and mail.when may also stand below [GROUP:vars]: who then gets, beside
# the others, what concerns the nodes of that group.
#[sweep]
"""

# For what is empty as it comes, an example.
SWEEP_EXAMPLES = {
    "cluster": "hpc1",
    "page": "/var/www/html/clustercheck.html",
    "mail.to": "hpc-ops@example.org, root",
    "mail.sender": "clustercheck@example.org",
    "mail.ca": "/etc/ssl/own-authority.pem",
    "mail.login": "/etc/clustercheck/mail-login",
    "mail.chat": "slack://TOKEN-A/TOKEN-B/TOKEN-C/#hpc",
}

# What each variable is for, and an example.
VARIABLES = {
    "host": ("address or name to connect to, where it is not the node's own", "10.0.0.17"),
    "port": ("port of the SSH server", "22"),
    "user": ("login name", "admin"),
    "key": ("file of the private key", "~/.ssh/id_ed25519"),
    "jump": ("jump host, [user@]host[:port]; several joined by commas", "gate.example.org"),
    "become": ("sudo: probes that need root may use `sudo -n`; no: they may not", "no"),
}


def text(checks: Mapping[str, AnyCheck]) -> str:
    """The whole file, with the options of these checks."""
    return "".join(f"{line}\n" for line in _lines(checks))


def _lines(checks: Mapping[str, AnyCheck]) -> Iterator[str]:
    yield from HEADER.splitlines()
    words, value = VARIABLES["host"]  # of one node only: one address cannot be that of several
    yield from _comment(f"host: {words}")
    yield f"#login2 host={value}"
    yield from GROUPS.splitlines()
    for name, (words, value) in VARIABLES.items():
        if name != "host":
            yield from _comment(words)
            yield f"#{name} = {value}"
    yield from OPTIONS.splitlines()
    for name, check in checks.items():
        if check.option_fields():
            yield ""
            yield from _comment(f"{name}: {check.title}")
            yield f"[check:{name}]"
            yield from _options(check.options)
    yield from PROFILE.splitlines()
    yield from _profile(checks)
    yield from PLUGIN.splitlines()
    yield from _options(plugin.Options(command="check_disk -w 10% -c 5% -p /var"))
    yield from SWEEP.splitlines()
    for name, part in PARTS.items():
        before = "" if name == parts.SWEEP else f"{name}."
        yield from _options(part.options, before, SWEEP_EXAMPLES)


def _profile(checks: Mapping[str, AnyCheck]) -> Iterator[str]:
    made = profile.shipped()[profile.SHIPPED]
    fail_on = [word for word in made.fail_on if word.partition(".")[0] in checks]
    yield from _comment("the checks that are made; all where none is named")
    yield from _list("checks", [name for name in made.checks if name in checks])
    yield from _comment("checks that are not made")
    yield from _list("skip", made.skip)
    yield from _comment("findings that count as a failure where they are a warning")
    yield from _list("fail_on", fail_on)
    yield from _comment("options, as CHECK.OPTION")
    for check, settings in made.shipped.items():
        for option, setting in settings.items() if check in checks else ():
            yield f"#{check}.{option} = {setting.text}"


def _list(name: str, words: Sequence[str]) -> Iterator[str]:
    yield f"#{name} = {', '.join(words)}".rstrip()


def _options(
    options: "DataclassInstance", before: str = "", examples: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A comment and a setting for each. before: of the names. examples: in place of defaults."""
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        unit = field.metadata.get("unit", "")
        kind = "yes or no" if isinstance(value, bool) else unit
        kind = "a list, joined by commas" if isinstance(value, tuple) else kind
        yield from _comment(field.metadata.get("text", "") + (f" ({kind})" if kind else ""))
        name = f"{before}{field.name}"
        text = (examples or {}).get(name, as_text(value))
        yield f"#{name} = {_quoted(text)}".rstrip()


def _comment(words: str) -> list[str]:
    return textwrap.wrap(words, WIDTH, initial_indent="# ", subsequent_indent="# ")


def _quoted(value: str) -> str:
    """In quotes, where it would otherwise be read as a comment or lose its own quotes."""
    if "#" not in value and value[:1] not in ("'", '"'):
        return value
    return f'"{value}"' if '"' not in value else f"'{value}'"


if __name__ == "__main__":
    sys.stdout.write(text(registry.own()))
