"""The command of each peer: it sends the rig's script to so many nodes and prints the answers.

Peers are what installs: Python packages go into .tools/bench, pdsh is unpacked into .tools/pdsh.
"""

import base64
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.rig import CHECKS, CLUSTERCHECK, PROJECT, Rig
from tools.fetch import ON_DEMAND, TOOLS, WANTED, CannotFetch, fetch, program

VENV = TOOLS / "bench"
PACKAGES = (
    "asyncssh",
    "uvloop",
    "parallel-ssh",
    "fabric",
    "pyinfra",
    "ClusterShell",
    "ansible-core",
)
LIBRARIES = ("asyncssh + uvloop", "parallel-ssh", "fabric", "paramiko SSHClient")
OURS = "clustercheck"
OURS_SHARED = "clustercheck, two processes"


def install() -> str:
    """Bring .tools/bench and .tools/pdsh up; returns what pip says is in the first."""
    WANTED["pdsh"] = {"pdsh": "pdsh"}
    ON_DEMAND.add("pdsh")
    try:
        fetch("pdsh")
    except CannotFetch as why:
        print(f"without pdsh: {why}", file=sys.stderr)
    python = VENV / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-qqq", *PACKAGES], check=True)
    frozen = subprocess.run([*pip, "freeze"], check=True, stdout=subprocess.PIPE, text=True)
    return frozen.stdout


def commands(rig: Rig, nodes: int, window: int) -> dict[str, list[str]]:
    """By peer; those that are not to be had on this machine are left out."""
    hosts = rig.folder / "hosts"
    hosts.write_text("\n".join(rig.addresses[:nodes]) + "\n")
    found = {
        OURS: _ours(rig, nodes, window),
        OURS_SHARED: [*_ours(rig, nodes, window), "--processes", "2"],
        "clustercheck, asking only": _asking(rig, nodes, window),
        "clustercheck, asking only, stock paramiko": [*_asking(rig, nodes, window), "--stock"],
    }
    ssh = shutil.which("ssh") or program("ssh")
    if ssh:
        one = f"{ssh} -F {rig.ssh_config} @ exec sh -s <{rig.script}"
        found["xargs -P ssh"] = _shell(f"xargs -a {hosts} -P {window} -I@ sh -c {shlex.quote(one)}")
        found["clush"] = _shell(
            f"{VENV}/bin/clush -S -f {window} -o '-F {rig.ssh_config}' --hostfile {hosts} "
            f"exec sh -s <{rig.script}"
        )
        # Neither its splitting of words nor its templates must see the script.
        packed = base64.b64encode(rig.script.read_bytes()).decode()
        found["ansible -m raw"] = _shell(
            f"ANSIBLE_SSH_ARGS='-F {rig.ssh_config} -o ControlMaster=no -o ControlPath=none' "
            f"{VENV}/bin/ansible all -i {hosts} -f {window} -m raw "
            f"-a 'echo {packed} | base64 -d | sh -s'"
        )
        pdsh = (
            f"PDSH_SSH_ARGS_APPEND='-F {rig.ssh_config}' pdsh -R ssh -S -f {window} -w ^{hosts} "
            f'"$(cat {rig.script})"'
        )
        if shutil.which("pdsh"):
            found["pdsh"] = _shell(pdsh)
        elif (TOOLS / "pdsh/usr/bin/pdsh").exists():
            # pdsh has the path of its modules built in: they are put there for it alone.
            usr = f"mount -t overlay -o lowerdir={TOOLS}/pdsh/usr:/usr pdsh /usr"
            found["pdsh"] = ["unshare", "--mount", *_shell(f"{usr} && {pdsh}")]
    inventory = rig.folder / "pyinfra_hosts.py"
    inventory.write_text(f"hosts = {list(rig.addresses[:nodes])!r}\n")
    found["pyinfra exec"] = _shell(
        f"{VENV}/bin/pyinfra --data ssh_port={rig.port} --data ssh_user={rig.user} "
        f"--data ssh_key={rig.key} --data ssh_known_hosts_file={rig.known_hosts} "
        f'--parallel {window} -y {inventory} exec -- "$(cat {rig.script})" 2>&1'
    )
    for library in LIBRARIES:
        found[library] = _library(rig, library, nodes, window)
    return found


def _ours(rig: Rig, nodes: int, window: int) -> list[str]:
    words = ["run", "-i", rig.inventory(nodes), "-c", CHECKS, "--parallel", window, *rig.words()]
    return [str(CLUSTERCHECK), *map(str, words), "--format", "json"]


def _asking(rig: Rig, nodes: int, window: int) -> list[str]:
    words = [PROJECT / ".venv/bin/python", "-m", "benchmarks.asking", rig.inventory(nodes)]
    return [*map(str, words), str(rig.known_hosts), CHECKS, str(window)]


def _library(rig: Rig, name: str, nodes: int, window: int) -> list[str]:
    script = Path(__file__).with_name("libraries.py")
    words = [VENV / "bin/python", script, name, rig.folder / "hosts", rig.port, rig.user, rig.key]
    return [*map(str, words), str(rig.known_hosts), str(rig.script), str(window)]


def _shell(line: str) -> list[str]:
    return ["sh", "-c", line]
