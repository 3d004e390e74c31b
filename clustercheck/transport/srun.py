"""Nodes asked by Slurm's srun: steps of a job, each with one script for many nodes, or for one.

Slurm starts the script on all nodes of a step, by its own tree, hands its standard input to each,
and labels the lines that come back with the number of the task, which is the node. Lines come
whole, save that those past a kibibyte come in pieces, each a line of its own.
"""

import contextlib
import os
import re
import secrets
import selectors
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet, NodeSetParseError  # type: ignore[import-untyped]

from clustercheck.fold import fold
from clustercheck.node import Node
from clustercheck.transport import SCRIPT_LIMIT, Channel, Connection, Exit, Unreachable
from clustercheck.transport.here import HereChannel
from clustercheck.transport.slurm import Place, Places
from clustercheck.transport.slurm_says import words_of

# The script removes its files when it is told to end, for which it takes two seconds at most.
SECONDS_TO_TIDY = 4

# So long after the last task srun may need to end.
SECONDS_TO_END = 1

# What a login has and a step has not: the script is to find the same by either way.
PREAMBLE = b"""\
if cc_line=$(getent passwd "$(id -u)" 2>/dev/null); then
    USER=${cc_line%%:*} LOGNAME=${cc_line%%:*} SHELL=${cc_line##*:} cc_line=${cc_line%:*}
    HOME=${cc_line##*:}
    export USER LOGNAME SHELL HOME
fi
"""

# The variables by which a user sets options of srun for himself: they are meant for his own steps.
# What names the cluster and the job stays.
OPTION_VARIABLES = re.compile(
    "SLURM_(.*BIND.*|.*DISTRIBUTION|.*OUTPUT|.*INPUT|.*ERRORMODE|STDIN.*|CPUS_PER.*|.*MEM_PER.*"
    "|NTASKS.*|NPROCS|NNODES|JOB_NUM_NODES|TASKS_PER.*|GRES.*|GPUS.*|THREADS.*|HINT|MULTI_PROG"
    "|OVERCOMMIT|EXCLUSIVE|OVERLAP|RELATIVE|WAIT|KILL_.*|NO_KILL|TASK_PROLOG|TASK_EPILOG|PROLOG"
    "|EPILOG|EXPORT_ENV|LABELIO|UNBUFFEREDIO|REMOTE_CWD|WORKING_DIR|SRUN_REDUCE.*|HOSTFILE"
    "|NODELIST|JOB_NODELIST|EXCLUDE|IMMEDIATE|MPI_TYPE|OPEN_MODE|PROFILE|SPREAD_JOB|TIMELIMIT"
    "|STEP_.*|TRES_PER.*|CORE_SPEC|CONSTRAINT|DEPENDENCY|BCAST.*|COMPRESS|NETWORK|SIGNAL|USE_MIN_NODES)"
)


def preamble(place: Place) -> bytes:
    """What stands before a script: probes of GPUs are told where they would not see all."""
    if not place.hidden:
        return PREAMBLE
    return (
        PREAMBLE + f"CC_GPUS_HIDDEN={shlex.quote(place.hidden)}; export CC_GPUS_HIDDEN\n".encode()
    )


def command(job: str, names: Sequence[str], *, ident: str, many: bool, gpus: str = "") -> list[str]:
    """The srun that runs `sh -s` on nodes of a job, one task a node, beside all other steps.

    ident: the step's name, by which it is found again.
    gpus: of the job's GPUs on each node, those that the step is to see; "" leaves it to Slurm.
    many: lines come with the number of the task, and how the tasks fare is told.
    """
    return [
        "srun",
        f"--jobid={job}",
        f"--job-name={ident}",
        f"--nodes={len(names)}",
        f"--ntasks={len(names)}",
        f"--nodelist={fold(names)}",
        "--overlap",  # neither waits for the job's own steps nor keeps anything from them
        "--mem=0",  # nor any memory
        "--no-kill",
        "--wait=0",
        "--kill-on-bad-exit=0",  # a node that fails does not end the others
        "--mpi=none",
        "--export=NONE",
        "--propagate=NONE",  # the limits are those of slurmd there, not of this session
        "--chdir=/",  # the folder in which this runs may not be there
        *([f"--gres={gpus}"] if gpus else ()),
        *(("--label", "--verbose") if many else ()),
        "/bin/sh",
        "-s",
    ]


def environment() -> dict[str, str]:
    """Our own, without the user's wishes for his own steps."""
    return {k: v for k, v in os.environ.items() if not OPTION_VARIABLES.fullmatch(k)}


