"""The check nfs: what is judged, and what is said about it."""

from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, judged, options_of
from tests.nfs_node import V3, V4, mount_line

DATA = Path(__file__).resolve().parent.parent / "data" / "nfs"
HOME = mount_line("/home", options=f"{V4},addr=10.30.0.5", source="nas1:/export/home")
SCRATCH = mount_line(
    "/scratch", number=45, options=f"{V3},addr=10.30.0.6", source="10.30.0.6:/vol/scratch"
)
HOME_ANSWERS = (
    "pass answers: /home (nas1:/export/home) answers: NFS 4.2, hard, rsize 1024 KiB, wsize 1024"
    " KiB, proto=tcp, sec=sys"
)
HOME_OWNER = "pass owner: /home: the login user's file belongs to it and obeys chmod"


def one(line: str = HOME) -> dict[str, str]:
    """The facts of a node with one healthy mount, asked as user 1000."""
    mount = line.split(" ")[4]
    return {
        "uid": "1000",
        "mountinfo": "read",
        "mounts": line,
        "fstab": "",
        "mount@1": line,
        "reach@10.30.0.5/2049": "open",
        "reach@10.30.0.6/2049": "open",
        "step@1": "nothing",
        "state@1": "answers",
        "size@1": "1048576 1000000 400000 100000000 90000000",
        "touch@1": "done",
        "owner@1": "1000",
        "chmod@1": "done",
        "place@1": mount,
        "old@1": "",
        "touched": "1",
        "uptime": "90200.10",
        "kernel_log": "",
        "traffic": "",
        "exports": "",
    }


def with_facts(told: dict[str, str], **changed: str) -> dict[str, str]:
    """Facts with those about the first mount changed: root__touch is "root.touch@1"."""
    return told | {f"{key.replace('__', '.')}@1": value for key, value in changed.items()}


def without(told: dict[str, str], *keys: str) -> dict[str, str]:
    return {key: value for key, value in told.items() if key not in keys}


ROOT_ONLY = without(one(), "touch@1", "owner@1", "chmod@1") | {"uid": "0"}


def test_a_healthy_mount() -> None:
    assert judged("nfs", one()) == [HOME_ANSWERS, HOME_OWNER]


def test_two_places_of_one_file_system_are_one_finding() -> None:
    bind = HOME.replace(" /home ", " /var/home ")
    said = judged("nfs", one() | {"mounts": f"{HOME}\n{bind}"})
    assert said[0].startswith("pass answers: /home, /var/home (nas1:/export/home) answers")
    assert len(said) == 2


def test_no_nfs_at_all() -> None:
    none = without(one(), "mount@1") | {"mounts": "", "touched": "0"}
    assert judged("nfs", none) == ["skip none: no NFS mount, and none wanted"]
    autofs = "50 27 0:50 / /misc rw - autofs /etc/auto.misc rw,fd=6,indirect"
    assert judged("nfs", none | {"mounts": autofs}) == [
        "skip none: no NFS mount, and none wanted; the automounter has none in use now"
    ]
    assert judged("nfs", none | {"fstab": "unreadable"}) == [
        "unknown absent: /etc/fstab cannot be read, so the wanted mounts are not known"
    ]
    assert judged("nfs", {"mountinfo": "unreadable", "uid": "0"}) == [
        "unknown mounts: how file systems are mounted could not be read"
    ]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (
            "hung",
            "fail hung: /home (nas1:/export/home) does not answer when asked for nothing, and hangs"
            " whoever waits",
        ),
        (
            "Stale file handle",
            "fail stale: /home (nas1:/export/home) is stale (Stale file handle)",
        ),
        (
            "Stale NFS file handle",
            "fail stale: /home (nas1:/export/home) is stale (Stale NFS file handle)",
        ),
        (
            "Permission denied",
            "unknown closed: /home (nas1:/export/home) may not be looked at by this user"
            " (sec=sys): Permission denied",
        ),
        (
            "Required key not available",
            "unknown closed: /home (nas1:/export/home) may not be looked at by this user"
            " (sec=sys): Required key not available",
        ),
        (
            "Input/output error",
            "fail broken: /home (nas1:/export/home) cannot be used: Input/output error",
        ),
        ("", "fail broken: /home (nas1:/export/home) cannot be used: unknown error"),
    ],
)
def test_a_mount_that_does_not_work(state: str, said: str) -> None:
    assert judged("nfs", with_facts(one(), state=state)) == [said]


