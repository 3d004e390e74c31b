"""The command line. Everything that costs start-up time is imported where it is used."""

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from clustercheck import __version__, exit_codes, streams
from clustercheck.arguments import (
    AskPassphraseOption,
    AskPasswordOption,
    BecomeOption,
    ChecksOption,
    ConnectTimeoutOption,
    ExcludeOption,
    FormOption,
    HeavyParallelOption,
    HostKeysOption,
    InventoryOption,
    JumpOption,
    KeyOption,
    KnownHostsOption,
    MaxTimeOption,
    NodesOption,
    OptionOption,
    OutputOption,
    ParallelOption,
    PortOption,
    ProcessesOption,
    RecordOption,
    SkipOption,
    SshConfigOption,
    SshOption,
    TimeoutOption,
    UserOption,
    VerboseOption,
)
from clustercheck.errors import ConfigError, UsageError

# typer's own complaints about the command line, whatever it has them from
COMMAND_LINE_ERROR: Any = typer.BadParameter.__mro__[2]

# "\b" keeps the lines as they are
EXAMPLES = """\b
Examples:
  clustercheck run                      check this machine
  clustercheck run -w 'gpu[01-16]'      check these nodes, reached as ssh reaches them
  clustercheck run -i inventory.ini     check all nodes of an inventory
  clustercheck explain ntp.offset       what a finding means, and what to do
"""

app = typer.Typer(
    name="clustercheck",
    help="Which nodes are fit for work, what is wrong with the others, and what to do about it.",
    epilog=EXAMPLES,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"clustercheck {__version__}")
        raise typer.Exit


@app.callback()
def clustercheck(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(exit_codes.USAGE)


@app.command()
def run(
    inventory: InventoryOption = None,
    nodes: NodesOption = None,
    exclude: ExcludeOption = "",
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    user: UserOption = "",
    port: PortOption = 0,
    key: KeyOption = "",
    jump: JumpOption = "",
    become: BecomeOption = "",
    ssh_config: SshConfigOption = None,
    known_hosts: KnownHostsOption = None,
    host_keys: HostKeysOption = "strict",
    ssh: SshOption = "paramiko",
    ask_password: AskPasswordOption = False,
    ask_passphrase: AskPassphraseOption = False,
    parallel: ParallelOption = 0,
    processes: ProcessesOption = 0,
    connect_timeout: ConnectTimeoutOption = 0,
    timeout: TimeoutOption = 0,
    max_time: MaxTimeOption = 0,
    heavy_parallel: HeavyParallelOption = 1,
    record: RecordOption = None,
    form: FormOption = "text",
    output: OutputOption = None,
    verbose: VerboseOption = 0,
) -> int:
    """Ask the nodes, judge the answers, report.

    Without -i and -w, it is this machine that is checked.

    Exit code: 0 all pass, 1 worst is a warning, 2 any failure, 3 something could not be found out,
    64 wrong usage, 78 wrong configuration.
    """
    from clustercheck import execute, planning

    _log(verbose)
    way = execute.Way(
        defaults={"user": user, "port": port, "key": key, "jump": jump, "become": become},
        ssh_config=ssh_config,
        known_hosts=known_hosts,
        host_keys=host_keys,
        ssh=ssh,
        connect_timeout=connect_timeout,
        **_secrets(ask_password, ask_passphrase),
    )
    limits = execute.Limits(
        parallel=parallel,
        processes=processes,
        node_seconds=timeout,
        max_seconds=max_time or None,
        heavy_parallel=heavy_parallel,
    )
    shown = execute.Shown(form, output, verbose)
    wanted = planning.Wanted(inventory, nodes, exclude, checks, skip, tuple(option or ()))
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _interrupt)
    return execute.run(wanted, way, limits, shown, record)