def _spawn(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            words,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us to act on
        )
    except OSError as error:
        raise Unreachable("no_slurm", f"srun cannot be run: {error.strerror}") from error


def end_step(process: "subprocess.Popen[bytes]", job: str, ident: str) -> None:
    """Tell a running step to end, and then end it; one whose tasks have ended does so by itself.

    What ends srun kills the tasks at once, and they would leave their files: so first they are
    told, by Slurm.
    """
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS_TO_END)
    if process.poll() is None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            told = subprocess.run(
                ["squeue", "-h", "--steps", "-j", job, "-o", "%i %j"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS_TO_TIDY,
            ).stdout
            steps = [line.split()[0] for line in told.splitlines() if line.endswith(f" {ident}")]
            if steps:
                subprocess.run(
                    ["scancel", "--quiet", "--signal=TERM", *steps],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=SECONDS_TO_TIDY,
                )
                process.wait(SECONDS_TO_TIDY)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS_TO_TIDY)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass
class Task:
    """How a node of a step fares.

    begun: Slurm has started the script.
    exit: how it ended, or None.
    failed: why it was not started, or was lost, in Slurm's words, or "".
    """

    begun: bool = False
    exit: Exit | None = None
    failed: str = ""
    size: int = 0
    stderr: bytes = b""


_LAUNCHING = re.compile(r"launching .*on host (\S+), \d+ tasks: (\d+)$")
_STARTED = re.compile(r"task_start: Node (\S+), ")
_NOT_STARTED = re.compile(r"error: Task launch for .* failed on node (\S+): (.*)")
_LOST = re.compile(r"error: Node failure on (\S+)")
_ENDED = re.compile(r"(?:error: |task_finish: )(\S+): tasks? ([\d,-]+): (.*)")
_LABEL = re.compile(rb" *(\d{1,9}): ?")


class Step:
    """A running srun on many nodes, which are called by their NodeName.

    tasks: how each node fares. complaints: what srun says of all of them, the last of it.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        """Start it; the places differ by name alone. Raises Unreachable where there is no srun."""
        job, names, gpus = places[0].job, [place.name for place in places], places[0].gpus
        self._job, self._ident = job, f"clustercheck-{secrets.token_hex(4)}"
        self._process = _spawn(command(job, names, ident=self._ident, many=True, gpus=gpus))
        self.tasks = {name: Task() for name in names}
        self.complaints: list[str] = []
        self._nodes: dict[int, str] = {}
        self._unsent = b""
        self._close_input = False
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin = self._process.stdin
        self._rest = {self._process.stdout: b"", self._process.stderr: b""}
        self._stdout = self._process.stdout
        self._selector = selectors.DefaultSelector()
        os.set_blocking(self._stdin.fileno(), False)
        for pipe in self._rest:
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)
        self.send(preamble(places[0]))

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Write to every node's standard input, as `receive` finds room for it.

        last: it ends with this.
        """
        if self._stdin.closed:
            return
        if not self._unsent:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._unsent += data
        self._close_input = self._close_input or last

    def receive(self, timeout: float) -> list[tuple[str, bytes]] | None:
        """Lines of standard output that have come, each with its node; None at the end of all.

        Past SCRIPT_LIMIT bytes of a node, nothing more of it is heard.
        """
        found: list[tuple[str, bytes]] = []
        if not any(not pipe.closed for pipe in self._rest):
            return None
        for key, _ in self._selector.select(max(0.0, timeout)):
            if key.fileobj is self._stdin:
                self._write()
                continue
            pipe = key.fileobj
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._selector.unregister(pipe)
                self._take(pipe is self._stdout, self._rest[pipe], found)  # type: ignore[index]
                pipe.close()  # type: ignore[union-attr]
                continue
            lines = (self._rest[pipe] + data).split(b"\n")  # type: ignore[index]
            self._rest[pipe] = lines.pop()[-(1 << 16) :]  # type: ignore[index]
            for line in lines:
                self._take(pipe is self._stdout, line, found)
        return found

    def _write(self) -> None:
        try:
            written = os.write(self._stdin.fileno(), self._unsent[: 1 << 16])
            self._unsent = self._unsent[written:]
        except BlockingIOError:
            return
        except OSError:  # srun has ended: why is still to be read
            self._unsent, self._close_input = b"", True
        if not self._unsent:
            self._selector.unregister(self._stdin)
            if self._close_input:
                with contextlib.suppress(OSError):
                    self._stdin.close()

    def _take(self, is_output: bool, line: bytes, found: list[tuple[str, bytes]]) -> None:
        label = _LABEL.match(line)
        node = self._nodes.get(int(label[1])) if label else None
        if label and node:
            task, text = self.tasks[node], line[label.end() :]
            task.begun = True
            task.size += len(line)
            if is_output and task.size <= SCRIPT_LIMIT:
                found.append((node, text))
            elif not is_output:
                task.stderr = (task.stderr + text + b"\n")[-4096:]
        elif not is_output:
            self._srun_says(line.decode(errors="backslashreplace"))

    def _srun_says(self, line: str) -> None:
        if match := _LAUNCHING.search(line):
            if match[1] in self.tasks:
                self._nodes[int(match[2])] = match[1]
        elif match := _STARTED.search(line):
            for node in self._named(match[1]):
                self.tasks[node].begun = True
        elif match := _NOT_STARTED.search(line):
            for node in self._named(match[1]):
                self.tasks[node].failed = match[2]
        elif match := _LOST.search(line):
            for node in self._named(match[1]):
                self.tasks[node].failed = "node failure"
        elif match := _ENDED.search(line):
            for node in self._named(match[1]):
                self.tasks[node].exit = _exit(match[3])
        elif "error: " in line:
            self.complaints = [*self.complaints, line][-5:]

    def _named(self, text: str) -> list[str]:
        try:
            return [node for node in NodeSet(text) if node in self.tasks]
        except NodeSetParseError:
            return []

    def exit_of(self, node: str) -> Exit | None:
        """How the script ended on a node, with what it said on standard error."""
        task = self.tasks[node]
        if task.exit is None:
            return None
        stderr = task.stderr.decode(errors="backslashreplace")
        return Exit(task.exit.status, task.exit.signal, stderr)

    def words(self) -> str:
        """What srun complains of."""
        return words_of("\n".join(self.complaints))

    def close(self) -> None:
        """End what still runs."""
        self._selector.close()
        with contextlib.suppress(OSError):
            self._stdin.close()
        end_step(self._process, self._job, self._ident)
        for pipe in self._rest:
            pipe.close()