def test_a_mount_that_hangs_later_says_at_what() -> None:
    told = with_facts(one(), step="an empty file", hung="yes")
    told |= {"kernel_log": "[90121.1] nfs: server nas1 not responding, still trying"}
    assert judged("nfs", told) == [
        "fail hung: /home (nas1:/export/home) does not answer when asked for an empty file, and"
        " hangs whoever waits; the kernel's log: [90121.1] nfs: server nas1 not responding, still"
        " trying"
    ]


def test_hung_mounts_of_one_server_are_one_finding_and_name_who_waits() -> None:
    apps = HOME.replace(" /home ", " /apps ").replace("0:44", "0:45")
    two = {
        "mounts": f"{HOME}\n{apps}",
        "mount@2": apps,
        "touched": "2",
        "state@1": "hung",
        "step@1": "an empty file",
        "state@2": "hung",
        "step@2": "its free space",
        "stuck": "812 python\n813 tar (x)\n814 a b\n815 c\n816 d\n817 e",
    }
    assert judged("nfs", one() | two) == [
        "fail hung: /home, /apps (all from nas1) do not answer, the first when asked for an empty"
        " file, and hang whoever waits; in state D now: python (process 812), tar (x) (process"
        " 813), a b (process 814), c (process 815), d (process 816) and 1 more"
    ]


def test_a_dead_server_is_one_finding_for_all_its_mounts() -> None:
    second = mount_line("/opt", number=46, options=f"{V4},addr=10.30.0.5", source="nas1:/opt")
    told = with_facts(one(), state="not touched") | {
        "mounts": f"{HOME}\n{second}",
        "mount@2": second,
        "state@2": "not touched",
        "touched": "2",
        "reach@10.30.0.5/2049": "no answer",
    }
    assert judged("nfs", told) == [
        "fail server: the server nas1 (10.30.0.5) does not answer, so /home, /opt cannot be used"
        " and would hang whoever touches it: TCP port 2049 gave no answer within 3 s"
    ]


def test_rpcbind_matters_to_version_3_only() -> None:
    closed = {"reach@10.30.0.6/111": "no answer", "reach@10.30.0.5/111": "Connection refused"}
    assert judged("nfs", one() | closed) == [HOME_ANSWERS, HOME_OWNER]
    assert judged("nfs", one(SCRATCH) | closed)[0] == (
        "warn rpc: rpcbind of 10.30.0.6 (TCP port 111) gave no answer within 3 s"
    )


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("4096 1000 0 100 50", "fail full: /home (nas1:/export/home) is full: no space is left"),
        ("4096 1000 9 100 0", "fail full: /home (nas1:/export/home) is full: no inode is left"),
        ("4096 1000 9 0 0", "pass answers: "),  # a file system without a number of inodes
        ("0 0 0 0 0", "pass answers: "),  # a server that tells no sizes
        ("?", "unknown closed: /home (nas1:/export/home) answers, and its free space cannot be"),
    ],
)
def test_free_space(size: str, said: str) -> None:
    assert judged("nfs", with_facts(one(), size=size))[0].startswith(said)


@pytest.mark.parametrize(
    ("old", "new", "changed", "said"),
    [
        ("hard", "soft", {}, "warn soft: /home is mounted soft and writable, should be hard"),
        ("hard", "softerr", {}, "warn soft: /home is mounted softerr and writable, should be hard"),
        ("proto=tcp", "proto=udp", {}, "warn udp: /home uses UDP, should use TCP"),
        ("hard", "sync,hard", {}, "warn sync: /home is mounted sync: each write waits for the"),
        ("vers=4.2", "vers=2", {}, "warn version: /home uses NFS 2, should be 3 or newer"),
        (
            "vers=4.2",
            "vers=4,minorversion=1",
            {"min_version": "4.2"},
            "warn version: /home uses NFS 4.1, should be 4.2 or newer",
        ),
        (
            "size=1048576",
            "size=8192",
            {},
            "warn io_size: /home has rsize 8 KiB and wsize 8 KiB, should be 64 KiB or more",
        ),
        (
            "sec=sys",
            "sec=krb5",
            {"sec": ("krb5i", "krb5p")},
            "warn sec: /home has sec=krb5, should be krb5i or krb5p",
        ),
    ],
)
def test_options_that_the_site_does_not_want(
    old: str, new: str, changed: dict[str, Any], said: str
) -> None:
    line = HOME.replace(old, new)
    assert judged("nfs", one(line), **changed)[-1].startswith(said)


