"""What tells or writes something and asks no node: checks, explain, cuda, script, init, schema."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from clustercheck.cli.app import app
from clustercheck.cli.arguments import (
    ChecksOption,
    InventoryOption,
    NodesOption,
    OptionOption,
    ProfileOption,
    SkipOption,
)
from clustercheck.errors import UsageError, nearest


@app.command("checks")
def list_checks(
    inventory: InventoryOption = None,
) -> None:
    """List the checks."""
    from clustercheck import explain, planning

    print(explain.checks_table(planning.choose_all(planning.Wanted(inventory)).checks))


@app.command("explain")
def explain_word(
    word: Annotated[
        str,
        typer.Argument(
            metavar="NAME[.CODE]",
            help="ntp, ntp.offset, ntp.warn_offset: a check, a finding, an option.",
        ),
    ] = "",
    effective: Annotated[
        bool, typer.Option("--effective", help="The options as they stand for a node.")
    ] = False,
    inventory: InventoryOption = None,
    nodes: NodesOption = None,
    option: OptionOption = None,
    profile: ProfileOption = "",
) -> None:
    """Tell all about a check, a finding, an option or a profile.

    What it means, what to do about it, and what the field notes say of it.
    """
    from clustercheck import explain, planning

    wanted = planning.Wanted(inventory, nodes, options=tuple(option or ()), profile=profile)
    if effective:
        chosen = planning.choose(wanted)
        for node in chosen.nodes:
            rows = chosen.inventory.effective(node.name)
            if word:
                planning.choose_checks(chosen.inventory.checks, word, "")
                rows = [row for row in rows if row.check == word]
            print(f"{node.name}:\n{explain.effective(rows)}")
    elif word:
        known = planning.choose_all(wanted).inventory
        print(explain.page(word, known.checks, known.profiles))
    else:
        raise UsageError("explain what? Give a check (see `clustercheck checks`) or a code")


@app.command("cuda")
def cuda_version(
    version: Annotated[str, typer.Argument(metavar="[VERSION]", help="12.4; none lists all.")] = "",
) -> None:
    """Tell which drivers and GPUs a CUDA version needs.

    It comes from a table, and touches no node.
    """
    from clustercheck import cuda

    sys.stdout.write(cuda.page(version))


@app.command()
def script(
    inventory: InventoryOption = None,
    nodes: NodesOption = None,
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    profile: ProfileOption = "",
    heavy: Annotated[
        bool, typer.Option("--heavy", help="The second step, which loads shared things.")
    ] = False,
    become: Annotated[str, typer.Option("--become", metavar="sudo", help="As with run.")] = "",
) -> None:
    """Print exactly what would run on a node.

    It is the script for the first of the nodes, to be read before it is trusted.
    """
    from clustercheck import execute, planning

    options = tuple(option or ())
    wanted = planning.Wanted(inventory, nodes, "", checks, skip, options, profile)
    sys.stdout.write(execute.script_text(wanted, become, heavy))


@app.command("init")
def first_inventory(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to; never overwritten.")
    ] = Path("inventory.ini"),
    slurm: Annotated[
        bool, typer.Option("--slurm", help="From Slurm, a group for each partition.")
    ] = False,
    hosts: Annotated[bool, typer.Option("--hosts", help="From /etc/hosts.")] = False,
    nodes: Annotated[
        str, typer.Option("-w", "--nodes", metavar="NODES", help="A node set: 'gpu[01-16]'.")
    ] = "",
) -> None:
    """Write a first inventory.

    It comes from Slurm where that is there, else from /etc/hosts; or from a node set.
    """
    from clustercheck import init

    source = _source(slurm, hosts, nodes)
    init.write_new(file, init.first_inventory(source))
    print(f"{file} written; look at it, then: clustercheck run -i {file}", file=sys.stderr)


def _source(slurm: bool, hosts: bool, nodes: str) -> str:
    given = [name for name, wanted in (("slurm", slurm), ("hosts", hosts)) if wanted]
    if nodes:
        given.append(nodes)
    if len(given) > 1:
        raise UsageError("give one of --slurm, --hosts and -w")
    return given[0] if given else ""


@app.command()
def schema(
    of: Annotated[
        str, typer.Argument(metavar="[WHAT]", help="Of what the commands write as JSON; see below.")
    ] = "report",
) -> None:
    """Print a JSON Schema of what is written as JSON.

    WHAT is report (of run and judge, where none is given), admission (of admit), diff or verdict
    (of gate).
    """
    import json

    from clustercheck.render import json as forms

    if of not in forms.SCHEMAS:
        hint = nearest(of, forms.SCHEMAS) or f"; it is one of {', '.join(forms.SCHEMAS)}"
        raise UsageError(f"there is no schema of {of!r}{hint}")
    print(json.dumps(forms.schema(of), indent=2))
