"""integrations/slurm/node_health.py under a real Slurm: it drains and resumes, and knows whose turn
it is."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm_cluster import NODES, MakeSlurm, SlurmCluster
from tools.fetch import PROJECT

PROGRAM = PROJECT / "integrations/slurm/node_health.py"
CLUSTERCHECK = Path(sys.executable).with_name("clustercheck")
Health = Callable[..., tuple[int, str]]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A check of a site that ends with the number in the file `flag`, and an inventory with it."""
    inventory = tmp_path / "inventory.ini"
    inventory.write_text(
        "localhost ansible_connection=local\n[check:site]\n"
        f"command = /bin/sh -c 'echo so; exit $(cat {tmp_path}/flag)'\n"
    )
    (tmp_path / "flag").write_text("0")
    return tmp_path


@pytest.fixture
def health(slurm: SlurmCluster, site: Path) -> Health:
    """Run it for a node: what it says, where the site's check ends with `flag`."""

    def run(node: str, flag: int, *words: str) -> tuple[int, str]:
        (site / "flag").write_text(str(flag))
        return run_for(slurm, site, node, *words)

    return run


def run_for(slurm: SlurmCluster, site: Path, node: str, *words: str) -> tuple[int, str]:
    command = [sys.executable, str(PROGRAM), "--clustercheck", str(CLUSTERCHECK)]
    command += ["--inventory", str(site / "inventory.ini"), "--checks", "site", *words]
    done = slurm.run(*command, env={"SLURMD_NODENAME": node})
    assert done.stdout == ""
    return done.returncode, done.stderr


def of(slurm: SlurmCluster, node: str) -> tuple[str, str]:
    """State and reason as Slurm has them."""
    line = slurm.run("sinfo", "-h", "-n", node, "-p", "main", "-o", "%T|%E").stdout.strip()
    state, _, reason = line.partition("|")
    return state.rstrip("*"), reason  # "idle*": slurmd is yet to be heard of


def test_a_node_that_fails_is_drained_with_the_reason_and_comes_back(
    slurm: SlurmCluster, health: Health
) -> None:
    assert health("n2", 0) == (0, "")
    assert of(slurm, "n2") == ("idle", "none")
    status, said = health("n2", 2)
    assert (status, said) == (0, "node_health: is drained: clustercheck: site.critical\n")
    assert of(slurm, "n2") == ("drained", "clustercheck: site.critical")
    assert health("n2", 2) == (0, "")
    status, said = health("n2", 3)
    assert said == "node_health: stays drained: site.unknown could not be found out\n"
    assert of(slurm, "n2") == ("drained", "clustercheck: site.critical")
    status, said = health("n2", 1)
    assert said == "node_health: is resumed: nothing fails any more of site.critical\n"
    assert of(slurm, "n2") == ("idle", "none")


def test_what_is_not_known_drains_nobody(slurm: SlurmCluster, health: Health) -> None:
    assert health("n2", 3) == (0, "")
    assert of(slurm, "n2") == ("idle", "none")
    status, said = health("n2", 2, "--clustercheck", "/no/such/clustercheck")
    assert status == 0
    assert said.endswith("No such file or directory: '/no/such/clustercheck'; nothing is changed\n")
    status, said = health("n2", 2, "--checks", "nonsense", "--prolog")
    assert (status, "ended with 64: " in said) == (0, True)
    assert of(slurm, "n2") == ("idle", "none")