def test_words_are_compared_whole() -> None:
    """proto=tcp holds "ro", and local_lock=none "no"; relatime means nothing on NFS."""
    assert judged("nfs", one(), sec=("sys",), min_version="4.2") == [HOME_ANSWERS, HOME_OWNER]
    soft = HOME.replace("hard", "soft")
    assert len(judged("nfs", one(soft), allow_soft=True)) == 2
    read_only = HOME.replace("rw,vers", "ro,vers").replace("hard", "soft")
    told = without(one(read_only), "touch@1", "owner@1", "chmod@1")
    assert [line.split(":")[0] for line in judged("nfs", told)] == ["pass answers"]


def test_the_mount_is_ro_and_fstab_does_not_say_so() -> None:
    line = HOME.replace("rw,vers", "ro,vers")
    told = without(one(line), "touch@1") | {"fstab": "nas1:/export/home /home/ nfs4 defaults"}
    said = "warn options: /home is mounted ro, and /etc/fstab does not say so"
    assert judged("nfs", told)[-1] == said
    assert said not in judged("nfs", told | {"fstab": "nas1:/export/home /home nfs4 ro,_netdev"})
    assert said not in judged("nfs", told, read_only=("/home",))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"owner": "65534"}, "(nobody): id mapping or all_squash"),
        ({"owner": "4294967294"}, "(nobody): id mapping or all_squash"),
        ({"owner": "1200"}, "(another user): id mapping or all_squash"),
    ],
)
def test_an_ordinary_users_file_belongs_to_another(facts: dict[str, str], said: str) -> None:
    answer = judged("nfs", with_facts(one(), **facts))[1]
    assert answer == f"fail owner: /home: a file of user 1000 belongs to {facts['owner']} {said}"


def test_an_owner_that_version_3_makes_is_no_id_mapping() -> None:
    said = judged("nfs", with_facts(one(SCRATCH), owner="65534"))[1]
    assert said.endswith("belongs to 65534 (nobody): all_squash")


def test_a_home_that_belongs_to_nobody() -> None:
    assert judged("nfs", with_facts(one(), home="65534"))[1] == (
        "fail owner: /home: the home of user 1000 belongs to 65534 (nobody): id mapping or"
        " all_squash"
    )
    denied = with_facts(one(), home="65534", touch="Permission denied")
    assert judged("nfs", denied)[1].startswith("fail owner: /home: the home of user 1000 belongs")


@pytest.mark.parametrize(
    ("owner", "chown", "policy", "said"),
    [
        ("0", "done", "any", "pass root_squash: /home: root is not squashed (a file of root"),
        ("0", "done", "on", "fail root_squash: /home: root is not squashed (a file of root belon"),
        ("0", "done", "off", "pass root_squash: /home: root is not squashed"),
        ("65534", "Operation not permitted", "any", "pass root_squash: /home: root is squashed"),
        ("65534", "Operation not permitted", "on", "pass root_squash: /home: root is squashed"),
        ("4294967294", "Invalid argument", "off", "fail root_squash: /home: root is squashed"),
        # half of it is no proof
        ("0", "Operation not permitted", "on", "unknown root_squash: /home: a file of root bel"),
        ("65534", "done", "on", "unknown root_squash: /home: a file of root belongs to 65534"),
        ("", "done", "on", "unknown root_squash: /home: a file of root belongs to ?"),
    ],
)
def test_root_squash(owner: str, chown: str, policy: str, said: str) -> None:
    told = with_facts(ROOT_ONLY, root__touch="done", root__owner=owner, root__chown=chown)
    assert judged("nfs", told, root_squash=policy)[1].startswith(said)


def test_root_that_is_denied_is_squashed_unless_kerberos_decides() -> None:
    told = with_facts(ROOT_ONLY, root__touch="Permission denied")
    assert judged("nfs", told, root_squash="on")[1] == (
        "pass root_squash: /home: root is squashed (root may not write there)"
    )
    krb = HOME.replace("sec=sys", "sec=krb5p")
    told |= {"mount@1": krb, "mounts": krb}
    assert judged("nfs", told, root_squash="on")[1].startswith("skip root_squash: /home: root has")


