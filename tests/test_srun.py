"""`--via srun`: nodes asked by steps of a real Slurm."""

import os
import pwd
import re
import signal
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clustercheck import at_once, execute, planning
from clustercheck.answer import Answer
from clustercheck.at_once import AtOnce
from clustercheck.check import Check, Code, Facts, Finding, NoOptions, ok
from clustercheck.errors import UsageError
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.nodeset import expand
from clustercheck.report import Report
from clustercheck.run import Plan, Watch, run
from clustercheck.transport.slurm import Place, Places, find_places
from clustercheck.transport.slurm_says import Refused, job_gpus
from clustercheck.transport.srun import Srun
from tests.slurm_cluster import NODES, MakeSlurm, SlurmCluster


def way(via: str = "srun") -> execute.Way:
    return execute.Way(
        defaults=dict.fromkeys(("user", "port", "key", "jump", "become"), ""),
        ssh_config=None,
        known_hosts=None,
        host_keys="strict",
        ssh="paramiko",
        password="",
        passphrase="",
        connect_timeout=0,
        via=via,
    )


def ask(nodes: str | None, checks: str, via: str = "srun") -> tuple[Report, dict[str, Answer]]:
    chosen = planning.choose(planning.Wanted(nodes=nodes, checks=checks))
    answers: dict[str, Answer] = {}

    def ended(answer: Answer, result: object) -> None:
        answers[answer.node] = answer

    limits = execute.Limits(0, 0, 0, None, 1)
    return execute.ask(chosen, way(via), limits, Watch(ended=ended)), answers


def access(report: Report) -> dict[str, str]:
    """Why nodes gave no answer."""
    return {
        name: "; ".join(f"{one.code}: {one.message}" for one in node.findings.get("access", ()))
        for name, node in report.nodes.items()
    }


def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
    yield ok("made", "made")


def made(probe: str, **more: Any) -> Check[NoOptions]:
    codes = {"made": Code("Made up.")}
    return Check(
        title="made up", options=NoOptions(), judge=judge, codes=codes, probe=probe, **more
    )


@dataclass
class Asked:
    """What came of a probe of the test's own."""

    report: Report
    answers: dict[str, Answer]
    ident: str

    def left_behind(self) -> list[Path]:
        """Folders of the run on this machine, on which all nodes are."""
        return list(Path("/dev/shm").glob(f".clustercheck-{self.ident}-*"))

    def facts(self, name: str) -> dict[str, str]:
        told = {node: answer.told.get("made") for node, answer in self.answers.items()}
        return {node: one.facts.get(name, "") for node, one in told.items() if one}


def ask_made(
    check: Check[NoOptions], names: Sequence[str] = NODES, most: float | None = None
) -> Asked:
    """Ask by steps. most: seconds for all of it."""
    nodes = [Node(name) for name in names]
    places = find_places(nodes, 60)
    transport = Srun(places)
    bounds = Bounds(64, 20)
    options = check.options
    checks = {"made": check}
    plan = Plan(nodes, checks, lambda c, n: options, lambda n: transport, bounds, most)
    answers: dict[str, Answer] = {}

    def ended(answer: Answer, result: object) -> None:
        answers[answer.node] = answer

    elsewhere = AtOnce(plan.frame(), bounds, plan.jobs())
    try:
        report = run(plan, Watch(ended=ended), elsewhere)
        return Asked(report, answers, elsewhere.frame.ident)
    finally:
        elsewhere.close()
        transport.close()


