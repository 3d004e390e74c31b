"""The check nfs: what the probe sees on made-up nodes, with real directories for mounts."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.made_up import judged
from tests.nfs_node import V3, V4, NfsNode, Server, listening, mount_line
from tests.shells import SHELLS, shell_words
from tests.this_machine import facts_here
from tools.fetch import program

DATA = Path(__file__).resolve().parent.parent / "data" / "nfs"
USER = 54321  # nobody has it


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def node() -> Iterator[NfsNode]:
    """In a folder that other users can get at, as they cannot at pytest's own."""
    with TemporaryDirectory(prefix="nfs-") as folder:
        Path(folder).chmod(0o755)
        yield NfsNode(Path(folder))


@pytest.fixture
def as_user() -> list[str]:
    """Words that start a shell as an ordinary user."""
    setpriv = program("setpriv")
    if os.getuid() != 0 or setpriv is None:
        pytest.skip("cannot here: only root can be somebody else")
    return [str(setpriv), f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


def codes(said: list[str]) -> list[str]:
    return [line.partition(":")[0] for line in said]


def test_no_nfs(node: NfsNode, shell: str) -> None:
    told = node.facts(shell=shell)
    assert judged("nfs", told) == ["skip none: no NFS mount, and none wanted"]
    (node.root / "proc/self/mountinfo").unlink()
    assert codes(judged("nfs", node.facts(shell=shell))) == ["unknown mounts"]


def test_a_healthy_mount_as_user(node: NfsNode, shell: str, as_user: list[str]) -> None:
    with listening() as server:
        node.mounted(mount_line("/home", options=f"{V4},{server.at}"))
        told = node.facts(shell=shell, before=as_user)
    assert (told["touch@1"], told["owner@1"], told["chmod@1"]) == ("done", str(USER), "done")
    assert codes(judged("nfs", told)) == ["pass answers", "pass owner"]
    assert node.left() == []


def test_what_root_may_do(node: NfsNode, shell: str) -> None:
    if os.getuid() != 0:
        pytest.skip("cannot here: root_squash shows to root only")
    node.mounted(mount_line("/home", options=f"{V4},addr=127.0.0.1,proto=rdma"))
    told = node.facts(shell=shell)
    assert "touch@1" not in told
    assert (told["root.touch@1"], told["root.owner@1"], told["root.chown@1"]) == (
        "done",
        "0",
        "done",
    )
    assert codes(judged("nfs", told, root_squash="on")) == ["pass answers", "fail root_squash"]
    assert node.left() == []


def test_the_home_where_the_mount_itself_is_closed(
    node: NfsNode, shell: str, as_user: list[str]
) -> None:
    node.mounted(mount_line("/home", options=f"{V4},proto=rdma"))
    home = node.root / "home/alice"
    home.mkdir(mode=0o700)
    os.chown(home, USER, USER)
    (node.root / "home").chmod(0o755)
    told = node.facts(shell=shell, before=as_user, home="/home/alice")
    assert (told["place@1"], told["touch@1"]) == ("/home/alice", "done")
    assert told["home@1"] == str(USER)
    os.chown(home, 65534, 65534)
    said = judged("nfs", node.facts(shell=shell, before=as_user, home="/home/alice"))
    assert said[1].startswith(f"fail owner: /home: the home of user {USER} belongs to 65534")
    assert judged("nfs", node.facts(shell=shell, before=as_user))[1].startswith("skip write: /home")


def test_directories_of_the_option(node: NfsNode, shell: str, as_user: list[str]) -> None:
    node.mounted(
        mount_line("/home", options=f"{V4},proto=rdma"),
        mount_line("/data", number=45, options=f"{V4},proto=rdma"),
    )
    (node.root / "data").chmod(0o755)
    (node.root / "data/all of us").mkdir()
    (node.root / "data/all of us").chmod(0o1777)
    told = node.facts(shell=shell, before=as_user, write_dirs=("/data/all of us",))
    assert told["place@2"] == "/data/all of us"
    assert told["touch@2"] == "done"


def test_nothing_is_written_where_nothing_shall_be(node: NfsNode, shell: str) -> None:
    node.mounted(
        mount_line("/ro", options=f"{V4.replace('rw', 'ro', 1)},proto=rdma"),
        mount_line("/rw", number=45, options=f"{V4},proto=rdma"),
    )
    node.command("touch", "echo touched >&2; exit 1")
    told = node.facts(shell=shell)
    assert (told.get("root.touch@1"), told["touched"]) == (None, "2")
    told = node.facts(shell=shell, write=False)
    assert not [key for key in told if "touch@" in key]
    assert codes(judged("nfs", told, write=False)) == ["pass answers", "pass answers"]


def test_a_server_that_is_gone(node: NfsNode, shell: str) -> None:
    """The mount is not touched: whoever did would hang."""
    server = Server()
    server.close()
    node.mounted(mount_line("/scratch", options=f"{V4},{server.at}"))
    node.command("stat", "sleep 3600")
    node.says("dmesg", "[90121.001102] nfs: server nas1 not responding, still trying\n")
    began = time.monotonic()
    said = judged("nfs", node.facts(shell=shell))
    assert time.monotonic() - began < 60
    assert said == [
        "fail server: the server nas1 (127.0.0.1) does not answer, so /scratch cannot be used and"
        f" would hang whoever touches it: TCP port {server.port} cannot be reached: Connection"
        " refused; the kernel's log: [90121.001102] nfs: server nas1 not responding, still trying"
    ]


def test_without_bash_or_nc(node: NfsNode, shell: str) -> None:
    """The mount itself is then the only one to tell, within its limit."""
    node.hide("bash", "nc")
    node.mounted(mount_line("/home", options=f"{V4},addr=127.0.0.1,port=1"))
    told = node.facts(shell=shell if shell != "bash" else "dash")
    assert told["state@1"] == "answers"


def test_with_nc_instead_of_bash(node: NfsNode, shell: str) -> None:
    node.hide("bash")
    busybox, *_ = shell_words("busybox sh")
    node.command("nc", f'exec {busybox} nc "$@"')
    with listening() as server:
        node.mounted(mount_line("/home", options=f"{V4},{server.at}"))
        assert node.facts(shell=shell)["state@1"] == "answers"
    told = node.facts(shell=shell)
    assert told["state@1"] == "not touched"
    assert told[f"reach@127.0.0.1/{server.port}"] == "Connection refused"


# Stands for the D state: no signal but KILL helps, and the parent's KILL leaves the child behind.
HANGS = (
    'case "$*" in */scratch*) trap "" TERM INT HUP ALRM; sleep {0} & wait; sleep {0} ;;'
    ' *) exec /usr/bin/{1} "$@" ;; esac'
)


def test_case_a_hung_mount_harms_no_other_and_leaves_nothing(node: NfsNode, shell: str) -> None:
    seconds = f"36{os.getpid() % 1000:03}.5"
    with listening() as server:
        node.mounted(
            mount_line("/scratch", options=f"{V3},nolock,{server.at}"),
            mount_line("/home", number=45, options=f"{V4},{server.at}"),
        )
        for name in ("stat", "df", "timeout", "ls"):
            node.command(name, HANGS.format(seconds, name))
        began = time.monotonic()
        told = node.facts(shell=shell)
    assert time.monotonic() - began < 60
    said = judged("nfs", told)
    assert said[0].startswith("fail hung: /scratch (nas1:/export) does not answer when asked for")
    assert codes(said[1:])[0] == "pass answers"
    left = subprocess.run(["ps", "axo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"sleep {seconds}" not in left


def test_a_hung_mount_that_can_be_ended(node: NfsNode, shell: str) -> None:
    node.mounted(mount_line("/scratch", options=f"{V4},proto=rdma"))
    node.command("stat", "exec sleep 3600")
    told = node.facts(shell=shell)
    assert told["state@1"] == "hung"
    assert codes(judged("nfs", told)) == ["fail hung"]


def test_a_stale_mount(node: NfsNode, shell: str) -> None:
    node.mounted(mount_line("/data", options=f"{V4},proto=rdma"))
    text = "stat: cannot read file system information for '/data': Stale file handle"
    node.says("stat", stderr=f"{text}\n", status=1)
    said = judged("nfs", node.facts(shell=shell))
    assert said == ["fail stale: /data (nas1:/export) is stale (Stale file handle)"]


def test_case_octal_escapes(node: NfsNode, shell: str) -> None:
    targets = {
        "/data/run\\0403": "/data/run 3",
        "/data/a\\011b": "/data/a\tb",
        "/data/back\\134040slash": "/data/back\\040slash",
        "/data/100%s": "/data/100%s",
    }
    node.mounted(
        *(
            mount_line(target, number=number, options=f"{V4},proto=rdma")
            for number, target in enumerate(targets, 44)
        )
    )
    node.file(
        "/etc/fstab",
        "".join(f"nas1:/export {target} nfs4 defaults 0 0\n" for target in targets),
    )
    told = node.facts(shell=shell, mounts=("/data/run 3/",))
    said = [line for line in judged("nfs", told) if "answers" in line]
    for line, path in zip(said, targets.values(), strict=True):
        assert line.startswith(f"pass answers: {path} (nas1:/export)")
    assert not told.keys() & {"absent@1", "left@1"}


def test_case_a_name_that_only_begins_alike_is_not_mounted(node: NfsNode, shell: str) -> None:
    """/data is not /data2, /srv/img/ is /srv/img, and / survives the cutting of slashes."""
    ro = V4.replace("rw", "ro", 1)
    node.mounted(
        mount_line("/data2", options=f"{V4},proto=rdma", source="192.0.2.40:/data2"),
        mount_line("/srv/img", number=45, options=f"{ro},proto=rdma", source="192.0.2.40:/img"),
    )
    node.file(
        "/etc/fstab",
        "# 192.0.2.40:/old /old nfs4 defaults 0 0\n"
        "127.0.0.1:/data  /data     nfs4 defaults,_netdev 0 0\n"
        "192.0.2.40:/img   /srv/img/ nfs4 ro,_netdev 0 0\n"
        "192.0.2.40:/a /auto nfs4 noauto 0 0\n"
        "192.0.2.40:/b /later nfs4 noauto,x-systemd.automount 0 0\n"
        "/dev/sda2 / ext4 defaults 0 1",
    )
    said = judged("nfs", node.facts(shell=shell))
    bad = [line for line in said if not line.startswith(("pass", "skip"))]
    assert len(bad) == 1
    assert bad[0].startswith("fail absent: /data is not mounted (from 127.0.0.1)")
    assert [line for line in said if line.startswith("pass answers: /srv/img")]
    root = node.facts(shell=shell, mounts=("/",))
    assert root["absent@1"] == "/data"
    assert root["absent@2"] == "/"


def test_case_the_servers_name_was_not_resolved(node: NfsNode, shell: str) -> None:
    node.file("/etc/fstab", "nfs01.cluster.example:/export/apps /apps nfs4 ro,_netdev 0 0\n")
    node.command("getent", "exit 2")
    node.command("systemd-escape", "echo apps.mount")
    node.says(
        "journalctl",
        "Mounting apps.mount - /apps...\n"
        "mount.nfs4: Failed to resolve server nfs01.cluster.example: Name or service not known\n"
        "apps.mount: Mount process exited, code=exited, status=32/n/a\n",
    )
    assert judged("nfs", node.facts(shell=shell)) == [
        "fail absent: /apps is not mounted (from nfs01.cluster.example): the name"
        " nfs01.cluster.example has no address; mount(8) said: mount.nfs4: Failed to resolve server"
        " nfs01.cluster.example: Name or service not known"
    ]
    assert judged("nfs", node.facts(shell=shell, require_fstab=False)) == [
        "skip none: no NFS mount, and none wanted"
    ]


def test_case_three_refusals_are_three_causes(node: NfsNode, shell: str) -> None:
    if os.getuid() != 0:
        pytest.skip("cannot here: root_squash shows to root only")
    node.mounted(
        *(
            mount_line(target, number=number, options=f"{V4},proto=rdma")
            for number, target in enumerate(("/home", "/apps", "/scratch"), 44)
        )
    )
    node.command(
        "touch",
        "case $1 in */home/*) why='Permission denied' ;; */apps/*) why='Read-only file system' ;;"
        " *) why='No space left on device' ;; esac\n"
        "echo \"touch: cannot touch '$1': $why\" >&2; exit 1",
    )
    policy = {"root_squash": "on", "read_only": ("/apps",)}
    said = [
        line for line in judged("nfs", node.facts(shell=shell), **policy) if "answer" not in line
    ]
    assert said == [
        "pass root_squash: /home: root is squashed (root may not write there)",
        "pass read_only: /apps is read-only, as wanted",
        "fail full: /scratch: no space left on device, not even for an empty file",
    ]
    off = judged("nfs", node.facts(shell=shell), root_squash="off", read_only=("/apps",))
    assert "fail root_squash: /home: root is squashed (root may not write there), should not" in (
        "\n".join(off)
    )


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            "proc-mounts-v3-v4.txt",
            [
                "pass answers: /home (nas1:/export/home) answers: NFS 4.2, hard, rsize 1024 KiB,"
                " wsize 1024 KiB, proto=tcp, sec=sys",
                "pass answers: /scratch (10.30.0.6:/vol/scratch) answers: NFS 3, hard, rsize 64 KiB"
                ", wsize 64 KiB, proto=tcp, sec=sys",
            ],
        ),
        (
            "proc-mounts-soft-sync-udp.txt",
            [
                "pass answers: /data (nas1:/export/data) answers: NFS 3, soft, rsize 8 KiB, wsize"
                " 8 KiB, proto=udp, sec=sys",
                "warn soft: /data is mounted soft and writable, should be hard",
                "warn udp: /data uses UDP, should use TCP",
                "warn sync: /data is mounted sync: each write waits for the server",
                "warn io_size: /data has rsize 8 KiB and wsize 8 KiB, should be 64 KiB or more",
            ],
        ),
        (
            "proc-mounts-autofs.txt",
            [
                "pass answers: /misc/sw (nas1:/export/sw) answers: NFS 4.1, ro, hard, rsize 1024"
                " KiB, wsize 1024 KiB, proto=tcp, sec=krb5p"
            ],
        ),
    ],
)
def test_recorded_mounts(node: NfsNode, shell: str, file: str, said: list[str]) -> None:
    """Lines of /proc/mounts in the form of mountinfo."""
    lines = []
    for number, line in enumerate((DATA / file).read_text().splitlines(), 40):
        source, target, kind, options = line.split(" ")[:4]
        # the server is another's: nobody is to be asked for it
        options = options.replace("addr=10.30.0.5", "addr=").replace("addr=10.30.0.6", "addr=")
        flag = options.partition(",")[0]
        lines.append(f"{number} 1 0:{number} / {target} {flag} - {kind} {source} {options}")
    node.mounted(*lines, make=False)
    for target in ("home", "scratch", "data", "misc/sw"):
        (node.root / target).mkdir(parents=True)
    assert judged("nfs", node.facts(shell=shell, write=False), write=False) == said