@pytest.mark.parametrize(
    ("why", "changed", "said"),
    [
        ("Permission denied", {}, "skip write: /home cannot be written to by the login user, so"),
        ("Permission denied", {"writable": ("/home",)}, "fail write: /home cannot be written to"),
        ("Permission denied", {"read_only": ("/home",)}, "pass read_only: /home cannot be written"),
        ("Read-only file system", {}, "skip write: /home is exported ro: nothing can be written"),
        ("Read-only file system", {"writable": ("/home",)}, "fail read_only: /home is exported ro"),
        ("Read-only file system", {"read_only": ("/home",)}, "pass read_only: /home is read-only,"),
        ("No space left on device", {}, "fail full: /home: no space left on device, not even for"),
        ("Disk quota exceeded", {}, "warn quota: /home: the quota of the login user is used up"),
        (
            "Input/output error",
            {},
            "fail broken: /home: an empty file cannot be made: Input/output",
        ),
        ("hung", {}, "fail hung: /home: making an empty file did not end within 4 s, though"),
        ("done", {"read_only": ("/home",)}, "fail read_only: /home can be written to by the login"),
    ],
)
def test_writing(why: str, changed: dict[str, Any], said: str) -> None:
    answer = judged("nfs", with_facts(one(), touch=why), **changed)
    assert answer[0] == HOME_ANSWERS
    assert answer[1].startswith(said)


def test_writing_that_was_not_tried_is_no_pass() -> None:
    told = without(one(), "touch@1", "owner@1", "chmod@1")
    assert judged("nfs", told)[1].startswith("unknown write: /home: the probe did not say")
    assert judged("nfs", told, write=False) == [HOME_ANSWERS]
    assert judged("nfs", told, write=False, writable=("/home",))[1] == (
        "unknown write: /home: writing was not tried (write = no)"
    )
    told = with_facts(ROOT_ONLY, root__touch="Permission denied")
    assert judged("nfs", told, writable=("/home",))[1].startswith("unknown write: /home: whether")


def test_what_a_killed_run_left_is_told() -> None:
    assert judged("nfs", with_facts(one(), old=".clustercheck-nfs-node07-812-1 "))[-1] == (
        "warn leftover: /home: left by an earlier run: .clustercheck-nfs-node07-812-1"
    )
    assert judged("nfs", with_facts(one(), removed=".clustercheck-nfs-node03-1a2b-812-1 "))[-1] == (
        "pass leftover: /home: left by an earlier run, and removed now:"
        " .clustercheck-nfs-node03-1a2b-812-1"
    )


ABSENT = {"absent@1": "/apps", "server@1": "nfs01.cluster.example"}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "/apps is not mounted (from nfs01.cluster.example), should be"),
        ({"address@1": "none"}, ": the name nfs01.cluster.example has no address"),
        ({"address@1": "hung"}, ": looking up nfs01.cluster.example took over 4 s"),
        (
            {"address@1": "10.1.1.1", "reach@10.1.1.1/2049": "No route to host"},
            ": TCP port 2049 cannot be reached: No route to host",
        ),
        (
            {
                "address@1": "10.1.1.1",
                "reach@10.1.1.1/2049": "open",
                "log@1": (DATA / "mount-access-denied.txt").read_text().strip(),
            },
            ": the server refuses this node; mount(8) said: mount.nfs: access denied by server",
        ),
    ],
)
def test_a_wanted_mount_that_is_absent(facts: dict[str, str], said: str) -> None:
    answer = judged("nfs", one() | ABSENT | facts)
    assert answer[0].startswith("fail absent: /apps is not mounted (from nfs01.cluster.example)")
    assert said in answer[0]
    assert answer[1:] == [HOME_ANSWERS, HOME_OWNER]


def test_a_wanted_mount_that_another_one_hides() -> None:
    told = one() | {"absent@1": "/apps", "covered@1": r"ext4 /dev/disk/by-label/a\040b"}
    assert judged("nfs", told)[0] == (
        "fail absent: /apps is mounted, and hidden by another mount over it"
        " (ext4 on /dev/disk/by-label/a b)"
    )


# /home is mounted from nas1:/export/home, which is 10.30.0.5
@pytest.mark.parametrize(
    ("whence", "said"),
    [
        ("nas2:/export/home 10.30.0.6 fd00::6 ", "nas2:/export/home"),
        ("nas2:/export/home ", "nas2:/export/home, whose server has no address"),
        ("nas1:/export/new 10.30.0.5 ", "nas1:/export/new"),
        ("[fd00::6]:/export/home fd00::6", "[fd00::6]:/export/home"),
        ("nas2:/export/home ?", ""),
        ("alias:/export/home fd00::5 10.30.0.5 ", ""),
        ("10.30.0.5:/export//home/ 10.30.0.5", ""),
        ("NAS1:/export/home/ ", ""),
    ],
)
def test_what_is_mounted_from_elsewhere_than_fstab_says(whence: str, said: str) -> None:
    found = judged("nfs", one() | {"whence@/home": whence})
    message = f"warn source: /home is mounted from nas1:/export/home, and /etc/fstab says {said}"
    assert [line for line in found if " source: " in line] == ([message] if said else [])


