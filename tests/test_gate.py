"""The gate as its callers use it: on a real Slurm of six nodes, two of which are sick."""

import contextlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from clustercheck.cli import main, ways
from clustercheck.freshness import CLOCKS_DIFFER_SECONDS
from clustercheck.render import json as json_form
from tests.command import Done, write_inventory
from tests.host import Host, Keys
from tests.slurm_cluster import SlurmCluster

CLUSTERCHECK = [sys.executable, "-m", "clustercheck"]


@pytest.fixture(scope="module")
def machines(
    tmp_path_factory: pytest.TempPathFactory, shared_host: Host, keys: Keys
) -> Iterator[dict[str, Host]]:
    """Who answers for the nodes n1 to n6: n2 has a full /tmp, n5 one that nobody may write to."""
    shared_host.need_own_root()
    with contextlib.ExitStack() as stack:
        sick = {}
        for name in ("n2", "n5"):
            sick[name] = Host(tmp_path_factory.mktemp(name), keys)
            stack.callback(sick[name].close)
        sick["n2"].run(
            "mount -t tmpfs -o size=1m,mode=1777 tmpfs /tmp; cat /dev/zero >/tmp/full 2>&- || :"
        )
        sick["n5"].run("chmod 755 /tmp")
        yield {f"n{i}": sick.get(f"n{i}", shared_host) for i in range(1, 7)}


SIX = ("-w", "n[1-6]")


class Gate:
    """The command line of the gate on these machines, with a cache of its own."""

    def __init__(self, folder: Path, machines: dict[str, Host], slurm: SlurmCluster) -> None:
        self.slurm, self.machines = slurm, machines
        self.capfd: pytest.CaptureFixture[str] | None = None
        lines = [
            f"{name} host=127.0.0.{name[1:]} port={host.port}" for name, host in machines.items()
        ]
        self.inventory = write_inventory(folder / "inventory.ini", machines["n1"], lines)
        self.hosts = list(dict.fromkeys(machines.values()))
        known_hosts = folder / "known_hosts"
        known_hosts.write_text("".join(host.known_hosts.read_text() for host in self.hosts))
        self.before = Counter(self.connections())
        self.words = [
            *(*CLUSTERCHECK, "gate", "-i", str(self.inventory), "--cache", str(folder / "cache")),
            *("--known-hosts", str(known_hosts), "-F", os.devnull),
            *("-c", "tmp,selinux,cpu", "-o", "tmp.fail_free_mb=1", "-o", "cpu.busy_percent=1e6"),
        ]

    def __call__(self, *words: str, env: Mapping[str, str] | None = None) -> Done:
        """By a process of its own."""
        done = self.slurm.run(*self.words, *words, env=env, timeout=100)
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def here(self, *words: str) -> Done:
        """In this process, which costs less; for the fixture `gate_here`."""
        assert self.capfd
        with pytest.raises(SystemExit) as ended:
            main([*self.words[3:], *words])
        out, err = self.capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)

    def verdict(self, *words: str) -> dict[str, Any]:
        """The verdict on all six, as JSON."""
        (line,) = self.here(*SIX, *words, "--format", "json").out.splitlines()
        found: dict[str, Any] = json.loads(line)
        jsonschema.validate(found, json_form.schema("verdict"))
        return found

    def conf(self) -> str:
        """Slurm's configuration."""
        return (self.slurm.folder / "slurm.conf").read_text()

    def connections(self) -> list[str]:
        """The nodes that were connected to so far, by the addresses they were reached at."""
        found = []
        for host in self.hosts:
            pattern = rf"Connection from \S+ port \d+ on 127\.0\.0\.([1-6]) port {host.port}\b"
            found += [f"n{number}" for number in re.findall(pattern, host.log())]
        return found

    def new_connections(self) -> list[str]:
        """Those since this was asked last."""
        before, self.before = self.before, Counter(self.connections())
        return sorted((self.before - before).elements())


@pytest.fixture
def gate(tmp_path: Path, machines: dict[str, Host], slurm: SlurmCluster) -> Gate:
    return Gate(tmp_path, machines, slurm)


