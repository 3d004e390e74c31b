"""The check reach: what a probe sees of real ports, and whose fault it is between nodes."""

import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Facts, Finding, Status, Target
from tests.host import Host
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import SHELLS

CHECK = CHECKS["reach"]
KEY = "ssh-ed25519 AAAAkey-of-"


@pytest.fixture
def listening() -> Iterator[int]:
    """A port at which somebody listens who never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def refusing() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def greeting() -> Iterator[int]:
    """Somebody who greets as sshd does, and goes."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet() -> None:
            while True:
                try:
                    other, _ = server.accept()
                except OSError:
                    return
                with other:
                    other.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                    other.recv(100)

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("shell", SHELLS)
def test_ports_that_answer_refuse_and_have_no_name(
    tmp_path: Path, shell: str, listening: int, refusing: int, greeting: int
) -> None:
    peers = [
        Target("mute", "127.0.0.1", listening),
        Target("shut", "127.0.0.1", refusing),
        Target("sshd", "127.0.0.1", greeting),
        Target("lost", "nosuch.invalid", 22),
    ]
    told = MadeUpNode(tmp_path).told("reach", shell=shell, peers=peers)
    assert told.whole
    # only the first three are peers by default
    assert told.facts.at("ssh") == {"mute": "open", "shut": "refused", "sshd": "open"}
    assert judged("reach", told.facts) == [
        f"pass ssh: port {listening} (SSH) answers",
        f"warn ssh: port {refusing} (SSH): refused",
        f"pass ssh: port {greeting} (SSH) answers",
        "unknown not_answered: nothing was reported",  # the peer of `judged`
    ]


def test_a_name_without_address_is_left_to_those_who_look_names_up(tmp_path: Path) -> None:
    told = MadeUpNode(tmp_path).told("reach", peers=[Target("lost", "nosuch.invalid")])
    assert told.facts["port@lost"] == "22"
    assert judged("reach", told.facts)[0] == (
        "skip ssh: the name to try has no address on this node"
    )


def test_without_bash_ssh_keyscan_tries_and_without_both_it_is_unknown(
    tmp_path: Path, greeting: int, refusing: int
) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("bash")
    peers = [Target("a", "127.0.0.1", greeting), Target("b", "127.0.0.1", refusing)]
    told = node.told("reach", shell="dash", peers=peers)
    assert told.facts.at("ssh") == {"a": "open", "b": "silent"}
    node.hide("ssh-keyscan")
    told = node.told("reach", shell="dash", peers=peers)
    assert judged("reach", told.facts)[0] == (
        "unknown no_tool: neither ssh-keyscan nor bash is installed, and one is needed to try the"
        " port"
    )


@pytest.mark.parametrize(
    ("said", "became"),
    [
        ("bash: connect: Connection refused", "refused"),
        ("bash: connect: No route to host", "no_route"),
        ("bash: connect: Network is unreachable", "no_route"),
        ("bash: connect: Operation not permitted", "own"),
        ("bash: connect: Connection timed out", "silent"),
        ("bash: n2: Temporary failure in name resolution", "no_name"),
        ("bash: n2: Name or service not known", "no_name"),
    ],
)
def test_what_bash_says_is_told_apart(tmp_path: Path, said: str, became: str) -> None:
    node = MadeUpNode(tmp_path)
    node.says("ssh-keyscan")
    node.says("bash", stderr=said, status=1)
    told = node.told("reach", shell="dash", peers=[Target("n2", "10.0.0.2")])
    assert told.facts["ssh@n2"] == became