@app.command()
def admit(
    candidates: Annotated[
        str, typer.Argument(metavar="NODES", help="Who wants to join: node09, 'node[09-12]'.")
    ],
    like: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="NODES",
            help="Nodes that are in already: 'node[01-08]', @GROUP.",
            show_default="the others of the candidates' smallest group, or of the inventory",
        ),
    ] = "",
    light: Annotated[
        bool, typer.Option("--light", help="Without what loads file servers.")
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Hold them against this file as well."),
    ] = None,
    save_baseline: Annotated[
        Path | None,
        typer.Option("--save-baseline", metavar="FILE", help="Write what an admitted node is."),
    ] = None,
    inventory: InventoryOption = None,
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    user: UserOption = "",
    port: PortOption = 0,
    key: KeyOption = "",
    jump: JumpOption = "",
    become: BecomeOption = "",
    ssh_config: SshConfigOption = None,
    known_hosts: KnownHostsOption = None,
    host_keys: HostKeysOption = "strict",
    ssh: SshOption = "paramiko",
    ask_password: AskPasswordOption = False,
    ask_passphrase: AskPassphraseOption = False,
    connect_timeout: ConnectTimeoutOption = 0,
    timeout: TimeoutOption = 0,
    max_time: MaxTimeOption = 0,
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="text, json or markdown.")
    ] = "text",
    output: OutputOption = None,
    verbose: VerboseOption = 0,
) -> int:
    """Say whether a new or repaired node may join.

    It is checked more closely than by `run`, and held against nodes that are in already. Nothing
    is changed on any of them.

    Exit code: 0 admit, 1 admit with remarks, 2 do not admit, 3 do not admit, for something could
    not be found out; 64 wrong usage, 78 wrong configuration.
    """
    from clustercheck import admit as command
    from clustercheck import execute, planning

    _log(verbose)
    way = execute.Way(
        defaults={"user": user, "port": port, "key": key, "jump": jump, "become": become},
        ssh_config=ssh_config,
        known_hosts=known_hosts,
        host_keys=host_keys,
        ssh=ssh,
        connect_timeout=connect_timeout,
        **_secrets(ask_password, ask_passphrase),
    )
    limits = execute.Limits(0, 1, timeout, max_time or None, 1)
    asked = command.Asked(candidates, like, light, baseline, save_baseline, form, output, verbose)
    wanted = planning.Wanted(inventory, None, "", checks, skip, tuple(option or ()))
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _interrupt)
    return command.admit(asked, wanted, way, limits)


@app.command()
def diff(
    one: Annotated[str, typer.Argument(metavar="ONE", help="A node, or a folder of --record.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Another one.")],
    inventory: InventoryOption = None,
    user: UserOption = "",
    port: PortOption = 0,
    key: KeyOption = "",
    jump: JumpOption = "",
    become: BecomeOption = "",
    ssh_config: SshConfigOption = None,
    known_hosts: KnownHostsOption = None,
    host_keys: HostKeysOption = "strict",
    ssh: SshOption = "paramiko",
    ask_password: AskPasswordOption = False,
    ask_passphrase: AskPassphraseOption = False,
    connect_timeout: ConnectTimeoutOption = 0,
    timeout: TimeoutOption = 0,
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="text or json.")] = "text",
    verbose: VerboseOption = 0,
) -> int:
    """Show in what two nodes, or two recorded runs, differ.

    Two nodes are asked; of recorded runs no node is touched.

    Exit code: 0 no difference, 1 some, 3 a node could not be asked; 64 wrong usage, 78 wrong
    configuration.
    """
    from clustercheck import diff as command
    from clustercheck import execute, planning

    _log(verbose)
    way = execute.Way(
        defaults={"user": user, "port": port, "key": key, "jump": jump, "become": become},
        ssh_config=ssh_config,
        known_hosts=known_hosts,
        host_keys=host_keys,
        ssh=ssh,
        connect_timeout=connect_timeout,
        **_secrets(ask_password, ask_passphrase),
    )
    limits = execute.Limits(0, 1, timeout, None, 1)
    return command.diff(one, other, planning.Wanted(inventory), way, limits, form)


