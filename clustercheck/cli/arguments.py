"""The options of the command line, with the words that `--help` has for them."""

from pathlib import Path
from typing import Annotated

import typer

LONGEST = 1_000_000  # seconds that a limit may be: 11 days, and all that the system's calls take

InventoryOption = Annotated[
    Path | None,
    typer.Option(
        "-i",
        "--inventory",
        envvar="CLUSTERCHECK_INVENTORY",
        metavar="FILE",
        help="Nodes, how to reach them, and options: INI, Ansible's too.",
    ),
]
NodesOption = Annotated[
    str | None,
    typer.Option(
        "-w",
        "--nodes",
        metavar="NODES",
        help="These nodes: 'gpu[01-16]!gpu07', @GROUP, user@host, - for standard input.",
    ),
]
ExcludeOption = Annotated[
    str, typer.Option("-x", "--exclude", metavar="NODES", help="Leave these nodes out.")
]
ChecksOption = Annotated[
    str, typer.Option("-c", "--checks", metavar="CHECK,…", help="Only these checks, by comma.")
]
SkipOption = Annotated[str, typer.Option("--skip", metavar="CHECK,…", help="All checks but these.")]
ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Judge as for this work: benchmark, or a [profile:NAME] of the inventory.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "-o", "--option", metavar="CHECK.OPTION=VALUE", help="Set a check's option (repeatable)."
    ),
]
FormOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORM",
        help="text, json, jsonl, csv, markdown, html, prometheus, nagios or junit.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write the report there instead."),
]
VerboseOption = Annotated[
    int,
    typer.Option(
        "-v",
        "--verbose",
        count=True,
        help="Say more (-vv: the libraries' words too).",
        show_default=False,
    ),
]
UserOption = Annotated[
    str, typer.Option("-l", "--user", metavar="NAME", help="Login name, where none is set.")
]
PortOption = Annotated[
    int,
    typer.Option(
        "-p",
        "--port",
        min=0,
        max=65535,
        metavar="PORT",
        help="Port, where none is set.",
        show_default=False,
    ),
]
KeyOption = Annotated[
    str, typer.Option("--key", metavar="FILE", help="Private key, where none is set.")
]
JumpOption = Annotated[
    str,
    typer.Option("-J", "--jump", metavar="[USER@]HOST", help="Jump host, where none is set."),
]
BecomeOption = Annotated[
    str, typer.Option("--become", metavar="sudo", help="Way to root, where none is set.")
]
SshConfigOption = Annotated[
    Path | None,
    typer.Option("-F", "--ssh-config", metavar="FILE", help="In place of ~/.ssh/config."),
]
KnownHostsOption = Annotated[
    Path | None,
    typer.Option("--known-hosts", metavar="FILE", help="In place of ~/.ssh/known_hosts."),
]
HostKeysOption = Annotated[
    str,
    typer.Option(
        "--host-keys",
        metavar="strict|accept-new",
        help="accept-new adds the keys of unknown hosts; a changed key is always refused.",
    ),
]
SshOption = Annotated[
    str,
    typer.Option(
        "--ssh",
        metavar="paramiko|openssh",
        help="openssh runs this machine's ssh: for GSSAPI, FIDO keys, certificates; slower.",
    ),
]
ViaOption = Annotated[
    str,
    typer.Option(
        "--via",
        metavar="ssh|srun",
        help="srun asks by steps of Slurm: this job's nodes, or those that are idle.",
    ),
]
AskPasswordOption = Annotated[
    bool,
    typer.Option("-k", "--ask-password", help="Ask for a password (or set CLUSTERCHECK_PASSWORD)."),
]
AskPassphraseOption = Annotated[
    bool,
    typer.Option("--ask-passphrase", help="Ask for the key's (or set CLUSTERCHECK_PASSPHRASE)."),
]
ParallelOption = Annotated[
    int,
    typer.Option(
        "--parallel",
        min=0,
        metavar="N",
        help="Nodes at a time.",
        show_default="64, or as many as files may be open",
    ),
]
ConnectTimeoutOption = Annotated[
    float,
    typer.Option(
        "--connect-timeout",
        min=0,
        max=LONGEST,
        metavar="SECONDS",
        help="For the connection to a node.",
        show_default="ConnectTimeout of ~/.ssh/config, else 10",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        min=0,
        max=LONGEST,
        metavar="SECONDS",
        help="For everything about a node.",
        show_default="the slowest probe's limit and 15",
    ),
]
MaxTimeOption = Annotated[
    float,
    typer.Option(
        "--max-time",
        min=0,
        max=LONGEST,
        metavar="SECONDS",
        help="For the whole run; nodes not reached by then are named.",
        show_default="no limit",
    ),
]
ProcessesOption = Annotated[
    int,
    typer.Option(
        "--processes",
        min=0,
        max=64,
        metavar="N",
        help="Processes that share the nodes.",
        show_default="1, and from 2,000 nodes on one for each core, up to 4",
    ),
]
HeavyParallelOption = Annotated[
    int,
    typer.Option(
        "--heavy-parallel",
        min=1,
        metavar="N",
        help="Nodes at a time that load one shared thing, such as a file server.",
    ),
]
RecordOption = Annotated[
    Path | None,
    typer.Option("--record", metavar="DIR", help="Keep the answers there, for `judge`."),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Folder of the history and of unsent mail.",
        show_default="$XDG_STATE_HOME/clustercheck",
    ),
]