def _exit(words: str) -> Exit:
    """ "Completed", "Exited with exit code 3", "Killed", "Terminated (core dumped)"."""
    if words == "Completed":
        return Exit(0, "", "")
    if match := re.match(r"Exited with exit code (\d+)", words):
        return Exit(int(match[1]), "", "")
    return Exit(None, {"Killed": "KILL", "Terminated": "TERM"}.get(words, words), "")


class SrunChannel:
    """A script that srun runs on one node."""

    def __init__(self, process: "subprocess.Popen[bytes]", job: str, ident: str) -> None:
        self._process, self._job, self._ident = process, job, ident
        self._here = HereChannel(process)

    def send(self, data: bytes) -> None:
        """See the protocol."""
        self._here.send(data)

    def receive(self, timeout: float) -> bytes | None:
        """See the protocol."""
        return self._here.receive(timeout)

    def finish(self) -> Exit:
        """See the protocol. Raises Unreachable where Slurm did not start it."""
        ended = self._here.finish()
        own = [line for line in ended.stderr.splitlines() if line.startswith("srun: error: ")]
        if own and not any(re.search(r": task 0: ", line) for line in own):
            raise Unreachable(
                "slurm_launch", f"Slurm did not run it: {words_of(chr(10).join(own))}"
            )
        return ended

    def close(self) -> None:
        """See the protocol; waits a moment for the node to tidy up."""
        end_step(self._process, self._job, self._ident)
        self._here.close()


@dataclass
class SrunConnection:
    """A node of a job."""

    place: Place
    running: SrunChannel | None = None

    def start(self, script: bytes, deadline: float) -> Channel:
        """Run `sh -s` there; see the protocol."""
        ident = f"clustercheck-{secrets.token_hex(4)}"
        place = self.place
        words = command(place.job, [place.name], ident=ident, many=False, gpus=place.gpus)
        self.running = SrunChannel(_spawn(words), self.place.job, ident)
        self.running.send(preamble(place) + script)
        return self.running

    def close(self) -> None:
        """Nothing is held but what runs."""
        if self.running:
            self.running.close()


class Srun:
    """The transport by steps of a job."""

    def __init__(self, places: Places) -> None:
        self.places = places

    def place(self, node: Node) -> Place:
        """Where the node is asked. Raises Unreachable."""
        if node.name in self.places.of:
            return self.places.of[node.name]
        raise Unreachable(*self.places.refused[node.name])

    def connect(self, node: Node, deadline: float) -> Connection:
        """A step on this node alone; see the protocol."""
        return SrunConnection(self.place(node))

    def close(self) -> None:
        """Give back what was allocated."""
        self.places.close()