@app.command()
def judge(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `run --record` kept.")],
    inventory: InventoryOption = None,
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    form: FormOption = "text",
    output: OutputOption = None,
    verbose: VerboseOption = 0,
) -> int:
    """Judge a recorded run again, and touch no node.

    With -o or an inventory's options, thresholds are others than when it was recorded.
    """
    from clustercheck import execute, planning

    _log(verbose)
    wanted = planning.Wanted(inventory, None, "", checks, skip, tuple(option or ()))
    return execute.judge(directory, wanted, execute.Shown(form, output, verbose))


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
) -> None:
    """Tell all about a check, a finding or an option.

    What it means, what to do about it, and what the field notes say of it.
    """
    from clustercheck import explain, planning

    wanted = planning.Wanted(inventory, nodes, options=tuple(option or ()))
    if effective:
        chosen = planning.choose(wanted)
        for node in chosen.nodes:
            rows = chosen.inventory.effective(node.name)
            if word:
                planning.choose_checks(chosen.inventory.checks, word, "")
                rows = [row for row in rows if row.check == word]
            print(f"{node.name}:\n{explain.effective(rows)}")
    elif word:
        print(explain.page(word, planning.choose_all(wanted).checks))
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
    heavy: Annotated[
        bool, typer.Option("--heavy", help="The second step, which loads shared things.")
    ] = False,
    become: Annotated[str, typer.Option("--become", metavar="sudo", help="As with run.")] = "",
) -> None:
    """Print exactly what would run on a node.

    It is the script for the first of the nodes, to be read before it is trusted.
    """
    from clustercheck import execute, planning

    wanted = planning.Wanted(inventory, nodes, "", checks, skip, tuple(option or ()))
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
def schema() -> None:
    """Print the JSON Schema of the reports."""
    import json

    from clustercheck.render.json import schema as report_schema

    print(json.dumps(report_schema(), indent=2))


def _interrupt(signum: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _secrets(ask_password: bool, ask_passphrase: bool) -> dict[str, str]:
    return {
        "password": _secret("CLUSTERCHECK_PASSWORD", "Password: ", ask_password),
        "passphrase": _secret("CLUSTERCHECK_PASSPHRASE", "Passphrase: ", ask_passphrase),
    }


def _secret(variable: str, prompt: str, ask: bool) -> str:
    """From the environment or a prompt; never from an argument, which `ps` shows to all."""
    if ask:
        import getpass

        if not sys.stdin.isatty():
            raise UsageError(f"no terminal to ask on; set {variable} instead")
        try:
            return getpass.getpass(prompt)
        except EOFError:
            raise UsageError(f"nothing was typed; or set {variable} instead") from None
    return os.environ.get(variable, "")


def _log(verbose: int) -> None:
    """What our own modules do at -v, the libraries' words at -vv."""
    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="clustercheck: %(message)s"
    )
    logging.getLogger("clustercheck").setLevel(level)
    # the causes are told as findings; what paramiko logs beside them is for whoever asks
    logging.getLogger("paramiko").setLevel(logging.DEBUG if verbose > 1 else logging.CRITICAL)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit. A bug shows its traceback; nothing else does."""
    output = streams.prepare()
    try:
        status = app(arguments, standalone_mode=False, prog_name="clustercheck")
        sys.stdout.flush()
    except COMMAND_LINE_ERROR as error:
        _complain(_worded(error.format_message()), exit_codes.USAGE)
    except UsageError as error:
        _complain(str(error), exit_codes.USAGE)
    except ConfigError as error:
        _complain(str(error), exit_codes.CONFIG)
    except KeyboardInterrupt:  # before there was anything to report, or while it was written
        output.give_up()
        _complain("interrupted", exit_codes.INTERRUPTED)
    except (OSError, SystemExit) as error:
        # typer makes 1 of a reader that has gone, which is the exit code of a warning
        if output.failure is None or (error is not output.failure and isinstance(error, OSError)):
            raise
        output.give_up()
        if isinstance(output.failure, BrokenPipeError):  # whoever reads us has seen enough
            sys.exit(exit_codes.BROKEN_PIPE)
        reason = output.failure.strerror
        _complain(f"cannot write standard output: {reason}", exit_codes.USAGE)
    sys.exit(status if isinstance(status, int) else 0)


def _worded(complaint: str) -> str:
    if "extra argument" in complaint:  # `clustercheck run gpu01`, as with ssh
        return f"{complaint}; nodes are named with -w, checks with -c"
    return complaint


def _complain(text: str, status: int) -> NoReturn:
    from clustercheck.render.escape import visible

    for line in text.splitlines():
        streams.complain(f"clustercheck: {visible(line)}")
    sys.exit(status)