def test_what_can_be_asked_is_and_the_others_are_told_apart(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    slurm.scontrol("update", "nodename=n2", "state=drain", "reason=bad fan | see n9")
    job = slurm.sbatch("sleep 60", "-wn3")
    slurm.wait(job, "RUNNING")
    report, answers = ask("n[1-4],n9", "tmp")
    assert access(report) == {
        "n1": "",
        "n2": "slurm_out: Slurm gives it no work: drained (bad fan | see n9)",
        "n3": "slurm_busy: Slurm has it in use: mixed",
        "n4": "",
        "n9": "slurm_unknown: Slurm has no node of this name or address in any partition",
    }
    assert report.nodes["n1"].findings["tmp"]
    assert slurm.state(job) == "RUNNING"  # nobody's work was touched
    slurm.until(lambda: slurm.states()["n1"] == "idle")  # and nothing is kept


def test_the_answer_is_that_of_the_machine_itself(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    checks = "selinux,fingerprint,login,mounts,services"  # asked by sh here as well
    _, by_srun = ask("n1", checks)
    me = pwd.getpwuid(os.getuid())  # the tests have a home of their own
    login = {"HOME": me.pw_dir, "USER": me.pw_name, "LOGNAME": me.pw_name, "SHELL": me.pw_shell}
    for name, value in login.items():
        monkeypatch.setenv(name, value)
    _, here = ask(None, checks, "ssh")
    ours, theirs = here["localhost"].told, by_srun["n1"].told
    assert set(ours) == set(theirs)
    changing = re.compile("avail|free|used|load|uptime|inodes|pid|cpu|time|count|swap|mem|blocks")
    for check, told in ours.items():
        assert set(told.facts) == set(theirs[check].facts), check
        assert told.whole and theirs[check].whole
        assert len(told.facts) > 1
        for key, value in told.facts.items():
            if not changing.search(key.lower()):
                assert theirs[check].facts[key] == value, (check, key)
    assert (here["localhost"].uid, here["localhost"].boot_id) == (
        by_srun["n1"].uid,
        by_srun["n1"].boot_id,
    )


def test_an_ordinary_user_asks_from_his_job(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = slurm.need_user()
    job = slurm.sbatch("sleep 120", "-N3", user=user)
    slurm.wait(job, "RUNNING")
    slurm.use(monkeypatch, user)
    monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-6]")  # as before it was shrunk
    monkeypatch.setenv("SLURM_NTASKS", "7")  # his own steps' wishes
    monkeypatch.setenv("SLURM_OUTPUT", "/nonexistent/%j")
    report, answers = ask("n[1-4]", "tmp")
    assert access(report) == {
        "n1": "",
        "n2": "",
        "n3": "",
        "n4": "slurm_not_ours: it is not one of this job's nodes, n[1-3]",
    }
    assert {answer.uid for answer in answers.values() if not answer.code} == {"1"}
    shown = execute.Shown("json", slurm.folder / "report.json", 0)
    limits = execute.Limits(0, 0, 0, None, 1)
    assert execute.run(planning.Wanted(checks="tmp"), way(), limits, shown, None) in (0, 1, 2)
    assert '"n3"' in (slurm.folder / "report.json").read_text()
    assert "n4" not in (slurm.folder / "report.json").read_text()


def test_outside_of_a_job_nodes_are_to_be_named(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    limits, shown = execute.Limits(0, 0, 0, None, 1), execute.Shown("json", None, 0)
    with pytest.raises(UsageError, match="say which nodes with -w or -i"):
        execute.run(planning.Wanted(), way(), limits, shown, None)


def test_long_lines_and_odd_bytes_come_as_they_were_sent(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm cuts lines at 1,024 bytes, and mixes what nodes say at the same time."""
    slurm.use(monkeypatch)
    probe = r"""
    for size in 800 899 900 901 960 1000 1023 1024 1025 2047 2048 2049 5000 20000; do
        text=$(printf '%*s' "$size" '' | tr ' ' x)
        fact "size$size" "$text"
        printf '%s\n\n%s %s\n' "$text" "$text" "$SLURMD_NODENAME" | lines "lines$size"
    done
    fact bytes "$(printf '0: \377\033[1m \\ %s' "$SLURMD_NODENAME")"
    """
    asked = ask_made(made(probe))
    assert len(asked.answers) == len(NODES)
    for node, answer in asked.answers.items():
        facts = answer.told["made"].facts
        for size in (800, 899, 900, 901, 960, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 5000):
            assert facts[f"size{size}"] == "x" * size
            assert facts[f"lines{size}"] == f"{'x' * size}\n\n{'x' * size} {node}"
        assert facts["size20000"] == "x" * 20000
        assert facts["bytes"] == f"0: \\xff\x1b[1m \\ {node}"


def test_each_node_is_told_its_own_peers(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    monkeypatch.setattr(at_once, "STEP_NODES", 4)  # two steps
    probe = 'fact peers "$(echo $PEERS)"; fact hosts "$(echo $HOSTS)"; fact ports "$(echo $PORTS)"'
    check = made(probe, probe_peers=True, most_peers=lambda options: 2)
    asked = ask_made(check)
    following = {name: NODES[place + 1 :] + NODES[:place] for place, name in enumerate(NODES)}
    assert asked.facts("peers") == {n: " ".join(f[:2]) for n, f in following.items()}
    assert asked.facts("hosts") == asked.facts("peers")
    assert set(asked.facts("ports").values()) == {"0 0"}
    assert asked.answers["n5"].peers == ["n6", "n1"]


def test_the_clock_is_within_what_is_told(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    asked = ask_made(made("fact one 1", clock=True))
    for answer in asked.answers.values():
        assert answer.clock
        offset, uncertainty = answer.clock
        assert abs(offset) <= uncertainty


def test_one_that_floods_one_that_is_killed_and_one_that_hangs(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    monkeypatch.setattr(at_once, "SECONDS_OF_SILENCE", 4)
    probe = r"""
    case $SLURMD_NODENAME in
    n2) line=$(printf '%*s' 9000 '' | tr ' ' x)
        while echo "$line"; do :; done >"/proc/$PPID/fd/1" ;;
    n3) kill -KILL "$PPID" ;;
    n4) kill -STOP "$PPID"; sleep 5 ;;
    esac
    fact name "$SLURMD_NODENAME"
    """
    asked = ask_made(made(probe, limit=8))
    said = access(asked.report)
    assert [said[name] for name in ("n1", "n5", "n6")] == ["", "", ""]
    assert said["n2"] == "flood: more than 2 MiB of output"
    assert said["n3"].startswith("garbled: the script ended before its last line (signal KILL")
    assert said["n4"].startswith("cut: nothing more was heard of it for ")
    assert asked.facts("name")["n6"] == "n6"


def test_one_that_does_not_start_costs_the_others_nothing(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm ends a step of which one node does not start: the others are asked again."""
    slurm.use(monkeypatch)
    slurm.stop_slurmd("n5")
    asked = ask_made(made('fact name "$SLURMD_NODENAME"'))
    said = access(asked.report)
    assert said.pop("n5") == (
        "slurm_launch: Slurm could not start the script: Communication connection failure"
    )
    assert set(said.values()) == {""}
    assert asked.facts("name")["n6"] == "n6"


def test_what_loads_something_shared_and_who_is_asked_again(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    check = made(
        'fact name "$SLURMD_NODENAME"',
        heavy_probe='fact heavy "$SLURMD_NODENAME"',
        shared=lambda facts, options: "a server",
        follow_probe='fact follow "$FOLLOW at $SLURMD_NODENAME"',
        follow=lambda facts, options: {"n2": "again"},
    )
    asked = ask_made(check, ["n1", "n2"])
    assert set(access(asked.report).values()) == {""}
    assert asked.facts("heavy") == {"n1": "n1", "n2": "n2"}
    assert asked.facts("heavy.status") == {"n1": "whole", "n2": "whole"}
    assert asked.facts("follow") == {"n1": "", "n2": "again at n2"}


def test_interrupted_it_leaves_no_step_and_no_file(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    began = slurm.home / "began"

    def interrupt() -> None:
        slurm.until(lambda: began.exists() and len(began.read_text().split()) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.monotonic()
    asked = ask_made(made(f"echo x >>{began}; sleep 60", limit=60), ["n1", "n2"])
    thread.join()
    assert asked.report.stopped == "interrupted"
    assert time.monotonic() - start < 30
    assert asked.left_behind() == []
    assert slurm.run("squeue", "-h", "--steps").stdout == ""
    slurm.until_idle()


def test_the_whole_run_may_have_a_limit(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    asked = ask_made(made("sleep 60", limit=60), ["n1", "n2"], most=2)
    assert asked.report.stopped == "--max-time of 2 s"
    assert access(asked.report)["n1"] == ("not_reached: had not answered yet (--max-time of 2 s)")
    assert asked.left_behind() == []


def test_no_slurm_is_one_cause(slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm.use(monkeypatch)
    monkeypatch.setenv("PATH", "/nonexistent")
    asked = ask_made(made("fact one 1"), ["n1", "n2"])
    assert set(access(asked.report).values()) == {
        "no_slurm: sinfo cannot be run: No such file or directory"
    }


def test_a_controller_that_does_not_answer(
    make_slurm: MakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_slurm("MessageTimeout=2")
    cluster.use(monkeypatch)
    cluster.controller.terminate()
    cluster.controller.wait()
    asked = ask_made(made("fact one 1"), ["n1", "n2"])
    (said,) = set(access(asked.report).values())
    assert said.startswith("no_slurm: ")
    assert "controller" in said


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Slurm's commands as made up: the real ones here have no GPUs to give."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    lines = {
        "sinfo": "echo 'g1|g1|g1|idle|main*|up|gpu:a100:8(S:0-1),mps:800(S:0)|none'\n"
        "echo 'g2|g2|g2|idle|main*|up|gpu:a100:8(S:0-1)|none'\n"
        "echo 'c1|c1|c1|idle|main*|up|(null)|none'",
        "squeue": "echo 'g[1-2],c1'",
        "salloc": f'echo "$*" >>{tmp_path}/salloc.said; echo 77; exec cat',
        "scontrol": f"case $* in *config*) cat {tmp_path}/config ;; *) cat {tmp_path}/job ;; esac",
    }
    for name, text in lines.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "config").write_text("ConstrainDevices        = yes\n")
    (tmp_path / "job").write_text(
        "JobId=5 JobState=RUNNING   Nodes=c1 CPU_IDs=0-1 Mem=0 GRES= "
        "  Nodes=g1 CPU_IDs=0-1 Mem=0 GRES=gpu:a100:8(IDX:0-7) "
        "  Nodes=g2 CPU_IDs=0-1 Mem=0 GRES=gpu:a100:2(IDX:0,3)   Power=\n"
    )
    return tmp_path


def test_all_gpus_of_idle_nodes_are_asked_for(commands: Path) -> None:
    """A step has no GPU that its job did not ask for, also where the job has the whole node."""
    places = find_places([Node("g1"), Node("c1"), Node("g2")], 600)
    places.close()
    said = (commands / "salloc.said").read_text().splitlines()
    words = [[word for word in line.split() if "=g" in word or "=c" in word] for line in said]
    assert words == [
        ["--job-name=clustercheck", "--nodelist=c1"],
        ["--job-name=clustercheck", "--nodelist=g[1-2]", "--gres=gpu:a100:8"],
    ]
    assert {place.hidden for place in places.of.values()} == {""}


def test_nodes_are_found_by_what_the_inventory_calls_them(commands: Path) -> None:
    nodes = [
        Node("g1.cluster.example"),
        Node("login", host="10.0.0.9"),
        Node("second", host="g2"),
        Node("again", host="g2.cluster.example"),
    ]
    places = find_places(nodes, 600)
    places.close()
    assert {name: place.name for name, place in places.of.items()} == {
        "g1.cluster.example": "g1",
        "second": "g2",
    }
    assert {name: refused.message for name, refused in places.refused.items()} == {
        "login": "Slurm has no node of this name or address in any partition",
        "again": "it is Slurm's node g2, as another of these nodes is",
    }


def test_what_cannot_be_allocated_together_is_tried_in_halves(commands: Path) -> None:
    (commands / "salloc").write_text(
        "#!/bin/sh\ncase $* in\n"
        "*nodes=2*) echo 'salloc: error: Job violates accounting/QOS policy' >&2; exit 1 ;;\n"
        "*nodelist=g2*) echo 'salloc: error: Unable to allocate resources: busy' >&2; exit 1 ;;\n"
        "esac\necho 78; exec cat\n"
    )
    places = find_places([Node("g1"), Node("g2")], 600)
    places.close()
    assert places.of == {"g1": Place("78", "g1")}
    said = "Slurm did not allocate it: Unable to allocate resources: busy"
    assert places.refused == {"g2": Refused("slurm_busy", said)}


def test_a_partition_that_one_may_not_use_is_not_the_only_one(commands: Path) -> None:
    (commands / "sinfo").write_text(
        "#!/bin/sh\nfor p in admins users; do for n in c1 c2; do\n"
        'echo "$n|$n|$n|idle|$p|up|(null)|none"\ndone; done\n'
    )
    (commands / "salloc").write_text(
        "#!/bin/sh\ncase $* in\n*partition=admins*)\n"
        'echo "salloc: error: User\'s group not permitted to use this partition" >&2; exit 1 ;;\n'
        "esac\necho 79; exec cat\n"
    )
    places = find_places([Node("c1"), Node("c2")], 600)
    places.close()
    assert places.of == {"c1": Place("79", "c1"), "c2": Place("79", "c2")}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("<html>an error", "sinfo: its output has no node: '<html>an error'"),
        ("c1", "sinfo: its output has no node: 'c1'"),
        ("x" * 99, f"sinfo: its output has no node: '{'x' * 59}…'"),
    ],
)
def test_words_of_sinfo_that_are_no_nodes_are_no_busy_nodes(
    commands: Path, told: str, said: str
) -> None:
    (commands / "sinfo").write_text(f"#!/bin/sh\necho '{told}'\n")
    assert find_places([Node("c1")], 600).refused == {"c1": Refused("no_slurm", said)}


def test_a_job_of_a_thousand_million_nodes_is_not_believed(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    (commands / "squeue").write_text("#!/bin/sh\necho 'n[1-1000000000]'\n")
    (commands / "squeue").chmod(0o755)
    said = "squeue gives job 7 the nodes 'n[1-1000000000]'"
    assert find_places([Node("c1")], 600).refused == {"c1": Refused("no_slurm", said)}


def test_a_partition_that_is_wished_for_is_the_only_one(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_places([Node("c1")], 600).close()
    monkeypatch.setenv("SALLOC_PARTITION", "mine")
    find_places([Node("c1")], 600).close()
    said = (commands / "salloc.said").read_text().splitlines()
    assert ["--partition=main" in line for line in said] == [True, False]


def test_gpus_that_the_job_has_not_are_not_held_against_the_node(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    nodes = [Node("g1"), Node("g2"), Node("c1")]
    few = "the job has 2 of the 8 GPUs of the node"
    assert find_places(nodes, 600).of == {
        "g1": Place("5", "g1", "gpu:a100:8"),
        "g2": Place("5", "g2", "gpu:a100:2", few),
        "c1": Place("5", "c1"),
    }
    (commands / "config").write_text("ConstrainDevices        = no\n")
    assert find_places(nodes, 600).of["g2"] == Place("5", "g2", "gpu:a100:2")


def test_where_gpus_are_hidden_that_is_said(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.use(monkeypatch)
    job = slurm.sbatch("sleep 60", "-N2")
    slurm.wait(job, "RUNNING")
    nodes = slurm.field(job, "NodeList")
    assert job_gpus(job) == dict.fromkeys(expand(nodes), "")  # as this Slurm says it
    few = "the job has 2 of the 8 GPUs of the node"
    one, other = expand(nodes)
    places = Places({one: Place(job, one), other: Place(job, other, hidden=few)})
    monkeypatch.setattr("clustercheck.transport.slurm.find_places", lambda nodes, seconds: places)
    report, _ = ask(nodes, "gpu,gpu_health")
    for name in ("gpu", "gpu_health"):
        (finding,) = report.nodes[other].findings[name]
        assert finding.status.value == "unknown"
        assert finding.message == f"not all of its GPUs can be seen: {few}"
        assert few not in str(report.nodes[one].findings[name])


def test_a_wish_that_is_not_known() -> None:
    with pytest.raises(UsageError, match="--via is ssh or srun, not 'rsh'"):
        way("rsh")
