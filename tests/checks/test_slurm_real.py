"""The checks slurm and munge with real daemons: munged, slurmctld and slurmd on free ports.

They run as the user of the tests, keep all files in one folder, and touch no Slurm of the machine.
slurmd looks for slurmstepd in /usr/sbin only, so it gets a mount namespace with a folder there.
"""

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustercheck.check import Target
from tests.cases.driver import Case, MadeUp, ask, lines_of
from tests.made_up import CHECKS, options_of
from tests.time_daemons import libraries, tool
from tools.fetch import TOOLS


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


class Cluster:
    """A controller and nodes n1 (which runs), n2 and n3 (which do not)."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        # munged lets its socket lie only where no other user could exchange it
        folder.chmod(0o755)
        self.layer = TOOLS / "slurm" / "usr"
        tool("slurm", "slurmctld-wlm")
        plugins = [path.parent for path in self.layer.glob("lib/*/slurm-wlm/libslurmfull.so")]
        where = libraries("slurm")["LD_LIBRARY_PATH"]
        self.environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LD_LIBRARY_PATH": ":".join([where, *map(str, plugins)]),
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        for name in ("state", "spool/n1"):
            (folder / name).mkdir(parents=True)
        self.conf = self._conf(str(plugins[0]) if plugins else "")
        (folder / "slurm.conf").write_text(self.conf)
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (folder / "gres.conf").write_text("")
        key = folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {"socket": "munge", "key-file": "key", "pid-file": "pid", "log-file": "munge.log"}
        words = [f"--{name}={folder / file}" for name, file in files.items()]
        seed = f"--seed-file={folder / 'seed'}"
        self.start(tool("slurm", "munged"), *words, seed, "--force", "--foreground")
        self.until(lambda: (folder / "munge").exists())
        self.controller = self.start(tool("slurm", "slurmctld-wlm"), "-D", "-i")
        self.until(lambda: " is UP" in self.scontrol("ping"))

    def _conf(self, plugins: str) -> str:
        user = pwd.getpwuid(os.geteuid()).pw_name
        ports = {name: free_port() for name in ("n1", "n2", "n3")}
        lines = [
            "ClusterName=made",
            "SlurmctldHost=localhost",
            f"SlurmctldPort={free_port()}",
            f"SlurmUser={user}",
            f"SlurmdUser={user}",
            "AuthType=auth/munge",
            "CredType=cred/munge",
            f"AuthInfo=socket={self.folder / 'munge'}",
            f"PluginDir={plugins}",
            f"StateSaveLocation={self.folder / 'state'}",
            f"SlurmdSpoolDir={self.folder / 'spool'}/%n",
            f"SlurmctldPidFile={self.folder / 'slurmctld.pid'}",
            f"SlurmdPidFile={self.folder}/slurmd.%n.pid",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "SwitchType=switch/none",
            "MpiDefault=none",
            "SelectType=select/cons_tres",
            "SlurmdParameters=config_overrides",
            "ReturnToService=2",
            "SlurmdTimeout=5",
            *(
                f"NodeName={name} NodeHostname=localhost Port={port} CPUs=1 RealMemory=100"
                for name, port in ports.items()
            ),
            "PartitionName=main Nodes=ALL Default=YES State=UP",
            "PartitionName=short Nodes=ALL State=UP",
        ]
        return "\n".join(lines) + "\n"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / "log").open("ab"))
        process = subprocess.Popen(
            words, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        self._stack.callback(self.end, process)
        return process

    @staticmethod
    def end(process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def slurmd(self, state: str = "State=IDLE") -> subprocess.Popen[bytes]:
        """Start n1's, or skip where there may be no namespace for it."""
        system = self.folder / "sbin"
        system.mkdir(exist_ok=True)
        for name in ("slurmd", "slurmstepd"):
            with contextlib.suppress(FileExistsError):
                (system / name).symlink_to(self.layer / "sbin" / f"{name}-wlm")
        unshare = tool("root", "unshare")
        mount = f"{tool('root', 'mount')} --bind {system} /usr/sbin"
        words = [unshare, "--mount", "sh", "-c", f"{mount} && exec slurmd -D -N n1"]
        process = self.start(*words)
        time.sleep(0.5)
        if process.poll() is not None and os.geteuid() != 0:
            pytest.skip("a mount namespace needs root")
        self.until(lambda: state in self.scontrol("show", "node", "n1", "-o"))
        return process

    def scontrol(self, *words: str) -> str:
        done = subprocess.run(
            [tool("slurm", "scontrol"), *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout + done.stderr

    def until(self, holds: object) -> None:
        assert callable(holds)
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, (self.folder / "log").read_text()[-3000:]
            time.sleep(0.2)

    def nodes(self) -> Case:
        """The nodes as they look from inside: n1 has slurmd, all have Slurm's commands."""
        case = Case({})
        for name in ("n1", "n2", "n3"):
            words = " ".join(f"{key}={value}" for key, value in self.environment.items())
            shims = {"shim/df": b'PATH=/usr/bin:/bin exec df "$@"'}
            for command in ("scontrol", "sinfo"):
                program = f"exec env {words} {tool('slurm', command)}"
                shims[f"shim/{command}"] = f'{program} "$@"'.encode()
            case.nodes[name] = MadeUp(
                files={**shims, "/etc/slurm/slurm.conf": self.conf.encode()}
                | {"/proc/sys/kernel/hostname": f"{name}.cluster.example\n".encode()}
            )
        case.nodes["n1"].files |= {
            "shim/slurmd": f'exec env {words} {tool("slurm", "slurmd-wlm")} "$@"'.encode(),
            "/proc/77/comm": b"slurmd\n",
            "/proc/77/cmdline": b"slurmd\0-D\0-N\0n1\0",
            f"{self.folder}/spool/n1/": b"",
        }
        return case

    def found(self, folder: Path) -> dict[str, list[str]]:
        """The findings by node, without remedies."""
        found: dict[str, list[str]] = {name: [] for name in ("n1", "n2", "n3")}
        for line in lines_of(ask(self.nodes(), folder, ["slurm"])):
            node, _, rest = line.partition(" ")
            found[node].append(rest.partition(" -> ")[0])
        return found


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("slurm"), stack)


UP = "pass slurm.controller: slurmctld: primary"


def test_nodes_and_their_reasons(cluster: Cluster, tmp_path: Path) -> None:
    reason = "Lüfter=laut, S/N=88 [x] State=IDLE"
    cluster.scontrol("update", "nodename=n2", "state=drain", f"reason={reason}")
    cluster.scontrol("update", "nodename=n2", "comment=see Reason=foo State=DOWN")
    cluster.scontrol("update", "nodename=n3", "state=down", "reason=Kill task failed")
    said = cluster.found(tmp_path / "one")
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert [line for line in said["n2"] if line.startswith(UP)]
    drained = next(line for line in said["n2"] if " slurm.state: " in line)
    assert f"drained by {user} since 20" in drained
    assert drained.endswith(f": {reason}")
    assert drained.startswith("fail" if user == "root" else "warn")
    down = next(line for line in said["n3"] if " slurm.state: " in line)
    assert down.startswith(f"fail slurm.state: DOWN, should be in service; set by {user} since 20")


def test_a_slurmd_that_answers_and_one_that_does_not(cluster: Cluster, tmp_path: Path) -> None:
    slurmd = cluster.slurmd()
    said = cluster.found(tmp_path / "one")["n1"]
    assert any(line.startswith("pass slurm.slurmd: slurmd (2") for line in said), said
    assert "pass slurm.state: IDLE" in said
    assert [line for line in said if line.startswith("pass slurm.size: slurmd -C finds ")]
    assert [line for line in said if line.startswith("pass slurm.version: slurmd 2")]
    assert [line for line in said if line.startswith("pass slurm.spool: ")]
    assert "pass slurm.conf: slurm.conf is the same on all nodes" in said
    cluster.end(slurmd)
    said = cluster.found(tmp_path / "two")["n1"]
    assert any(
        line.startswith("fail slurm.answer: slurmd runs, and does not answer scontrol: ")
        for line in said
    ), said


class Greedy(Cluster):
    """Its configuration has more memory for n1 than any machine that runs tests."""

    def _conf(self, plugins: str) -> str:
        conf = super()._conf(plugins).replace("SlurmdParameters=config_overrides\n", "")
        return conf.replace("RealMemory=100\n", "RealMemory=99999999\n", 1)


def test_a_node_with_less_memory_than_configured(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """As slurmctld itself says it; one finding."""
    with contextlib.ExitStack() as stack:
        cluster = Greedy(tmp_path_factory.mktemp("slurm"), stack)
        cluster.slurmd("INVALID_REG")
        said = cluster.found(tmp_path / "drained")["n1"]
        (state,) = [line for line in said if line.startswith("fail ")]
        assert "DRAIN+INVALID_REG, should be in service; " in state
        assert ": Low RealMemory" in state
        assert state.endswith(" MiB of memory, should be 99999999 MiB")
        assert state.count("slurmd -C finds ") == 1


def test_a_controller_that_is_stopped_and_one_that_is_gone(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.controller.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    said = cluster.found(tmp_path / "stopped")
    assert time.monotonic() - began < 40
    for lines in said.values():
        bad = [line for line in lines if not line.startswith(("pass", "skip", "fail slurm.answer"))]
        assert len(bad) == 1, lines
        assert bad[0].startswith("fail slurm.controller: no slurmctld answers")
    cluster.end(cluster.controller)
    said = cluster.found(tmp_path / "gone")
    bad = [line for line in said["n2"] if not line.startswith(("pass", "skip"))]
    assert len(bad) == 1
    assert bad[0].startswith("fail slurm.controller: no slurmctld answers (primary ")
    assert bad[0].endswith(" DOWN)")


def test_this_machine_asks(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in cluster.environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("PATH", f"{Path(tool('slurm', 'scontrol')).parent}:{os.environ['PATH']}")
    from_here = CHECKS["slurm"].probe_from_here
    assert from_here
    cluster.scontrol("update", "nodename=n2", "state=drain", "reason=for a test")
    names = ("n1", "n2.cluster.example", "login")
    told = from_here([Target(name, name) for name in names], options_of("slurm"))
    assert "+DRAIN Gres=" in told["n2.cluster.example"]["here.node"]
    assert "Reason=for a test [" in told["n2.cluster.example"]["here.node"]
    assert "here.node" in told["n1"]
    assert "here.node" not in told["login"]
    assert " is UP" in told["login"]["here.ping"]
    assert "CPUTot=1 Sockets=1 CoresPerSocket=1 ThreadsPerCore=1" in told["n1"]["here.node"]
    assert told["n1"]["here.version"].startswith("2")