def test_an_automounter_mounts_what_is_wanted(node: NfsNode, shell: str) -> None:
    autofs = "50 27 0:50 / /misc rw - autofs /etc/auto.misc rw,fd=6,indirect"
    node.mounted(autofs)
    live = mount_line("/misc/sw", number=51, options=f"{V4},proto=rdma")
    (node.root / "misc/sw").mkdir()
    mountinfo = node.root / "proc/self/mountinfo"
    node.command("ls", f"echo '{live}' >>{mountinfo}; exec /usr/bin/ls \"$@\"")
    told = node.facts(shell=shell, mounts=("/misc/sw",), write=False)
    assert codes(judged("nfs", told, write=False)) == ["pass answers"]


def test_counters_and_log(node: NfsNode, shell: str) -> None:
    node.mounted(mount_line("/home", options=f"{V4},proto=rdma", source="nas1:/export/home"))
    node.file("/proc/self/mountstats", (DATA / "mountstats-healthy.txt").read_text())
    node.says("dmesg", "[1.0] x\n[90000.1] nfs: server nas1 not responding, still trying\n")
    told = node.facts(shell=shell, write=False)
    assert told["traffic"] == "1299 1299 /home"
    assert codes(judged("nfs", told, write=False)) == ["pass answers", "warn log"]


