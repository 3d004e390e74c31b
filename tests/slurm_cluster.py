"""A real Slurm cluster for the tests: munged, slurmctld and six slurmd, n1 to n6, on this machine.

It has its own folder and ports, touches no Slurm of the machine and is gone when the tests end.
Two fixtures, for every test, of `tests/conftest.py`:

    def test_it(slurm: SlurmCluster) -> None:
        slurm.scontrol("update", "nodename=n2", "state=drain", "reason=for a test")
        done = slurm.run("sbatch", "--parsable", "-N4", "--wrap", "srun hostname")   # as root
        done = slurm.run("srun", "-N2", "true", user=slurm.user)        # as an ordinary user
        job = slurm.sbatch("srun -l hostname", "-N2", user=slurm.user)  # the job's id
        assert slurm.wait(job) == "COMPLETED"
        assert slurm.output(job) == ...                                 # both its streams
        slurm.reboot("n3")                     # a new boot time in `sinfo --json`

`slurm` is one cluster for all tests of a process, with no job, no reservation and all nodes idle
when a test begins. `make_slurm(*lines)` makes one that is the test's own, with further lines of
slurm.conf (a Prolog, HealthCheckProgram), each about a second. `slurm.env` is what commands need:
put it into the environment of a process (`env={**os.environ, **slurm.env}`), or let
`slurm.use(monkeypatch)` put it into our own; with `user=slurm.user`, Slurm's commands are then run
in his name, while Python, which he may not be able to read, stays root's. `slurm.folder` and all in
it may be read by everybody; `slurm.home` belongs to him, and is where jobs run and write.

Root alone may run jobs of other users, so `user` is "" and the tests that need him skip where
the tests are not run by root (`slurm.need_user()`).
"""

import contextlib
import json
import os
import pwd
import random
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.time_daemons import tool
from tools.fetch import TOOLS

NODES = tuple(f"n{number}" for number in range(1, 7))
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")

# As SlurmUser may be anybody, whoever runs the tests is it. Nothing is measured here: what a job
# may use is not held against what the machine has.
CONF = """\
ClusterName=tests
SlurmctldHost=localhost
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=60
KillWait=2
MessageTimeout=10
RequeueExit=75
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
PartitionName=main Nodes=n[1-6] Default=YES State=UP
PartitionName=short Nodes=n[1-2] State=UP
"""


