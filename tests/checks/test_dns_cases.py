"""The check dns on nodes that other tools judged wrongly (tests/data/dns)."""

import csv
import ipaddress
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from clustercheck.check import Status
from tests.made_up import MadeUpNode, judged, options_of
from tests.shells import SHELLS

DATA = Path(__file__).parent.parent / "data" / "dns"
ROWS = list(csv.DictReader((DATA / "verdicts.csv").read_text().splitlines()))


class Case(NamedTuple):
    """name: of the node. said: what each command printed. files: content by path."""

    name: str
    said: dict[str, str]
    files: dict[str, str]


def read_case(file: str) -> Case:
    said: dict[str, str] = {}
    files: dict[str, str] = {}
    parts = re.split(r"^@(command|file|note)", (DATA / file).read_text(), flags=re.MULTILINE)
    for kind, text in zip(parts[1::2], parts[2::2], strict=True):
        head, _, rest = text.strip(" ").partition("\n")
        match = re.search(r"@(?:stdout|content)\n(.*?)@end", rest, re.DOTALL)
        if kind != "note":
            (said if kind == "command" else files)[head] = match[1] if match else ""
    names = re.findall(r"\bnode\d\d\b", (DATA / file).read_text())
    return Case(names[0], said, files)


def on(node: MadeUpNode, case: Case) -> None:
    """Make the node say what the case recorded, in the forms in which the probe asks."""
    known: dict[str, str] = {}
    by_dig: dict[str, str] = {}
    for command, out in case.said.items():
        *words, key = command.split()
        if words[0] == "getent":
            place = f"{words[1].rstrip('v46')} {key}"
            known[place] = known.get(place) or out
        elif words[:2] == ["dig", "+short"]:  # what a name server says reaches the node by getent
            by_dig[f"hosts {key}"] = "".join(f"{key} {name}\n" for name in out.split())
    known = by_dig | known
    asked = [key.split()[1] for key in known if key.startswith("hosts ")]
    for address in filter(is_address, asked):  # where the case records the way back alone
        known.setdefault(f"ahosts {case.name}", f"{address} STREAM {case.name}\n")
    known["ahosts 127.0.0.1"] = "127.0.0.1 STREAM 127.0.0.1\n"
    known["ahosts 0.0.0.1"] = "0.0.0.1 STREAM 0.0.0.1\n"
    arms = [
        f"{shlex.quote(key)}) printf %s {shlex.quote(out)} ;;" for key, out in known.items() if out
    ]
    node.command(
        "getent",
        f'database=$1 status=0; shift; for key; do case "$database $key" in {" ".join(arms)}\n'
        "*) status=2 ;; esac; done; exit $status",
    )
    node.file("/proc/sys/kernel/hostname", case.name + "\n")
    addresses = {line.split()[0] for line in known.get(f"ahosts {case.name}", "").splitlines()}
    four = {a for a in addresses if ":" not in a and not a.startswith("127.")}
    node.file(
        "/proc/net/fib_trie",
        "Local:\n" + "".join(f"  |-- {a}\n    /32 host LOCAL\n" for a in {"127.0.0.1", *four}),
    )
    six = [ipaddress.ip_address(a).packed.hex() for a in addresses if ":" in a]
    node.file("/proc/net/if_inet6", "".join(f"{digits} 02 40 00 80 eth0\n" for digits in six))
    for path, content in case.files.items():
        node.file(path, content)


def is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"][:3])
def test_case(row: dict[str, str], shell: str, tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    on(node, read_case(row["file"]))
    told = {"servers": "", **node.probe("dns", shell=shell)}
    if "resolv.conf" in told:
        told["servers"] = "192.0.2.53 answers"
    found = judged("dns", told)
    worst = max(found, key=lambda text: Status(text.split()[0]))
    assert Status(worst.split()[0]).name in row["expected"].split("|"), found
    trouble = [text for text in found if not text.startswith("pass")]
    for words in filter(None, row["must_mention"].split(";")):
        assert any(words in text for text in trouble), found
    for words in filter(None, row["must_not"].split(";")):
        assert not any(words.lower() in text for text in found), found


def test_a_login_node_may_have_its_name_on_a_loopback_address(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    on(node, read_case("041-dns-own-name-loopback.txt"))
    assert judged("dns", node.probe("dns"), own_loopback="warn")[0].startswith("warn own_loopback")
    assert options_of("dns").own_loopback == "fail"


def test_all_names_of_an_address_are_listed(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    on(node, read_case("043-dns-several-ptr-and-aliases.txt"))
    assert (
        "pass reverse: by reverse look-up 192.0.2.14 is node04-ib.cluster.example, "
        "node04.cluster.example, node04"
    ) in judged("dns", node.probe("dns"))


@pytest.mark.parametrize("shell", SHELLS)
def test_a_name_that_the_node_makes_up_is_no_record(shell: str, tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.command(
        "getent",
        '[ "$1" != -s ] || { [ "$2" = "hosts:files dns" ] || exit 9; exit 2; }\n'
        'case "$*" in *node05) echo "192.0.2.15 STREAM node05" ;; *127.0.0.1) echo STREAM ;; '
        "*) exit 2 ;; esac",
    )
    node.file("/proc/sys/kernel/hostname", "node05\n")
    node.file("/etc/nsswitch.conf", "hosts: files myhostname resolve [!UNAVAIL=return] dns # x\n")
    assert judged("dns", {**node.probe("dns", shell=shell), "servers": ""})[0] == (
        "fail own_made_up: its own name node05 is 192.0.2.15 to the node itself only "
        "(nss-myhostname or systemd-resolved makes that up), and has no record by files dns"
    )
