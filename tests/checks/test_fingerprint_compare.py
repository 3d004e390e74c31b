"""The check fingerprint: what nodes of one kind should have alike."""

import time
from collections.abc import Mapping

import pytest

from clustercheck.check import Facts
from tests.fingerprint_facts import compared, four, node
from tests.made_up import CHECKS, judged, options_of


def test_taken() -> None:
    found, kind = judged("fingerprint", node())
    assert found.startswith("pass taken: 41 fields, in one number ")
    assert kind == ("pass kind: PowerEdge XE8545, AMD EPYC 7543 32-Core Processor, GPUs 10de:20b2")
    assert judged("fingerprint", {"fields": ""})[0].startswith("unknown taken: ")


def test_alike() -> None:
    assert compared(four()) == []


def test_all_that_differs_is_named_causes_first() -> None:
    odd = four(
        memory__total_kib="461000000",
        kernel="5.14.0-362.el9.x86_64",
        sysctl__vm__swappiness="60",
        limit__memlock="65536",
        account__slurm="uid=451 gid=450",
        **{"file__nsswitch.conf": "0" * 64},
        version__slurm="",
        mount__2fhome="",
    )
    assert compared(odd) == [
        "n4 warn uniform: memory.total_gib is 440, and 503 on 3 of 4 nodes of its kind",
        "n4 warn uniform: kernel is 5.14.0-362.el9.x86_64, and 5.14.0-427.el9.x86_64 on 3 of 4 "
        "nodes of its kind",
        "n4 warn uniform: version.slurm is absent, and slurm 23.11.6 on 3 of 4 nodes of its kind",
        "n4 warn uniform: file.nsswitch.conf is 000000000000… by its sum, and absent on 3 of 4 "
        "nodes of its kind",
        "n4 warn uniform: account.slurm is uid=451 gid=450, and uid=450 gid=450 on 3 of 4 nodes "
        "of its kind",
        "n4 warn uniform: sysctl.vm.swappiness is 60, and 10 on 3 of 4 nodes of its kind",
        "n4 warn uniform: limit.memlock is 65536, and unlimited on 3 of 4 nodes of its kind",
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"memory__total_kib": "527900001"},
        {"cmdline": "BOOT_IMAGE=/other root=UUID=77 ro mitigations=off ip=10.0.0.9::eth0"},
        {"mount__/home": "nfs4 nfs:/home rw,noatime,vers=4.1,addr=10.0.0.9,rsize=8192"},
        {"speed__eth0": "1000"},
        {"mtu__eth0": "1500"},
        {"file__hosts": "0" * 64},
        {"resolv__nameserver": "10.0.0.9"},
        {"time__server": "10.0.0.9"},
        {"something__new": "7"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_is_a_nodes_own_or_said_by_another_check_is_no_finding(
    changed: dict[str, str],
) -> None:
    assert compared(four(**changed)) == []


def test_an_option_of_a_mount() -> None:
    told = four()
    for name, of in told.items():
        options = "rw,flock" if name == "n4" else "rw,noatime,flock"
        told[name] = {"fields": f"{of['fields']}mount./fs lustre 10.0.0.5@o2ib:/fs {options}\n"}
    assert compared(told) == [
        "n4 warn uniform: mount./fs is lustre flock,rw, and lustre flock,noatime,rw on 3 of 4 "
        "nodes of its kind"
    ]


def test_an_option_of_a_local_mount() -> None:
    """That it is read-only is said by another check, and what its disk is counts for nothing."""
    told = four()
    for name, of in told.items():
        options = "rw,relatime,sunit=8" if name == "n4" else "ro,noatime,sunit=256"
        told[name] = {"fields": f"{of['fields']}mount./data xfs - {options}\n"}
    assert compared(told) == [
        "n4 warn uniform: mount./data is xfs relatime, and xfs noatime on 3 of 4 nodes of its kind"
    ]


def test_the_login_user_has_the_same_number_on_every_node_that_has_him() -> None:
    assert compared({**four(user__alice="uid=2002 gid=100"), "n5": node(user__alice="")}) == [
        "n4 warn uniform: user.alice is uid=2002 gid=100, and uid=2001 gid=100 on 3 of 4 nodes of"
        " its kind"
    ]


def test_no_majority_accuses_nobody() -> None:
    two = {"n1": node(), "n2": node(kernel="6.1")}
    words = "and differs on 1 of 2 nodes of its kind; which of the two is right is not known"
    assert compared(two) == [
        f"n1 unknown undecided: kernel is 5.14.0-427.el9.x86_64, {words}",
        f"n2 unknown undecided: kernel is 6.1, {words}",
    ]
    tie = {**four(kernel="6.1"), "n3": node(kernel="6.1")}
    assert [line.split(":")[0] for line in compared(tie)] == [
        f"n{place} unknown undecided" for place in (1, 2, 3, 4)
    ]
    assert compared(tie)[0].endswith(
        "differs on 2 of 4 nodes of its kind; no value is that of most, so which is right is not"
        " known"
    )


def joining(names: str, nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What is found where some of the nodes are candidates."""
    compare = CHECKS["fingerprint"].compare
    assert compare
    facts = {name: Facts(told) for name, told in nodes.items()}
    options = {name: options_of("fingerprint", joins=name in names.split()) for name in facts}
    return [f"{name} {f.status.value} {f.code}: {f.message}" for name, f in compare(facts, options)]


def test_candidates_have_no_say_in_what_is_right() -> None:
    """However many they are."""
    new = {f"c{place}": node(kernel="6.1") for place in range(6)}
    assert joining("c0 c1 c2 c3 c4 c5", {**new, "n1": node(), "n2": node()}) == [
        f"c{place} warn uniform: kernel is 6.1, and 5.14.0-427.el9.x86_64 on 2 of 2 other nodes of"
        " its kind"
        for place in range(6)
    ]
    words = "nodes of its kind; which is right is not known"
    assert joining("c0 c1", {"c0": new["c0"], "c1": new["c1"], "n1": node()}) == [
        f"c0 unknown undecided: kernel is 6.1, and differs on 1 of 1 other {words}",
        f"c1 unknown undecided: kernel is 6.1, and differs on 1 of 1 other {words}",
        f"n1 unknown undecided: kernel is 5.14.0-427.el9.x86_64, and differs on 2 of 3 {words}",
    ]


def test_candidates_of_a_kind_that_nobody_else_is() -> None:
    new = {f"c{place}": node(product="PowerEdge R650") for place in range(3)}
    found = joining("c0 c1 c2", {**new, "c2": node(product="PowerEdge R650", os="x"), **four()})
    assert [line.partition(":")[0] for line in found] == [
        *(f"c{place} skip alone" for place in range(3)),
        "c2 warn uniform",
    ]
    assert found[0].startswith("c0 skip alone: no other node that is in already is of its kind: P")


def test_one_of_another_kind_is_compared_with_nobody() -> None:
    other = node(product="PowerEdge R650", kernel="6.1")
    assert compared({**four(), "login": other}) == [
        "login skip alone: no other node of this run is of its kind: PowerEdge R650, AMD EPYC 7543"
        " 32-Core Processor, GPUs 10de:20b2"
    ]


def test_other_machines_are_another_class() -> None:
    login = {"product": "PowerEdge R650", "cpu__model": "Intel(R) Xeon(R) Gold 6338"}
    others = {f"l{place}": node(**login, kernel="6.1") for place in range(3)}
    assert compared({**four(), **others}) == []
    no_gpu = {f"c{place}": node(**{"gpu__cards__10de:20b2": ""}, kernel="6") for place in range(3)}
    assert compared({**four(), **no_gpu}) == []


def test_a_gpu_that_is_gone_is_found() -> None:
    told = {f"n{place}": node(**{"gpu__cards__10de:20b2": "8"}) for place in range(4)}
    told["n4"] = node(**{"gpu__cards__10de:20b2": "7"})
    assert compared(told) == [
        "n4 warn uniform: gpu.cards.10de:20b2 is 7, and 8 on 4 of 5 nodes of its kind"
    ]


def test_the_site_says_what_counts() -> None:
    odd = four(kernel="6.1", limit__memlock="65536")
    assert compared(odd, ignore=("kernel*",)) == [
        "n4 warn uniform: limit.memlock is 65536, and unlimited on 3 of 4 nodes of its kind"
    ]
    assert [line.split(":")[0] for line in compared(odd, must=("kernel",))] == [
        "n4 fail uniform",
        "n4 warn uniform",
    ]


def test_of_a_long_value_what_differs_is_shown() -> None:
    words = " ".join(f"parameter{n}=value" for n in range(20))
    told = {name: node(cmdline=words) for name in ("n1", "n2", "n3")}
    told["n4"] = node(cmdline=f"{words} nosmt")
    (found,) = compared(told)
    assert found.startswith("n4 warn uniform: cmdline is … nosmt …, and ")
    assert len(found) < 400


def test_a_thousand_nodes_are_compared_in_two_seconds() -> None:
    nodes = {f"n{place}": node(cmdline=f"root=UUID={place} ro") for place in range(1000)}
    for place, told in enumerate(nodes.values()):
        more = "".join(f"sysctl.made/up{n} {n}\n" for n in range(70))
        odd = f"version.mpi {place % 3}\n" if place % 100 == 7 else ""
        told["fields"] += f"memory.swap_kib {place % 900}\n{more}{odd}"
    began = time.process_time()
    assert len(compared(nodes)) == 10
    assert time.process_time() - began < 2