class SlurmCluster:
    """A controller and the six nodes of NODES, of two CPUs each.

    env: SLURM_CONF, PATH and LD_LIBRARY_PATH.
    folder: with all files of the daemons; logs in it are shown when they do not start.
    user: an ordinary user's name, or "" where the tests do not run as root.
    home: his folder.
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        """Start it and wait until all nodes are idle; `close` ends it."""
        self._stack = contextlib.ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._slurmd: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self._prepare(lines)
            self._start_all()
        except BaseException:
            self.close()
            raise

    def _prepare(self, lines: Sequence[str]) -> None:
        # munged lets its socket lie only where no other user could exchange it
        self.folder.chmod(0o755)
        self.user, owner = "", os.geteuid()
        if os.geteuid() == 0:
            entry = pwd.getpwnam("daemon")
            self.user, owner = entry.pw_name, entry.pw_uid
        self.home = self.folder / "home"
        self.home.mkdir()
        os.chown(self.home, owner, -1)
        layer = self._layer()
        libraries = [*layer.glob("usr/lib/*/libmunge.so*"), *layer.glob("usr/lib/*/slurm-wlm")]
        where = [str(p if p.is_dir() else p.parent) for p in libraries]
        binaries = self.folder / "bin"
        binaries.mkdir()
        for program in [*layer.glob("usr/bin/*"), *layer.glob("usr/sbin/*")]:
            (binaries / program.name.removesuffix("-wlm")).symlink_to(program)
        self.env = {
            "PATH": f"{binaries}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LD_LIBRARY_PATH": ":".join(dict.fromkeys(where)),
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }
        plugins = [path for path in where if path.endswith("slurm-wlm")]
        ports = _free_ports(1 + len(NODES))
        conf = CONF.format(
            controller=ports[0],
            user=pwd.getpwuid(os.geteuid()).pw_name,
            folder=self.folder,
            plugins=plugins[0] if plugins else "/usr/lib/x86_64-linux-gnu/slurm-wlm",
        )
        nodes = [
            f"NodeName={name} NodeHostname=localhost Port={port} CPUs=2 RealMemory=1000"
            for name, port in zip(NODES, ports[1:], strict=True)
        ]
        text = "\n".join([*nodes, conf, *lines]) + "\n"
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "state").mkdir()
        for name in NODES:
            (self.folder / "spool" / name).mkdir(parents=True)
        key = self.folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def _layer(self) -> Path:
        """The unpacked programs where an ordinary user can read them."""
        tool("slurm", "slurmctld-wlm")
        layer = TOOLS / "slurm"
        open_to_all = all(path.stat().st_mode & 1 for path in (layer, *layer.parents))
        if open_to_all or not self.user or not layer.exists():
            return layer
        copy = self.folder / "programs"
        shutil.copytree(layer / "usr", copy / "usr", symlinks=True)
        return copy

    def _start_all(self) -> None:
        files = {"socket": "munge", "key-file": "key", "pid-file": "pid", "log-file": "munge.log"}
        words = [f"--{name}={self.folder / file}" for name, file in files.items()]
        seed = f"--seed-file={self.folder / 'seed'}"
        self._start(tool("slurm", "munged"), *words, seed, "--force", "--foreground")
        self.until(lambda: (self.folder / "munge").exists())
        self.controller = self.start_controller("-c")
        for name in NODES:
            self.start_slurmd(name)
        self.until_idle()

    def start_controller(self, *words: str) -> subprocess.Popen[bytes]:
        """Start slurmctld, and wait until it answers."""
        self.controller = self._start(tool("slurm", "slurmctld-wlm"), "-D", "-i", *words)
        self.until(lambda: " is UP" in self.scontrol("ping"))
        return self.controller

    def start_slurmd(self, name: str, *words: str) -> None:
        """Start a node's slurmd. `-d` says where slurmstepd is, looked for in /usr/sbin else."""
        command = [tool("slurm", "slurmd-wlm"), "-D", "-N", name, *words]
        stepd = tool("slurm", "slurmstepd-wlm")
        self._slurmd[name] = self._start(*command, "-d", stepd)

    def stop_slurmd(self, name: str) -> None:
        """End a node's slurmd; its jobs' slurmstepd go on."""
        self._end(self._slurmd.pop(name))

    def reboot(self, name: str) -> None:
        """The node has a new boot time, as slurmd says it."""
        before = self._times(name)
        self.stop_slurmd(name)
        time.sleep(max(0.0, max(before) + 1 - time.time()))  # Slurm counts whole seconds
        self.start_slurmd(name, "-b")
        self.until(lambda: self._times(name)[1] > before[1])
        self.until_idle()

    def _times(self, name: str) -> tuple[int, int]:
        node = self.nodes()[name]
        return node["boot_time"], node["slurmd_start_time"]

    def nodes(self) -> dict[str, dict[str, Any]]:
        """What `sinfo --json` has of each node."""
        told = json.loads(self.run("sinfo", "--json").stdout)
        return {node["name"]: node for node in told["nodes"]}

    def run(
        self,
        *words: str,
        user: str = "",
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in the home, as root or as another user; his variables are `env`'s."""
        return subprocess.run(
            [*self._as(user), *words],
            env={**self._variables(user), **(env or {})},
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def popen(self, *words: str, user: str = "") -> "subprocess.Popen[bytes]":
        """The same, not waited for; it is ended with the cluster."""
        return self._start(*self._as(user), *words, variables=self._variables(user))

    def _variables(self, user: str) -> dict[str, str]:
        return {**self.env, "HOME": str(self.home), "USER": user or "root", "LC_ALL": "C.UTF-8"}

    def _as(self, user: str) -> list[str]:
        if not user:
            return []
        entry = pwd.getpwnam(user)
        ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        return [tool("root", "setpriv"), *ids, "--"]

    def scontrol(self, *words: str) -> str:
        """What scontrol says on both streams."""
        done = self.run("scontrol", *words)
        return done.stdout + done.stderr

    def sbatch(self, body: str, *words: str, user: str = "") -> str:
        """Submit a job and return its id.

        body: lines of sh. words: options of sbatch. Both streams go to the file of `output`.
        """
        where = f"--output={self.home}/job-%j.out"
        done = self.run(
            *("sbatch", "--parsable", where, *words),
            stdin=f"#!/bin/sh\n{body}\n",
            user=user,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def output(self, job: str) -> str:
        """What the job has written so far."""
        with contextlib.suppress(FileNotFoundError):
            return (self.home / f"job-{job}.out").read_text()
        return ""

    def state(self, job: str) -> str:
        """The job's state, "PENDING" for one."""
        return self.field(job, "JobState")

    def field(self, job: str, name: str) -> str:
        """A field of `scontrol show job`, such as "Reason" or "Restarts"."""
        words = self.scontrol("show", "job", job, "-o").split()
        return dict(word.split("=", 1) for word in words if "=" in word).get(name, "")

    def wait(self, job: str, *states: str) -> str:
        """Wait until the job has ended, or is in one of `states`; returns its state."""
        self.until(lambda: self.state(job) in (states or ENDED))
        return self.state(job)

    def start_again_now(self, job: str) -> None:
        """Let a job that is requeued start, in place of two minutes later.

        Not in the second in which its first start ended: Slurm would take the new one for that.
        """
        self.until(lambda: (self.state(job), self.field(job, "Reason")) == ("PENDING", "BeginTime"))
        ended = time.time()
        self.until(lambda: time.time() > ended + 2)
        self.scontrol("update", f"JobId={job}", "StartTime=now")

    def until(self, holds: Callable[[], object], seconds: float = 60) -> None:
        """Wait until it holds; shows the daemons' logs where it does not."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                logs = sorted(self.folder.glob("*.log"))
                said = [f"{log.name}:\n{log.read_text()[-500:]}" for log in logs]
                raise AssertionError("\n".join([*said, self.scontrol("show", "node", "-o")]))
            time.sleep(0.05)

    def until_idle(self) -> None:
        """Wait until every node is idle and nothing else."""
        self.until(lambda: self.states() == dict.fromkeys(NODES, "idle"))

    def states(self) -> dict[str, str]:
        """Each node's state as `sinfo` has it: "idle", "drng", "down*"."""
        told = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %t").stdout
        return dict(line.split() for line in told.splitlines())

    def use(self, monkeypatch: pytest.MonkeyPatch, user: str = "") -> None:
        """Let what this process starts find the cluster.

        user: in whose name Slurm's commands are run, while this process stays what it is.
        """
        for name in list(os.environ):
            if name.startswith(("SLURM_", "SALLOC_", "SBATCH_")):
                monkeypatch.delenv(name)
        for name, value in self.env.items():
            value = f"{value}:{os.environ['PATH']}" if name == "PATH" else value
            monkeypatch.setenv(name, value)
        if user:
            monkeypatch.setenv("PATH", f"{self._commands_as(user)}:{os.environ['PATH']}")

    def _commands_as(self, user: str) -> Path:
        folder = self.folder / f"bin-{user}"
        if not folder.exists():
            folder.mkdir()
            for program in (self.folder / "bin").iterdir():
                words = shlex.join([*self._as(user), str(program)])
                shim = folder / program.name
                shim.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
                shim.chmod(0o755)
        return folder

    def need_user(self) -> str:
        """The ordinary user; skips the test where there is none."""
        if not self.user:
            pytest.skip("jobs of several users need root")
        return self.user

    def tidy(self) -> None:
        """End all jobs and bring all nodes back."""
        self.run("scancel", "--quiet", *self._jobs())
        for name in NODES:
            if name not in self._slurmd or self._slurmd[name].poll() is not None:
                self.start_slurmd(name)
        bad = [name for name, state in self.states().items() if state not in ("idle", "comp")]
        if bad:
            self.scontrol("update", f"nodename={','.join(bad)}", "state=resume")
        self.until_idle()
        for left in self.home.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()

    def _jobs(self) -> list[str]:
        return self.run("squeue", "-h", "-t", "all", "-o", "%i").stdout.split()

    def _start(
        self, *words: str, variables: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        log = self._stack.enter_context((self.folder / "said.log").open("ab"))
        process = subprocess.Popen(
            words,
            env=variables or self.env,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        self._stack.callback(self._end, process)
        return process

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        if process.poll() is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        """End all of it, jobs first: their slurmstepd are nobody's children."""
        with contextlib.suppress(Exception):
            if self.controller.poll() is None and (jobs := self._jobs()):
                self.run("scancel", "--quiet", "--signal=KILL", "--full", *jobs, timeout=10)
                self.run("scancel", "--quiet", *jobs, timeout=10)
                self.until(lambda: not self._steps(), 10)
        for pid in self._steps():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._stack.close()

    def _steps(self) -> list[int]:
        """The cluster's slurmstepd: those that have our configuration in their environment."""
        found = []
        wanted = f"SLURM_CONF={self.env['SLURM_CONF']}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ours = wanted in (entry / "environ").read_bytes().split(b"\0")
                if ours and (entry / "comm").read_text().startswith("slurmstepd"):
                    found.append(int(entry.name))
        return found


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has, and that no connection is given while we start."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            trial = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                trial.bind(("", random.randrange(min(10000, low - 2000), low)))
                found.append(int(trial.getsockname()[1]))
    return found


class MakeSlurm(Protocol):
    """Makes a cluster that is the test's own."""

    def __call__(self, *lines: str) -> SlurmCluster: ...


@pytest.fixture(scope="session")
def shared_slurm() -> Iterator[SlurmCluster]:
    cluster = SlurmCluster()
    yield cluster
    cluster.close()


@pytest.fixture
def slurm(shared_slurm: SlurmCluster) -> SlurmCluster:
    """One cluster for all tests of a process, idle."""
    shared_slurm.tidy()
    return shared_slurm


@pytest.fixture
def make_slurm() -> Iterator[MakeSlurm]:
    """Clusters with lines of slurm.conf of the test's own."""
    with contextlib.ExitStack() as stack:

        def make(*lines: str) -> SlurmCluster:
            cluster = SlurmCluster(lines)
            stack.callback(cluster.close)
            return cluster

        yield make
