"""Real NFS, SELinux and clocks: guests with a kernel of their own."""

from collections.abc import Iterator

import pytest

from tests.host import Keys
from tests.lab.cluster import Lab
from tests.lab.guests import Guest, boot, why_no_guests
from tests.lab.reports import Report, checked
from tests.lab.spec import Spec, healthy

# Five kernels boot on whatever cores there are.
pytestmark = pytest.mark.timeout(400)

SERVER = r"""
modprobe nfsd
mount -t nfsd nfsd /proc/fs/nfsd
echo 1048576 >/proc/fs/nfsd/max_block_size # else it is made of the little memory there is
mount -t tmpfs -o size=1m srv /srv         # the machine's files cannot be exported
for share in home scratch squashed full; do
    mkdir /srv/$share
    size=200m
    [ $share != full ] || size=1m
    mount -t tmpfs -o size=$size $share /srv/$share
    chmod 1777 /srv/$share
done
head -c 1M /dev/zero >/srv/full/fill || :
cat >/etc/exports <<END
/srv          *(ro,sync,fsid=0,no_subtree_check)
/srv/home     *(rw,sync,root_squash,fsid=1,no_subtree_check)
/srv/scratch  *(rw,async,no_root_squash,fsid=2,no_subtree_check)
/srv/squashed *(rw,sync,all_squash,fsid=3,no_subtree_check)
/srv/full     *(rw,sync,no_root_squash,fsid=4,no_subtree_check)
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
"""

GUESTS = [
    Guest(Spec("nfs", before=SERVER), memory=320),
    Guest(Spec("mounted", before=CLIENT + SHARES)),
    Guest(Spec("odd", before=CLIENT + ODD)),
    Guest(Spec("enforcing"), selinux="enforcing"),
    Guest(Spec("permissive"), selinux="permissive"),
]
NODES = healthy(2)


@pytest.fixture(scope="module")
def guests(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes, an NFS server and its clients, and SELinux in two modes."""
    if why := why_no_guests():
        pytest.skip(why)
    specs = [guest.spec for guest in GUESTS]
    made = Lab(tmp_path_factory.mktemp("guests"), keys, NODES, guests=specs)
    try:
        boot(made, GUESTS)
        yield made
    finally:
        made.close()


def bad(report: Report) -> dict[str, list[str]]:
    """By node, what is worse than pass."""
    return {node: [found.brief for found in report.bad(node)] for node in report.blamed()}


def test_nfs(guests: Lab) -> None:
    report = checked(guests, ["node01", "mounted", "odd"], "-c", "nfs")
    assert bad(report) == {
        "odd": ["fail nfs.full §4.4", "warn nfs.soft §2.3", "warn nfs.io_size §2.3"]
    }
    said = {found.message for found in report.findings("mounted", "nfs")}
    assert "/nfs/home: root is squashed (a file of root belongs to 65534)" in said
    assert "/nfs/squashed: root is squashed (a file of root belongs to 65534)" in said
    assert "/nfs/scratch: root is not squashed (a file of root belongs to 0)" in said


def test_no_file_is_left_on_a_share(guests: Lab) -> None:
    checked(guests, ["mounted"], "-c", "nfs")
    assert guests.login("mounted", "ls -A /nfs/home /nfs/scratch").split() == [
        "/nfs/home:",
        "/nfs/scratch:",
    ]


def test_a_server_that_stands_still(guests: Lab) -> None:
    guests.freeze("nfs")
    try:
        report = checked(guests, ["node01", "node02", "mounted"], "-c", "nfs,tmp")
        assert bad(report) == {"mounted": ["fail nfs.server §1"]}
        assert "TCP port 2049" in report.bad("mounted")[0].message
    finally:
        guests.thaw("nfs")
    assert bad(checked(guests, ["node01", "mounted"], "-c", "nfs")) == {}


def test_selinux(guests: Lab) -> None:
    names = ["node01", "enforcing", "permissive"]
    report = checked(guests, names, "-c", "selinux")
    assert bad(report) == {"enforcing": ["fail selinux.mode §4.1.5"]}
    wanted = ["-c", "selinux", "-o", "selinux.allow=enforcing"]
    report = checked(guests, ["enforcing", "permissive"], *wanted)
    assert bad(report) == {"permissive": ["fail selinux.mode §4.1.5"]}


def test_selinux_changes_at_the_next_boot(guests: Lab) -> None:
    config = "/etc/selinux/config"
    guests.login("permissive", f"sed -i s/^SELINUX=.*/SELINUX=enforcing/ {config}")
    try:
        report = checked(guests, ["permissive", "node01"], "-c", "selinux")
    finally:
        guests.login("permissive", f"sed -i s/^SELINUX=.*/SELINUX=permissive/ {config}")
    assert bad(report) == {"permissive": ["warn selinux.boot §4.1.5"]}


def test_a_clock_that_is_an_hour_ahead(guests: Lab) -> None:
    guests.login("permissive", "date -s '1 hour' >/dev/null")
    try:
        report = checked(guests, ["node01", "node02", "permissive"], "-c", "ntp")
    finally:
        guests.login("permissive", "date -s '1 hour ago' >/dev/null")
    assert bad(report) == {
        "permissive": [
            "fail ntp.no_daemon §4.1.1",
            "fail ntp.offset §4.1.1",
            "fail ntp.spread §4.1.1",
        ]
    }
    assert "ahead of the reference" in report.bad("permissive")[1].message