@pytest.fixture
def gate_here(
    gate: Gate,
    slurm: SlurmCluster,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Gate:
    """The same, to be run in this process."""
    slurm.use(monkeypatch)
    monkeypatch.setattr(ways, "stop_with_report", lambda: None)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    gate.capfd = capfd
    return gate


def test_a_job_runs_on_the_good_nodes(gate: Gate, slurm: SlurmCluster) -> None:
    where = f"--output={slurm.home}/job.out"
    job = 'echo "$SLURM_JOB_NODELIST"; srun sh -c \'echo "on $SLURMD_NODENAME"\''
    line = " ".join([*gate.words, "-w", "'n[1-6]'", "--need", "4", "--format", "args"])
    script = slurm.home / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH -N4\n{job}\n")
    done = slurm.run("sh", "-c", f"sbatch --wait {where} $({line}) {script}")
    assert done.returncode == 0, done.stderr
    assert "go: 4 of 6 nodes are healthy; 4 are needed" in done.stderr
    first, *others = (slurm.home / "job.out").read_text().splitlines()
    assert first == "n[1,3-4,6]"
    assert sorted(others) == ["on n1", "on n3", "on n4", "on n6"]


def test_one_more_is_no_go_with_both_reasons(gate_here: Gate) -> None:
    done = gate_here.here(*SIX, "--need", "5")
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[:4] == [
        "no-go: 4 of 6 nodes are healthy; 5 are needed",
        "  healthy: n[1,3-4,6]",
        "  excluded: n[2,5]",
        "",
    ]
    assert "  n2: fail tmp.space: /tmp 100 % full, should be below 90 %: 0 KiB free" in done.out
    assert "  n5: fail tmp.mode: /tmp has mode drwxr-xr-x, should be drwxrwxrwt\n  -> " in done.out
    assert done.err == ""


def wait_until_out_of_use(slurm: SlurmCluster) -> None:
    """Wait until the last job's end is so far back that clocks cannot differ by as much."""
    ended = max(node["last_busy"] for node in slurm.nodes().values())
    time.sleep(max(0.0, ended + CLOCKS_DIFFER_SECONDS + 1 - time.time()))


def test_what_is_known_is_not_asked_again(gate_here: Gate, slurm: SlurmCluster) -> None:
    wait_until_out_of_use(slurm)
    first = gate_here.verdict("--need", "4")
    assert (first["verdict"], first["from_cache"]) == ("go", False)
    assert gate_here.new_connections() == list(gate_here.machines)
    # another need is another decision on the same results
    second, third = gate_here.verdict("--need", "4"), gate_here.verdict("--need", "5")
    assert [v["verdict"] for v in (second, third)] == ["go", "no-go"]
    assert second["from_cache"] and third["from_cache"]
    assert gate_here.new_connections() == []
    for key in ("healthy", "excluded", "slurm", "reasons", "profile"):
        assert first[key] == second[key]
    assert first["id"] != second["id"]
    slurm.reboot("n3")
    assert not gate_here.verdict("--need", "4")["from_cache"]
    assert gate_here.new_connections() == ["n3"]
    assert gate_here.verdict("--need", "4")["from_cache"]
    # a drained node overrides what is known of it
    slurm.scontrol("update", "nodename=n3", "state=drain", "reason=bad disk")
    drained = gate_here.verdict("--need", "4")
    assert (drained["verdict"], drained["excluded"]["nodes"]) == ("no-go", "n[2-3,5]")
    (reason,) = (reason for reason in drained["reasons"] if reason["code"] == "slurm.state")
    assert reason["summary"].startswith("Slurm gives it no work: drained: bad disk")
    # other options are another question
    assert not gate_here.verdict("--need", "4", "-o", "tmp.warn_percent=70")["from_cache"]
    assert not gate_here.verdict("--need", "4", "--max-age", "0")["from_cache"]


def test_in_a_job_it_is_about_the_nodes_of_the_job(gate: Gate, slurm: SlurmCluster) -> None:
    line = " ".join([*gate.words, "--need", "2", "--spare", "1", "--format", "env"])
    job = slurm.sbatch(
        f"""said=$({line} 2>gate.err) || exit 9
        eval "$said"
        echo "$CC_VERDICT $CC_NODELIST $CC_EXCLUDE $CC_NNODES"
        srun --nodes="$CC_NNODES" --nodelist="$CC_NODELIST" sh -c 'echo "on $SLURMD_NODENAME"'""",
        "--nodelist=n[2-5]",
        f"--chdir={slurm.home}",
    )
    assert slurm.wait(job) == "COMPLETED", (slurm.home / "gate.err").read_text()
    first, *others = slurm.output(job).splitlines()
    assert first == "go n[3-4] n[2,5] 2"
    assert sorted(others) == ["on n3", "on n4"]


def test_a_job_gives_its_bad_nodes_back(gate: Gate, slurm: SlurmCluster) -> None:
    line = " ".join([*gate.words, "--need", "2", "--shrink", "--format", "env"])
    job = slurm.sbatch(
        f"""said=$({line} 2>gate.err) || exit 9
        eval "$said"
        echo "$CC_VERDICT $CC_NODELIST $SLURM_JOB_NODELIST"
        srun sh -c 'echo "on $SLURMD_NODENAME"'""",
        "--nodelist=n[1-4]",
        f"--chdir={slurm.home}",
    )
    assert slurm.wait(job) == "COMPLETED", (slurm.home / "gate.err").read_text()
    first, *others = slurm.output(job).splitlines()
    assert first == "go n[1,3] n[1,3]"
    assert sorted(others) == ["on n1", "on n3"]
    assert "n[2,4] given back" in (slurm.home / "gate.err").read_text()


def test_a_job_with_too_few_good_nodes_starts_again_without_the_bad_ones(
    gate: Gate, slurm: SlurmCluster
) -> None:
    line = " ".join([*gate.words, "--requeue", "1", "--format", "env"])
    job = slurm.sbatch(
        f"""said=$({line} 2>>gate.err) || sleep 30
        eval "$said"
        echo "$SLURM_JOB_NODELIST $CC_VERDICT"
        """,
        *("-N3", "--exclude=n[1,5]", f"--chdir={slurm.home}", "--open-mode=append"),
    )
    slurm.start_again_now(job)
    assert slurm.wait(job) == "COMPLETED"
    assert slurm.output(job).splitlines()[-1] == "n[3-4,6] go"
    assert slurm.field(job, "Restarts") == "1"
    first = (slurm.home / "gate.err").read_text().splitlines()[0]
    assert first == (
        f"no-go: 2 of 3 nodes are healthy; 3 are needed; job {job} is to start again without n2"
    )


def test_the_nodes_of_a_partition(gate_here: Gate) -> None:
    done = gate_here.here("--partition", "main", "--need", "4", "--format", "args")
    assert done.out == "--partition=main\n--exclude=n2,n5\n"
    # some of it left aside: which to take is said
    done = gate_here.here("--partition", "main", "-x", "n1", "--need", "3", "--format", "args")
    assert done.out == "--nodes=3\n--nodelist=n3,n4,n6\n--exclude=n2,n5\n"


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (
            ("--partition", "mian"),
            64,
            "--partition: no partition with nodes is called 'mian'; did you mean 'main'?",
        ),
        (
            ("-w", "n[5-7]"),
            64,
            "no node is called 'n7', in Slurm or in the inventory; Slurm has n[1-6]",
        ),
        (("-w", "n[1-3]", "--need", "4"), 64, "--need 4: the set has 3 nodes"),
        (("-w", "n1", "--spare", "1"), 64, "--spare 1: the set has 1, and none would be left"),
        (("-w", "n1", "--partition", "main"), 64, "give one of -w and --partition"),
        (("-w", "n1", "--skip", "tmp,selinux,cpu"), 64, "no check is left"),
        (("-w", "n1", "--requeue", "1"), 64, "--requeue: this is not inside a job of Slurm"),
        (("-w", "n1", "--shrink"), 64, "--shrink: the job's shell has to know of it"),
        (("-w", "n1!n1"), 64, "-w 'n1!n1' selects no node"),
        (("-w", ""), 64, "-w '' selects no node"),
    ],
)
def test_wrong_input_is_one_line(
    gate_here: Gate, words: tuple[str, ...], status: int, expected: str
) -> None:
    done = gate_here.here(*words, "--format", "args")
    # sbatch, which looks at no exit code, gets a word that it refuses
    assert (done.status, done.out) == (status, "--clustercheck-says-no-go\n")
    assert done.err.startswith(f"clustercheck: {expected}")
    assert len(done.err.splitlines()) == 1
    assert gate_here.new_connections() == []


def test_with_the_controller_down_nothing_is_decided_that_rests_on_it(
    gate: Gate, slurm: SlurmCluster, tmp_path: Path
) -> None:
    conf = re.sub("SlurmctldPort=.*", "SlurmctldPort=9\nMessageTimeout=2", gate.conf())
    away = tmp_path / "slurm.conf"
    away.write_text(conf)
    env = {"SLURM_CONF": str(away)}
    questions = [
        ("--partition", "main", "--need", "1", "--format", "json"),
        ("-w", "n1", "--format", "args"),
        ("-w", "n1", "--format", "json"),
    ]
    with ThreadPoolExecutor(3) as pool:  # each waits for the controller
        done = list(pool.map(lambda words: gate(*words, env=env), questions))
    assert [one.status for one in done] == [75, 75, 0]
    found = json.loads(done[0].out)
    assert found["verdict"] == "undecided"
    assert found["why"].startswith("Slurm's controller cannot be asked: ")
    assert done[1].out == "--clustercheck-says-no-go\n"
    # of nodes that are named the rest can be told
    found = json.loads(done[2].out)
    assert (found["verdict"], found["slurm"]) == ("go", None)
    assert "they are asked themselves" in found["notes"][0]
    assert gate.new_connections() == ["n1"]
