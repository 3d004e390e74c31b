"""Slurm has the node in service, slurmd runs and answers there, and its files are in order.

The controller is asked once for all nodes: from this machine where it has scontrol, otherwise by
way of two of the nodes. A thousand nodes never ask it at once. Nothing is drained or resumed: a
reason that somebody gave stays as it is, and is shown with who gave it and when.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    Target,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
)

from . import _slurm_here
from ._df import parse_df, size_words
from ._slurm_ask import askers, compare_states, has_slurm, tolerance_of
from ._slurm_conf import compare_conf, whom_to_ask
from ._slurm_probe import FOLLOW_PROBE, PROBE
from ._slurm_read import read_nodes, read_ping
from ._slurm_remedies import (
    ANSWER,
    ASK_WHO,
    ASKER,
    BACKUP,
    CONTROLLER,
    GRES,
    HARDWARE,
    KILL_TASK,
    KILL_TASK_GONE,
    LOOK_FIRST,
    OWN_ADDRESS,
    OWN_DRAIN,
    OWN_NAME,
    PLANNED,
    READABLE,
    REBOOTED,
    REGISTER,
    SAME_CONF,
    SAME_KEY,
    SAME_RELEASE,
    SILENT,
    SPOOL_FULL,
    SPOOL_GONE,
    SPOOL_MISSING,
    SPOOL_MODE,
    START_SLURMD,
    VERSION,
)
from ._slurm_state import judge_controllers, judge_record

CONF_WORDS = ("none", "unreadable")

# Without a credential that the others take, the node says nothing to its controller, nor to itself.
MUNGE_FAULTS = ("munge.works", "munge.same_key", "munge.across", "munge.clock")

# A batch script may be 4 MiB (max_script_size), and there is one for each job that runs.
LEAST_INODES = 1000
# Who is asked again asks the controller, too: few do. More stuck nodes have the same cause.
MOST_STUCK = 10


@dataclass(frozen=True)
class Options:
    ask: Literal["auto", "here", "node", "never"] = option(
        "auto",
        "who asks the controller: this machine (here), two nodes (node), the nodes where this"
        " machine cannot (auto), or nobody (never)",
    )
    allow: tuple[str, ...] = option(
        (), "states of a node that are no fault here, as sinfo writes them: drain, maint, resv"
    )
    program_users: tuple[str, ...] = option(
        ("root", "slurm"),
        "users for whom programs drain nodes (SlurmUser, health checks): their drains are faults,"
        " anybody else's are decisions",
    )
    spool_free_mb: Annotated[int, Ge(0)] = option(
        64, "free space that SlurmdSpoolDir needs, below which jobs cannot be started", unit="MB"
    )
    same_conf: bool = option(
        True, "what slurm.conf, its includes and cgroup.conf say must be the same on all nodes"
    )


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    installed, conf = facts["installed"], facts["conf"]
    if "here.node" in facts:
        yield from judge_controllers(read_ping(facts.get("here.ping", "")), "")
        known = Facts({**facts, "controller_version": facts.get("here.version", "")})
        for record in read_nodes(facts["here.node"]):
            yield from judge_record(known, record, tolerance_of(options))
    if installed not in ("yes", "no") or not (conf.startswith("/") or conf in CONF_WORDS):
        yield unknown("slurmd", "whether Slurm is installed cannot be read")
        return
    if not has_slurm(facts):
        if not facts.get("tools", ""):
            yield skip("absent", "no Slurm on the node")
        else:
            yield skip("absent", "Slurm's commands, and neither slurmd nor slurm.conf")
        return
    if conf == "unreadable":
        yield unknown("unreadable", "slurm.conf cannot be read", READABLE)
    if installed != "yes":
        yield skip("no_slurmd", "no slurmd is installed: no jobs are run here")
        return
    yield from _slurmd(facts)
    yield from _spool(facts, options)


def _slurmd(facts: Facts) -> Iterator[Finding]:
    slurmd = facts["slurmd"]
    if slurmd == "stopped":
        if facts["enabled"] == "yes":
            message = "slurmd does not run, and is to run from boot on"
            yield fail("not_running", message, START_SLURMD)
        else:
            yield skip("no_slurmd", "slurmd is installed, does not run, and is not started at boot")
        return
    if not slurmd.isdecimal():
        yield unknown("slurmd", f"what runs cannot be read: {slurmd[:40]!r}")
        return
    status = facts.get("answer_status")
    said = facts.get("answer", "").strip().splitlines()
    last = said[-1].strip()[:200] if said else "no word"
    if status is None:
        yield ok("slurmd", "slurmd runs")
    elif status in ("124", "137"):
        yield fail("answer", "slurmd runs, and gives no answer to scontrol within 4 s", ANSWER)
    elif status != "0" and ("refused" in last or "timed out" in last):
        yield fail("answer", f"slurmd runs, and does not answer scontrol: {last}", ANSWER)
    elif status != "0" or not any("=" in line for line in said):
        yield unknown("answer", f"whether slurmd answers could not be found out: {last}")
    else:
        values = {k.strip(): v.strip() for k, _, v in (line.partition("=") for line in said)}
        version = f" ({values['Version'][:40]})" if values.get("Version") else ""
        yield ok("slurmd", f"slurmd{version} runs and answers")


def _spool(facts: Facts, options: Options) -> Iterator[Finding]:
    path, mode = facts["spool"], facts["spool_mode"]
    running = facts["slurmd"] != "stopped"
    if "%" in path:
        yield unknown("spool", f"SlurmdSpoolDir is {path}, and the node's name was not told")
        return
    if mode == "hung":
        yield unknown("spool", f"{path} gives no answer within 3 s")
        return
    if mode == "No such file or directory":
        if running:
            yield fail("spool", f"{path} is not there, and slurmd runs", SPOOL_MISSING)
        return
    if not mode.startswith("d") or len(mode) < 10:
        yield unknown("spool", f"{path} cannot be looked at: {mode[:100]}")
        return
    if mode[8] == "w" and mode[9] not in "tT":
        yield warn(
            "spool_mode", f"{path} has mode {mode[:10]}: any user may write there", SPOOL_MODE
        )
    space = parse_df(facts["space"], path)
    if space is None or not space.total:
        yield unknown("spool", f"the space of {path} could not be found out")
        return
    value = Quantity(space.free * 1024, "B", less_is_worse=True)
    said = f"{path} has {size_words(space.free)} free"
    inodes = parse_df(facts["inodes"], path)
    if space.free < options.spool_free_mb * 1000 * 1000 / 1024:
        message = f"{said}, should be {options.spool_free_mb} MB or more"
        yield fail("spool", message, SPOOL_FULL, value=value)
    elif inodes is not None and inodes.total and inodes.free < LEAST_INODES:
        message = f"{said} and {inodes.free} inodes, should be {LEAST_INODES} inodes or more"
        yield fail("spool", message, SPOOL_FULL, value=value)
    else:
        yield ok("spool", said, value=value)


def follow(facts: Mapping[str, Facts], options: Mapping[str, Options]) -> list[str]:
    """Who asks the controller, whose slurm.conf is read, and where a process is stuck."""
    asking = {n: t for n, t in facts.items() if options[n].ask in ("auto", "node")}
    comparing = {n: t for n, t in facts.items() if options[n].same_conf}
    stuck = [n for n, t in facts.items() if "kill task failed" in t.get("here.node", "").lower()]
    stuck = [n for n in stuck if not facts[n].get("waiting", "")]
    return list(dict.fromkeys([*askers(asking), *whom_to_ask(comparing), *stuck[:MOST_STUCK]]))


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    yield from compare_states(facts, options)
    yield from compare_conf({n: t for n, t in facts.items() if options[n].same_conf})


def probe_from_here(targets: Sequence[Target], options: Options) -> dict[str, dict[str, str]]:
    """What the controller says of each node, asked once."""
    return _slurm_here.facts(targets) if options.ask in ("auto", "here") else {}


CODES = {
    "absent": Code("Slurm is not used on the node."),
    "no_slurmd": Code("The node runs no jobs: slurmd is not there, or not meant to run."),
    "state": Code(
        "The node's state as its controller has it, with the reason, who gave it and when. A drain"
        " by a person is a decision, one by Slurm or a health check a fault.",
        (
            *(ASK_WHO, OWN_DRAIN, LOOK_FIRST, KILL_TASK, KILL_TASK_GONE, SPOOL_FULL, SPOOL_GONE),
            *(GRES, HARDWARE, REBOOTED, SILENT, PLANNED, REGISTER, ASKER),
            *(SAME_KEY, SAME_RELEASE, VERSION),
        ),
    ),
    "controller": Code(
        "Whether slurmctld answers, the primary and its backups.", (CONTROLLER, BACKUP)
    ),
    "slurmd": Code("Whether slurmd runs, and answers scontrol on the node."),
    "not_running": Code("The daemon slurmd does not run where it should.", (START_SLURMD,)),
    "answer": Code("The daemon slurmd runs and does not answer.", (ANSWER,)),
    "spool": Code(
        "Whether SlurmdSpoolDir is there and has room: without it Slurm drains the node.",
        (SPOOL_FULL, SPOOL_MISSING),
    ),
    "spool_mode": Code("Who may write to SlurmdSpoolDir.", (SPOOL_MODE,)),
    "gres": Code("GPUs that Slurm counts on, against device files on the node.", (GRES,)),
    "size": Code(
        "What `slurmd -C` finds on the node (CPUs, sockets * cores * threads, memory), against what"
        " Slurm's configuration says. With less the node is not taken (INVALID_REG), but for"
        " SlurmdParameters=config_overrides; more is normal.",
        (HARDWARE,),
    ),
    "version": Code(
        "The release of slurmd, which may be some behind that of its slurmctld, and never newer.",
        (VERSION,),
    ),
    "name": Code(
        "The node's host name against NodeHostname: where they differ, slurmd does not start.",
        (OWN_NAME,),
    ),
    "address": Code(
        "Whether the address by which Slurm looks for the node (NodeAddr) is one of its own.",
        (OWN_ADDRESS,),
    ),
    "conf": Code(
        "What slurm.conf, its includes and cgroup.conf say, against those of the other nodes."
        " Comments and blanks do not count.",
        (SAME_CONF,),
    ),
    "unreadable": Code("The file slurm.conf is there and cannot be read.", (READABLE,)),
}

CHECK = Check(
    title="State in Slurm, slurmd and its spool directory, GPUs, slurm.conf",
    stale="time",
    options=Options(),
    judge=judge,
    codes=CODES,
    probe=PROBE,
    probe_options=("ask",),
    limit=35,
    follows={
        "state": (*MUNGE_FAULTS, "slurm.name", "slurm.address"),
        "not_running": ("slurm.name",),
        "controller": MUNGE_FAULTS,
        "answer": MUNGE_FAULTS,
    },
    follow_probe=FOLLOW_PROBE,
    follow=follow,
    probe_from_here=probe_from_here,
    compare=compare,
)