def test_leftovers_are_found(node: NfsNode, shell: str) -> None:
    node.mounted(mount_line("/home", options=f"{V4},proto=rdma"))
    old = node.file("/home/.clustercheck-nfs-node07-812-1")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    node.file("/home/.clustercheck-nfs-node08-813-1")  # may be at work
    said = judged("nfs", node.facts(shell=shell))
    assert said[-1].endswith("left by an earlier run: .clustercheck-nfs-node07-812-1")


def test_leftovers_of_this_node_are_removed(node: NfsNode, shell: str) -> None:
    node.mounted(mount_line("/home", options=f"{V4},proto=rdma"))
    node.file("/proc/sys/kernel/random/boot_id", "1a2b3c4d-0000-4000-8000-000000000000\n")
    ours = ".clustercheck-nfs-node03-1a2b3c4d"
    with subprocess.Popen(["true"]) as dead:
        pass
    node.file(f"/home/{ours}-{dead.pid}-timed/f1")
    node.file(f"/home/{ours}-{dead.pid}-1")
    node.file(f"/proc/{os.getpid()}/comm", "sh\n")
    node.file(f"/home/{ours}-{os.getpid()}-1")  # a run that goes on
    node.file(f"/home/.clustercheck-nfs-node03-0e0e0e0e-{dead.pid}-1")  # of another boot
    before = node.file(f"/home/.clustercheck-nfs-node03-0f0f0f0f-{os.getpid()}-1")  # long ago
    os.utime(before, (time.time() - 7200, time.time() - 7200))
    told = node.facts(shell=shell)
    assert sorted(told["removed@1"].split()) == [
        before.name,
        f"{ours}-{dead.pid}-1",
        f"{ours}-{dead.pid}-timed",
    ]
    assert {path.name for path in (node.root / "home").iterdir()} == {
        f"{ours}-{os.getpid()}-1",
        f".clustercheck-nfs-node03-0e0e0e0e-{dead.pid}-1",
    }
    assert codes(judged("nfs", told))[-1] == "pass leftover"