@pytest.mark.parametrize(
    "report",
    [
        r"printf '\375\377'",
        """echo '{"nodes": [1]}'""",
        """echo '{"nodes": {"n1": {"checks": [1]}}}'""",
        """head -c 100000 /dev/zero | tr '\\0' '['""",
    ],
)
def test_a_report_that_is_none_stops_no_job(tmp_path: Path, report: str) -> None:
    """Its traceback would end with 1, which keeps jobs away."""
    liar = tmp_path / "liar"
    liar.write_text(f"#!/bin/sh\n{report}\n")
    liar.chmod(0o755)
    command = [sys.executable, str(PROGRAM), "--prolog", "--clustercheck", str(liar)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith("node_health: clustercheck's report cannot be read (")
    assert done.stderr.endswith("; nothing is changed\n")


def test_a_reason_of_somebody_else_is_left_alone(slurm: SlurmCluster, health: Health) -> None:
    slurm.scontrol("update", "nodename=n3", "state=drain", "reason=memory is on its way (anna)")
    status, said = health("n3", 2)
    assert said == (
        "node_health: fails (site.critical), and is left as it is: memory is on its way (anna)\n"
    )
    assert health("n3", 0) == (0, "")
    assert of(slurm, "n3") == ("drained", "memory is on its way (anna)")


def test_no_more_than_the_share_is_drained(slurm: SlurmCluster, health: Health) -> None:
    """Of six nodes 34 % are two."""
    assert "is drained" in health("n1", 2, "--share", "34")[1]
    assert "is drained" in health("n2", 2, "--share", "34")[1]
    status, said = health("n3", 2, "--share", "34")
    assert said == (
        "node_health: fails (site.critical), and is not drained: 2 of 6 nodes are already, as "
        "--share 34 allows\n"
    )
    assert of(slurm, "n3") == ("idle", "none")
    # for a 1 of the Prolog, Slurm itself would drain it
    assert health("n3", 2, "--share", "34", "--prolog")[0] == 0
    assert health("n2", 2, "--share", "34", "--prolog") == (1, "")


def test_nodes_that_fail_at_the_same_moment_keep_to_the_share(
    slurm: SlurmCluster, site: Path
) -> None:
    (site / "flag").write_text("2")
    command = [sys.executable, str(PROGRAM), "--clustercheck", str(CLUSTERCHECK)]
    command += ["--inventory", str(site / "inventory.ini"), "--checks", "site", "--share", "34"]
    running: list[subprocess.Popen[bytes]] = [
        slurm.popen(*command, "--node", node) for node in NODES
    ]
    assert [process.wait(100) for process in running] == [0] * 6
    drained = [node for node in NODES if of(slurm, node)[0] == "drained"]
    assert len(drained) == 2


def program_file(slurm: SlurmCluster, site: Path, *words: str) -> None:
    """What slurm.conf names: the health of n1, with the check of the site."""
    path = site / "new"
    variables = [f"{name}='{value}'" for name, value in slurm.env.items()]
    command = f"--clustercheck '{CLUSTERCHECK}' --inventory '{site}/inventory.ini' --checks site"
    path.write_text(
        "#!/bin/sh\n[ $SLURMD_NODENAME = n1 ] || exit 0\n"
        f"export {' '.join(variables)}\n"
        f"exec '{sys.executable}' '{PROGRAM}' {command} {' '.join(words)} 2>>'{site}/said'\n"
    )
    path.chmod(0o755)
    path.replace(site / "program")


def test_slurmd_calls_it(make_slurm: MakeSlurm, site: Path) -> None:
    program = site / "program"
    (site / "flag").write_text("2")
    slurm = make_slurm(
        f"HealthCheckProgram={program}", "HealthCheckInterval=1", "HealthCheckNodeState=ANY"
    )
    program_file(slurm, site)
    slurm.until(lambda: of(slurm, "n1") == ("drained", "clustercheck: site.critical"))
    (site / "flag").write_text("0")
    slurm.until(lambda: of(slurm, "n1") == ("idle", "none"))


def test_as_a_prolog_it_keeps_the_job_away(make_slurm: MakeSlurm, site: Path) -> None:
    """The node is drained with our reason, and not with Slurm's "Prolog error"."""
    (site / "flag").write_text("2")
    slurm = make_slurm(
        f"Prolog={site}/program",
        "PrologFlags=Alloc",
        "SchedulerParameters=nohold_on_prolog_fail",
    )
    program_file(slurm, site, "--prolog")
    job = slurm.sbatch("hostname; echo ran on $SLURMD_NODENAME", "-N1")
    slurm.until(lambda: of(slurm, "n1")[0].startswith("drain"))
    assert of(slurm, "n1")[1] == "clustercheck: site.critical"
    slurm.until(lambda: (slurm.state(job), slurm.field(job, "Restarts")) == ("PENDING", "1"))
    slurm.scontrol("update", f"jobid={job}", "StartTime=now")
    assert slurm.wait(job) == "COMPLETED"
    assert "ran on n2" in slurm.output(job)
    assert of(slurm, "n1")[1] == "clustercheck: site.critical"


def test_a_fault_of_its_own_keeps_no_job_away() -> None:
    code = (
        "import runpy, sys\n"
        "import subprocess\n"
        "def broken(*words, **more): raise RuntimeError('a fault of ours')\n"
        "subprocess.run = broken\n"
        f"sys.argv = [{str(PROGRAM)!r}, '--prolog']\n"
        f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "RuntimeError: a fault of ours"
