"""Real NFS: a server and its clients, guests with a kernel of their own, and what befalls them."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host import Keys
from tests.lab.cluster import Lab
from tests.lab.guests import Guest, boot, why_no_guests
from tests.lab.reports import Report, checked, words
from tests.lab.reports import bad as by_node
from tests.lab.spec import Spec, healthy

# Kernels boot on whatever cores there are.
pytestmark = pytest.mark.timeout(400)

# /srv/disk can be frozen, as a disk whose controller hangs.
SERVER = r"""
modprobe -a nfsd loop sch_netem
mount -t nfsd nfsd /proc/fs/nfsd
echo 1048576 >/proc/fs/nfsd/max_block_size # else it is made of the little memory there is
mount -t tmpfs -o size=1m srv /srv         # the machine's files cannot be exported
for share in home scratch squashed full images moved; do
    mkdir /srv/$share
    size=200m
    [ $share != full ] || size=1m
    mount -t tmpfs -o size=$size $share /srv/$share
    chmod 1777 /srv/$share
done
head -c 1M /dev/zero >/srv/full/fill || :
truncate -s 8M /run/disk
mkfs.ext4 -q /run/disk
mkdir /srv/disk
mount -o loop /run/disk /srv/disk
chmod 1777 /srv/disk
cat >/etc/exports <<END
/srv          *(ro,sync,fsid=0,no_subtree_check)
/srv/home     *(rw,sync,root_squash,fsid=1,no_subtree_check)
/srv/scratch  *(rw,async,no_root_squash,fsid=2,no_subtree_check)
/srv/squashed *(rw,sync,all_squash,fsid=3,no_subtree_check)
/srv/full     *(rw,sync,no_root_squash,fsid=4,no_subtree_check)
/srv/images   *(ro,sync,fsid=5,no_subtree_check)
/srv/moved    *(rw,sync,fsid=6,no_subtree_check)
/srv/disk     *(rw,sync,fsid=7,no_subtree_check)
END
mkdir -p /run/rpcbind /run/sendsigs.omit.d /var/lib/nfs/sm /var/lib/nfs/v4recovery
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
echo '_rpc:x:102:65534::/run/rpcbind:/usr/sbin/nologin' >>/etc/passwd
rpcbind -w
until rpcinfo -p >/dev/null 2>&1; do sleep 0.05; done
exportfs -ra
rpc.mountd
rpc.nfsd 4
"""

CLIENT = r"""
modprobe -a nfs nfsv3 nfsv4
share() {
    mkdir -p "/nfs/$1"
    mount -t nfs -o "$3" "nfs-data:$2" "/nfs/$1"
}
"""

FULL_SPEED = "vers=4.2,rsize=1048576,wsize=1048576,hard"

SHARES = f"""
share home /home {FULL_SPEED}
share scratch /scratch {FULL_SPEED}
share squashed /squashed {FULL_SPEED}
"""

ODD = f"""
share small /srv/scratch vers=3,nolock,rsize=8192,wsize=8192,soft,timeo=10
share full /full {FULL_SPEED}
share images /images {FULL_SPEED}
share closed /home {FULL_SPEED},ro
"""

BREAKABLE = f"""
share moved /moved {FULL_SPEED}
share disk /disk {FULL_SPEED}
"""

GUESTS = [
    Guest(Spec("nfs", before=SERVER), memory=320),
    Guest(Spec("mounted", before=CLIENT + SHARES)),
    Guest(Spec("odd", before=CLIENT + ODD + BREAKABLE)),
]
NODES = healthy(2)

ODD_ANYWAY = ("fail nfs.full §4.4", "warn nfs.soft §2.3", "warn nfs.io_size §2.3")

# A guest has one processor, which others want as well: it may be called busy.
TIMED = ["-o", "nfs.throughput=yes", "-o", "nfs.size_mb=16", "-o", "nfs.busy_percent=10000"]


@pytest.fixture(scope="module")
def lab(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes, an NFS server and two clients of it."""
    if why := why_no_guests():
        pytest.skip(why)
    made = Lab(tmp_path_factory.mktemp("nfs"), keys, NODES, guests=[g.spec for g in GUESTS])
    try:
        boot(made, GUESTS)
        yield made
    finally:
        made.close()