def test_paths_of_the_options_that_are_no_mounts() -> None:
    assert judged("nfs", one(), writable=("/home/", "/lost"))[-1] == (
        "skip policy: /lost, of the options, is no NFS mount here"
    )


def test_the_kernels_log() -> None:
    lines = [
        "[ 1000.5] nfs: server nas1 not responding, still trying",
        "[90121.001102] nfs: server nas1 not responding, still trying",
        "[90125.001102] nfs: server nas1 OK",
        "[90126.0] nfs: server nas12 not responding, timed out",
    ]
    told = one() | {"kernel_log": "\n".join(lines)}
    said = "warn log: the server nas1 answers, and was silent {} in the last {} h by the kernel's"
    assert judged("nfs", told)[-1].startswith(said.format("once", 24))
    assert judged("nfs", told, log_hours=48)[-1].startswith(said.format("2 times", 48))
    assert judged("nfs", told | {"uptime": "999999.1"}) == [HOME_ANSWERS, HOME_OWNER]


def test_requests_sent_again() -> None:
    told = one() | {"traffic": "1000 1000 /other\n2000 2040 /home"}
    assert judged("nfs", told)[-1] == (
        "warn retrans: /home: 2.0 % of the requests were sent again (40 of 2000 since it was"
        " mounted), should be below 1 %"
    )
    assert judged("nfs", told, retrans_percent=2.5) == [HOME_ANSWERS, HOME_OWNER]


EXPORTS = (DATA / "case-exports-two-groups.txt").read_text()


def test_exports_are_judged_group_by_group_and_word_by_word() -> None:
    server = without(one(), "mount@1") | {"mounts": "", "touched": "0", "exports": EXPORTS}
    assert judged("nfs", server, root_squash="on") == [
        "fail exports: exported without root_squash, should be with it:"
        " /export/home to 198.51.100.0/24"
    ]
    assert judged("nfs", server) == [
        "pass exports: this node's own exports: 2, with root_squash: 1"
    ]
    assert judged("nfs", server, root_squash="off") == [
        "fail exports: exported with root_squash, should be without it: /export/home to"
        " 192.0.2.0/24"
    ]
    everybody = "/export/home 192.0.2.0/24(rw,no_root_squash,all_squash)"
    assert judged("nfs", server | {"exports": everybody}, root_squash="on")[0].startswith("pass")
    wrapped = "/export/a_long_name_of_a_directory\n\t\t192.0.2.0/24(rw,root_squash,no_all_squash)"
    assert judged("nfs", server | {"exports": wrapped}, root_squash="on") == [
        "pass exports: this node's own exports: 1, with root_squash: 1"
    ]


def compared(**lines: str) -> list[tuple[str, str]]:
    compare = CHECKS["nfs"].compare
    assert compare
    told = {node: Facts({"mounts": line}) for node, line in lines.items()}
    found = compare(told, dict.fromkeys(told, options_of("nfs")))
    return [(node, f"{f.status.value} {f.code}: {f.message}") for node, f in found]


def test_case_one_node_agreed_on_other_sizes() -> None:
    good = mount_line("/scratch", options=V3.replace("65536", "1048576"), source="n:/s")
    bad = good.replace("1048576", "131072").replace("proto=tcp", "proto=udp")
    assert compared(node01=good, node02=good, node03=bad, node04=good) == [
        (
            "node03",
            "warn differs: /scratch (n:/s) has proto=udp rsize=131072 wsize=131072, most nodes (3"
            " of 4) have proto=tcp rsize=1048576 wsize=1048576",
        )
    ]
    assert compared(node01=good, node02=bad) == []  # which of two is right?


@pytest.mark.parametrize(
    "changed",
    [
        {"mounts": ("home",)},
        {"throughput_dir": "scratch"},
        {"throughput": True, "write": False},
        {"read_only": ("/a",), "writable": ("/a",)},
    ],
)
def test_options_that_cannot_be(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must begin with /|needs write|is both in"):
        options_of("nfs", **changed)


def test_more_mounts_than_are_looked_at_are_told() -> None:
    lines = [HOME.replace(" 0:44 ", f" 0:{100 + n} ") for n in range(70)]
    assert len({line.split()[2] for line in lines}) == 70
    facts = one() | {"mounts": "\n".join(lines), "touched": "64"}
    for number, line in enumerate(lines[:64], 1):
        facts |= {
            key.replace("@1", f"@{number}"): value
            for key, value in one().items()
            if key.endswith("@1")
        }
        facts[f"mount@{number}"] = line
    assert judged("nfs", facts)[0] == "unknown mounts: 6 more NFS file systems were not looked at"