def test_nobody_is_tried_where_that_is_not_asked_for(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    for name in ("ssh-keyscan", "bash", "ssh-keygen"):
        node.command(name, f"touch {tmp_path}/run")
    told = node.told("reach", shell="dash", peers=[Target("n2", "10.0.0.2")], ssh="no")
    assert not (tmp_path / "run").exists()
    assert judged("reach", told.facts, ssh="no")[0] == "skip ssh: not asked for (`ssh = no`)"
    assert judged("reach", node.probe("reach"))[0] == "skip ssh: no other node to try"


def test_slurmd_is_tried_where_it_listens_itself(tmp_path: Path, listening: int) -> None:
    """Here the made-up node's own kernel says that it listens; the port is a real one."""
    node = MadeUpNode(tmp_path)
    node.says("ssh-keyscan")
    peers = [Target("n2", "127.0.0.1")]
    told = node.told("reach", peers=peers, slurmd=True, slurm_port=listening)
    assert told.facts["slurmd"] == "no" and not told.facts.at("slurmd")
    table = Path("/proc/net/tcp").read_text()
    assert f":{listening:04X} " in table
    node.file("/proc/net/tcp", table)
    told = node.told("reach", peers=peers, slurmd=True, slurm_port=listening)
    assert (told.facts["slurmd"], told.facts["slurmd@n2"]) == ("yes", "open")
    told = node.told("reach", peers=peers)
    assert not told.facts.at("slurmd")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_sshd_and_the_keys_that_are_known(host: Host, tmp_path: Path, shell: str) -> None:
    (tmp_path / "node").mkdir()
    node = MadeUpNode(tmp_path / "node")
    peers = [Target("n1", "127.0.0.1", host.port), Target("n2", "127.0.0.2", host.port)]
    told = node.told("reach", shell=shell, peers=peers)
    assert told.facts.at("ssh") == {"n1": "open", "n2": "open"}
    assert not told.facts.at("system") and not told.facts.at("key"), "nobody keeps such a file"

    node.file(
        "/etc/ssh/ssh_known_hosts",
        host.known_hosts_line("n1") + host.known_hosts_line("127.0.0.2", host.keys.stranger),
    )
    file = node.root / "etc/ssh/ssh_known_hosts"
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    told = node.told("reach", shell=shell, peers=peers)
    names = {"n1": told.facts, "n2": Facts({"known_hosts": "no"})}
    assert told.facts["key@n1"].split()[1] in host.known_hosts.read_text()
    assert told.facts["key@n1"].split()[1] in told.facts["system@n1"]
    assert told.facts["system@n2"] and told.facts["key@n2"] not in told.facts["system@n2"]
    assert compared(names)["n2"] == [
        "warn host_key: another host key of this node than it shows is known on 1 other node"
    ]


def compared(facts: Mapping[str, Facts], **changed: Any) -> dict[str, list[str]]:
    """What is found between nodes, of each; what is said of a peer has its name."""
    assert CHECK.compare
    options = dict.fromkeys(facts, options_of("reach", **changed))
    found: dict[str, list[str]] = {node: [] for node in facts}
    for node, finding in CHECK.compare(facts, options):
        assert finding.remedy is None or finding.remedy in CHECK.codes[finding.code].remedies
        found[node].append(worded(finding))
    return {node: said for node, said in found.items() if said}


def worded(finding: Finding) -> str:
    peer = f" {finding.peer}" if finding.peer else ""
    return f"{finding.status.value} {finding.code}{peer}: {finding.message}"


def cluster(
    *pairs: tuple[str, str], names: str = "abcde", word: str = "silent", code: str = "ssh"
) -> dict[str, Facts]:
    """Nodes that each try all others; the pairs get the word and all others are open."""
    facts = {}
    for node in names:
        told = {"peers": "4", "tool": "bash", "slurmd": "yes", "known_hosts": "no"}
        for peer in names.replace(node, ""):
            became = word if (node, peer) in pairs else "open"
            told |= {f"target@{peer}": peer, f"port@{peer}": "22", f"ssh@{peer}": "open"}
            told |= {f"{code}@{peer}": became}
        facts[node] = Facts(told)
    return facts


ALL = [(a, b) for a in "abcde" for b in "abcde" if a != b]


def test_a_node_that_nobody_reaches_is_told_of_once() -> None:
    pairs = [pair for pair in ALL if pair[1] == "e"]
    found = compared(cluster(*pairs, word="refused"))
    assert found.pop("e") == [
        "warn unreached: none of 4 tries from other nodes to port 22 (SSH) (refused) gets through,"
        " and other nodes reach each other"
    ]
    assert found == {
        node: ["skip ssh e: port 22 (SSH): refused, as in all tries of the other node"]
        for node in "abcd"
    }
    assert compared(cluster(*pairs), ssh="yes")["e"][0].startswith("fail unreached:")
    assert compared(cluster(*pairs), alone="fail")["e"][0].startswith("fail unreached:")


def test_a_node_that_reaches_nobody_and_one_that_is_cut_off() -> None:
    out = [pair for pair in ALL if pair[0] == "e"]
    assert compared(cluster(*out))["e"][0] == (
        "warn reaches_none: none of 4 tries from here to others at port 22 (SSH) (twice no"
        " answer) gets through, and other nodes reach each other"
    )
    off = [pair for pair in ALL if "e" in pair]
    found = compared(cluster(*off))
    assert [text for text in found["e"] if not text.startswith("skip")] == [
        "warn unreached: none of 4 tries from other nodes to port 22 (SSH) (twice no answer),"
        " nor any of 4 tries from here to others at port 22 (SSH) (twice no answer) gets"
        " through, and other nodes reach each other"
    ]
    assert {text[:4] for node in "abcd" for text in found[node]} == {"skip"}


def test_where_nodes_are_not_to_reach_each_other_it_is_no_fault() -> None:
    found = compared(cluster(*ALL))
    assert set(found) == set("abcde")
    assert {text for said in found.values() for text in said if " e:" in text} == {
        "skip ssh e: port 22 (SSH): twice no answer; closed between nodes, as it seems"
        " (`ssh = yes` makes it a fault)"
    }
    # from a login node alone the others are reached
    found = compared(cluster(*[pair for pair in ALL if pair[0] != "a"]))
    assert {text.split()[0] for said in found.values() for text in said} == {"skip"}
    found = compared(cluster(*ALL), alone="fail")
    assert {text.split()[0] for said in found.values() for text in said} == {"skip"}
    found = compared(cluster(*ALL), ssh="yes")
    assert {text.split()[0] for said in found.values() for text in said} == {"warn"}


def test_one_pair_of_nodes() -> None:
    assert compared(cluster(("a", "b"))) == {
        "a": ["warn ssh b: port 22 (SSH): twice no answer, and both have to do with other nodes"]
    }
    two = cluster(("a", "b"), names="ab")
    assert compared(two) == {"a": ["warn ssh b: port 22 (SSH): twice no answer"]}
    assert {t[:4] for said in compared(cluster(*ALL, names="ab")).values() for t in said} == {
        "skip"
    }


def test_a_node_that_is_down_itself_is_not_told_of_by_others() -> None:
    facts = cluster(*[pair for pair in ALL if pair[1] == "e"])
    del facts["e"]
    assert compared(facts) == {
        node: ["skip ssh e: twice no answer; that node could not be asked to its end"]
        for node in "abcd"
    }


def test_a_node_that_is_not_to_be_reached_is_not_told_of() -> None:
    facts = cluster(*[pair for pair in ALL if pair[1] == "e"])
    assert CHECK.compare
    options = dict.fromkeys(facts, options_of("reach"))
    options["e"] = options_of("reach", ssh="no")
    assert {f.status for _, f in CHECK.compare(facts, options) if f.code == "ssh"} == {Status.SKIP}


def test_slurmd_that_others_do_not_reach_is_a_failure_and_one_with_ssh() -> None:
    pairs = [pair for pair in ALL if pair[1] == "e"]
    facts = cluster(*pairs, code="slurmd")
    found = compared(facts)
    assert [text for text in found["e"] if text.startswith("fail")] == [
        "fail unreached: none of 4 tries from other nodes to port 6818 (slurmd) (twice no"
        " answer) gets through, and other nodes reach each other"
    ]
    assert "pass slurmd: port 6818 (slurmd) of 3 other nodes answers" in found["a"]
    for node in "abcd":
        facts[node]["ssh@e"] = "silent"
    worst = [text for text in compared(facts)["e"] if text[:4] in ("warn", "fail")]
    assert worst == [
        "fail unreached: none of 4 tries from other nodes to port 22 (SSH) and port 6818 (slurmd)"
        " (twice no answer) gets through, and other nodes reach each other"
    ]
    # a login node has no slurmd, and is not expected to
    facts = cluster(*pairs, code="slurmd")
    facts["e"]["slurmd"] = "no"
    assert not [t for said in compared(facts).values() for t in said if t[:4] != "pass"]


def with_keys(unknown: list[tuple[str, str]], changed: list[tuple[str, str]]) -> dict[str, Facts]:
    facts = cluster()
    for node, told in facts.items():
        told["known_hosts"] = "yes"
        for peer in "abcde".replace(node, ""):
            told[f"key@{peer}"] = KEY + peer
            known = f"# Host {peer} found: line 1\n{peer} {KEY}{peer}"
            if (node, peer) in changed:
                known += "-before"
            told[f"system@{peer}"] = "" if (node, peer) in unknown else known
            told[f"user@{peer}"] = ""
    return facts


def keys_of(facts: dict[str, Facts], **changed: Any) -> dict[str, list[str]]:
    found = {
        node: [text for text in said if not text.startswith("pass")]
        for node, said in compared(facts, **changed).items()
    }
    return {node: said for node, said in found.items() if said}


def test_host_keys_that_are_not_known() -> None:
    of_e = [pair for pair in ALL if pair[1] == "e"]
    assert keys_of(with_keys([], [])) == {}
    assert keys_of(with_keys(of_e, [])) == {
        "e": [
            "warn known_hosts: the host key of this node is not known on 4 other nodes that tried,"
            " and others' are"
        ]
    }
    assert keys_of(with_keys([("a", "e"), ("a", "d")], [])) == {
        "a": ["warn known_hosts: host keys of 2 other nodes are not known here"]
    }
    assert keys_of(with_keys(ALL, [])) == {}, "no such file is kept"
    assert set(keys_of(with_keys(ALL, []), known_hosts="yes")) == set("abcde")
    assert keys_of(with_keys(of_e, of_e), known_hosts="no") == {}


def test_host_keys_that_have_changed() -> None:
    of_e = [pair for pair in ALL if pair[1] == "e"]
    assert keys_of(with_keys([], of_e)) == {
        "e": [
            "warn host_key: another host key of this node than it shows is known on 4 other nodes"
        ]
    }
    assert keys_of(with_keys([], [("a", "e")])) == {
        "a": ["warn host_key: host keys of 1 other node are known here, and others are shown"]
    }
    facts = with_keys([], of_e)
    for node in "abcd":
        facts[node]["system@e"] = "@cert-authority * ssh-rsa AAAAca\n" + facts[node]["system@e"]
    assert keys_of(facts) == {}, "the authority's word will do"


def test_an_old_line_in_a_users_own_file_is_no_one_elses_matter() -> None:
    facts = with_keys([("a", "e")], [])
    facts["a"]["user@e"] = f"e {KEY}e-before"
    assert keys_of(facts) == {}
    assert keys_of(facts, known_hosts="yes") == {
        "a": ["warn host_key: host keys of 1 other node are known here, and others are shown"]
    }