@contextmanager
def slow_link(lab: Lab, rate: str) -> Iterator[None]:
    """What is sent to the server arrives at so many bits a second."""
    port = f"data{lab.numbers['nfs']}"
    lab.run_in_head(f"tc qdisc add dev {port} root tbf rate {rate} burst 32k latency 50ms")
    try:
        yield
    finally:
        lab.run_in_head(f"tc qdisc del dev {port} root")


@contextmanager
def far_server(lab: Lab) -> Iterator[None]:
    """Each answer of the server takes 0.4 s: so long a file of ours is there at least."""
    lab.login("nfs", "tc qdisc add dev eth1 root netem delay 400ms")
    try:
        yield
    finally:
        lab.login("nfs", "tc qdisc del dev eth1 root")


@contextmanager
def frozen(lab: Lab) -> Iterator[None]:
    """The server stands still. After that, its mounts hang on until TCP tries again."""
    lab.freeze("nfs")
    try:
        yield
    finally:
        lab.thaw("nfs")
        lab.login("mounted", "stat -f /nfs/home /nfs/scratch /nfs/squashed", timeout=150)


@contextmanager
def running(lab: Lab, nodes: str, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """A run that goes on."""
    command = words(lab, "-w", nodes, *more)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def report_of(process: "subprocess.Popen[str]") -> Report:
    """What the run reports when it has come to its end by itself."""
    text, _ = process.communicate(timeout=200)
    return Report(text, process.returncode)


def wait_for_file(lab: Lab, pattern: str) -> None:
    """Until there is a file on the share home, as the server sees it."""
    lab.login(
        "nfs",
        f"""cd /srv/home
        turns=0
        until set -- {pattern} && [ -e "$1" ]; do
            turns=$((turns + 1))
            [ $turns -lt 1000 ]
            sleep 0.05
        done""",
    )


WRITTEN = ".clustercheck-nfs-*/.nfs*"  # what has no name any more, as NFS keeps it


def ours(lab: Lab) -> list[str]:
    """What of ours is on the shares."""
    return lab.login("nfs", "ls -dA /srv/*/.clustercheck* 2>/dev/null || :").split()


def processes(lab: Lab) -> str:
    """What of ours runs on a client."""
    return lab.login("mounted", "ps axo pid,stat,wchan,args | grep '[c]lustercheck' || :")


def soon(true: Callable[[], bool], within: float) -> bool:
    deadline = time.monotonic() + within
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def said(report: Report, node: str, code: str) -> list[str]:
    return [found.message for found in report.findings(node, "nfs") if found.code == f"nfs.{code}"]


def bad(report: Report) -> dict[str, list[str]]:
    """By node, what is worse than pass, in the alphabet's order."""
    return {node: sorted(finds) for node, finds in by_node(report).items()}


def odd(*finds: str) -> list[str]:
    """What is found on the node odd, beside what is wrong there anyway."""
    return sorted([*ODD_ANYWAY, *finds])


def test_mounts(lab: Lab) -> None:
    report = checked(lab, ["node01", "mounted", "odd"], "-c", "nfs")
    assert bad(report) == {"odd": odd()}
    assert {*said(report, "mounted", "root_squash")} == {
        "/nfs/home: root is squashed (a file of root belongs to 65534)",
        "/nfs/squashed: root is squashed (a file of root belongs to 65534)",
        "/nfs/scratch: root is not squashed (a file of root belongs to 0)",
    }
    assert ours(lab) == []


def test_read_only_where_writing_is_wanted(lab: Lab) -> None:
    wanted = ["-o", "nfs.writable=/nfs/images,/nfs/closed,/nfs/home"]
    report = checked(lab, ["mounted", "odd"], "-c", "nfs", *wanted)
    assert bad(report) == {"odd": odd("fail nfs.read_only §5.2", "fail nfs.read_only §5.2")}
    assert said(report, "odd", "read_only") == [
        "/nfs/images is exported ro, should be writable: the mount itself is rw",
        "/nfs/closed is mounted ro, should be writable",
    ]


def test_throughput(lab: Lab) -> None:
    report = checked(lab, ["node01", "mounted", "odd"], "-c", "nfs", *TIMED)
    assert bad(report) == {"odd": odd()}
    for node, place in (("mounted", "/nfs/home"), ("odd", "/nfs/small")):
        (timed,) = said(report, node, "throughput")
        assert timed.startswith(f"{place}: ")
        assert "MB/s (16 MiB of zeros in" in timed
        assert len(said(report, node, "small_files")) == 1
    assert ours(lab) == []


def test_a_slow_link(lab: Lab) -> None:
    with slow_link(lab, "40mbit"):
        report = checked(lab, ["node01", "mounted"], "-c", "nfs", *TIMED)
        wanted = checked(lab, ["mounted"], "-c", "nfs", *TIMED, "-o", "nfs.min_mb_per_second=50")
    assert bad(report) == {"mounted": ["warn nfs.throughput §4.1.3"]}
    assert bad(wanted) == {"mounted": ["fail nfs.throughput §4.1.3"]}
    (timed,) = said(report, "mounted", "throughput")
    rate, _, rest = timed.removeprefix("/nfs/home: ").partition(" MB/s")
    assert 3 < float(rate) <= 5, "40 Mbit/s are 5 MB/s"
    assert rest.endswith(
        "should be 5.6 MB/s or more (16 MiB in 3 s; the link's speed is not known)"
    )
    assert said(wanted, "mounted", "throughput")[0].endswith("should be 50 MB/s or more (as set)")


def test_a_server_that_stands_still(lab: Lab) -> None:
    with frozen(lab):
        report = checked(lab, ["node01", "node02", "mounted"], "-c", "nfs,tmp")
    assert bad(report) == {"mounted": ["fail nfs.server §1"]}
    assert "TCP port 2049" in report.bad("mounted")[0].message
    assert bad(checked(lab, ["node01", "mounted"], "-c", "nfs")) == {}


def test_a_server_that_stops_while_its_mounts_are_looked_at(lab: Lab) -> None:
    with far_server(lab):
        began = time.monotonic()
        with running(lab, "node01,node02,mounted", "-c", "nfs,tmp") as process:
            wait_for_file(lab, ".clustercheck-nfs-*-root")
            with frozen(lab):
                report = report_of(process)
        assert time.monotonic() - began < 60
    assert bad(report) == {"mounted": ["fail nfs.hung §5.3"]}
    assert report.bad("mounted")[0].message == (
        "/nfs/home, /nfs/scratch, /nfs/squashed (all from nfs-data) do not answer, the first when"
        " asked for root's file, and hang whoever waits"
    )
    assert {found.status for found in report.findings("mounted", "tmp")} == {"pass"}
    assert processes(lab) == ""
    # What the server was asked to make, and did when it went on, is there no longer.
    report = checked(lab, ["mounted"], "-c", "nfs")
    assert bad(report) == {}
    assert ours(lab) == []


def test_a_server_that_stops_while_writing_is_timed(lab: Lab) -> None:
    with slow_link(lab, "8mbit"):
        began = time.monotonic()
        with running(lab, "node01,mounted", "-c", "nfs,tmp", *TIMED) as process:
            wait_for_file(lab, WRITTEN)
            with frozen(lab):
                report = report_of(process)
        assert time.monotonic() - began < 180
    assert bad(report) == {"mounted": ["fail nfs.server §1"]}
    message = report.bad("mounted")[0].message
    assert message.startswith(
        "/nfs/home answered, and no longer since it is to be timed: writing 8 MiB did not end"
        " within 20 s, and TCP port 2049 of nfs-data gave no answer within 3 s; the next run"
        " removes /nfs/home/.clustercheck-nfs-mounted-"
    )
    assert processes(lab) == ""
    report = checked(lab, ["mounted"], "-c", "nfs")
    assert bad(report) == {}
    assert ours(lab) == []


@pytest.mark.parametrize("killed", ["the run", "all on the node"])
def test_killed_while_writing_is_timed(lab: Lab, killed: str) -> None:
    """Nothing runs on and nothing is left; or the next run removes it, and says so."""
    with slow_link(lab, "8mbit"), running(lab, "mounted", "-c", "nfs", *TIMED) as process:
        wait_for_file(lab, WRITTEN)
        if killed == "the run":
            process.kill()
        else:
            lab.login("mounted", "pkill -KILL -f '[.]clustercheck-|sh -s'")
            process.wait(60)
        assert soon(lambda: processes(lab) == "", 15), processes(lab)
    left = ours(lab)
    report = checked(lab, ["mounted"], "-c", "nfs")
    assert bad(report) == {}
    if killed == "the run":
        assert (left, said(report, "mounted", "leftover")) == ([], [])
    else:
        name = left[0].removeprefix("/srv/home/")
        assert said(report, "mounted", "leftover") == [
            f"/nfs/home: left by an earlier run, and removed now: {name}"
        ]
    assert lab.login("nfs", "ls -A /srv/home") == ""


def test_killed_while_a_file_is_looked_at(lab: Lab) -> None:
    """The probe has two seconds to remove it, which may not do with a server as slow as this."""
    with far_server(lab), running(lab, "mounted", "-c", "nfs") as process:
        wait_for_file(lab, ".clustercheck-nfs-*-root")
        process.kill()
        assert soon(lambda: processes(lab) == "", 15), processes(lab)
    left = {Path(path).name for path in ours(lab)}
    report = checked(lab, ["mounted"], "-c", "nfs")
    assert bad(report) == {}
    told = " ".join(said(report, "mounted", "leftover"))
    assert {name for name in left if name in told} == left
    assert ours(lab) == []


def test_a_client_that_is_cut_off_while_writing_is_timed(lab: Lab) -> None:
    timed = ["-c", "nfs,tmp", *TIMED]
    with slow_link(lab, "8mbit"), running(lab, "node01,mounted", *timed) as process:
        wait_for_file(lab, WRITTEN)
        # A tap that is down is of no use to its guest ever after.
        lab.run_in_head(f"ip link set {lab.port('mounted')} nomaster")
        try:
            report = report_of(process)
        finally:
            lab.run_in_head(f"ip link set {lab.port('mounted')} master logins")
    assert bad(report) == {"mounted": ["unknown nfs.throughput"]}
    assert report.bad("mounted")[0].message.startswith("not timed: nothing more was heard of it")
    assert soon(lambda: processes(lab) == "", 30), processes(lab)
    assert ours(lab) == []


def test_a_stale_handle(lab: Lab) -> None:
    """The share is another file system by now: only mounting it anew helps."""
    lab.login(
        "nfs",
        """exportfs -u '*:/srv/moved'
        umount /srv/moved
        mount -t tmpfs -o size=1m moved /srv/moved
        sed -i 's/fsid=6,/fsid=16,/' /etc/exports
        exportfs -ra""",
    )
    report = checked(lab, ["node01", "mounted", "odd"], "-c", "nfs")
    assert bad(report) == {"odd": odd("fail nfs.stale §4.4")}
    assert said(report, "odd", "stale") == [
        "/nfs/moved (nfs-data:/moved) is stale (Stale file handle)"
    ]
    lab.login("odd", f"umount -l /nfs/moved\nmount -o {FULL_SPEED} nfs-data:/moved /nfs/moved")
    assert bad(checked(lab, ["odd"], "-c", "nfs")) == {"odd": odd()}


def test_a_disk_of_the_server_that_hangs(lab: Lab) -> None:
    """The port is open. First writing to one share hangs, then all threads of nfsd do."""
    lab.login("nfs", "mkdir -m 777 /srv/disk/1 /srv/disk/2 /srv/disk/3 /srv/disk/4")
    lab.login("nfs", "fsfreeze -f /srv/disk")
    try:
        one = checked(lab, ["node01", "mounted", "odd"], "-c", "nfs")
        jobs = (
            "for job in 1 2 3 4; do setsid touch /nfs/disk/$job/x >/dev/null 2>&1 </dev/null & done"
        )
        lab.login("odd", jobs)
        all_of_it = checked(lab, ["node01", "mounted", "odd"], "-c", "nfs,tmp")
    finally:
        lab.login("nfs", "fsfreeze -u /srv/disk")
    assert bad(one) == {"odd": odd("fail nfs.hung §5.3")}
    assert said(one, "odd", "hung") == [
        "/nfs/disk: making an empty file did not end within 4 s, though reading answers"
    ]
    assert bad(all_of_it)["mounted"] == ["fail nfs.hung §5.3"]
    assert "fail nfs.hung §5.3" in bad(all_of_it)["odd"]
    assert set(bad(all_of_it)) == {"mounted", "odd"}
    (hung,) = said(all_of_it, "odd", "hung")
    assert "; in state D now: touch (process " in hung