def test_a_mount_that_stops_to_answer_is_hung_and_who_waits_is_named(
    node: NfsNode, shell: str
) -> None:
    """The second look at it takes too long as well, whatever hung first."""
    node.mounted(mount_line("/scratch", options=f"{V4},proto=rdma"))
    node.command("chown", "exec sleep 3600")
    node.command("chmod", "exec sleep 3600")
    node.command(
        "stat",
        'case "$*" in *%S*) ;; *-f*) exec sleep 3600 ;; esac; exec /usr/bin/stat "$@"',
    )
    for pid, state, size in ((812, "D", 4096), (813, "D", 0), (814, "S", 4096)):
        numbers = " ".join(["1"] * 19)
        node.file(f"/proc/{pid}/stat", f"{pid} (tar (x)) {state} {numbers} {size} 1\n")
    told = node.facts(shell=shell)
    assert (told["state@1"], told["stuck"]) == ("hung", "812 tar (x)")
    assert codes(judged("nfs", told)) == ["fail hung"]
    assert node.left() == []


def test_exports_of_a_server(node: NfsNode, shell: str) -> None:
    node.says("exportfs", (DATA / "case-exports-two-groups.txt").read_text())
    said = judged("nfs", node.facts(shell=shell), root_squash="on")
    assert said == [
        "fail exports: exported without root_squash, should be with it:"
        " /export/home to 198.51.100.0/24"
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_this_machine(shell: str) -> None:
    assert "unknown" not in "\n".join(codes(judged("nfs", facts_here("nfs", shell))))
