"""The files and the network of the laboratory: what its nodes have, and how they are cabled."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.host import Keys, sshd_version, write_files
from tests.lab.spec import DOMAIN, HEAD, SERVICES, Spec, address, address6, data_address

RESOLV_CONF = f"search {DOMAIN}\nnameserver {address(SERVICES)}\noptions timeout:1 attempts:2\n"
NSSWITCH_CONF = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"

# For ip -batch. Between the racks there is a cable whose ports know no jumbo frames.
SWITCHES = f"""link set lo up
link add logins type bridge mcast_snooping 0
link set logins mtu 9000 gso_max_segs 1 up
address add {address(HEAD)}/16 dev logins
address add {address6(HEAD)}/64 dev logins nodad
link add data-rack1 type bridge mcast_snooping 0
link set data-rack1 mtu 9000 up
address add {data_address(HEAD)}/16 dev data-rack1
link add data-rack2 type bridge mcast_snooping 0
link set data-rack2 mtu 9000 up
link add trunk1 mtu 1500 type veth peer name trunk2 mtu 1500
link set trunk1 master data-rack1 up
link set trunk2 master data-rack2 up
"""


def write_common(folder: Path, keys: Keys) -> None:
    """What all nodes have, the head's own /etc, and its switches."""
    for name in ("memory", "etc", "common", "log"):
        (folder / name).mkdir()
    write_files(folder / "common", keys)
    ssh = folder / "common/etc/ssh"
    lines = [
        "HostKey /etc/ssh/host_key",
        "AuthorizedKeysFile /etc/ssh/authorized_keys",
        "PidFile /run/sshd.pid",
        "UsePAM no",
        "UseDNS no",
        "LogLevel VERBOSE",
        "MaxStartups 500",
    ]
    if sshd_version() >= (9, 8):
        lines.append("PerSourcePenalties no")
    (ssh / "sshd_config").write_text("\n".join(lines) + "\n")
    etc = folder / "etc"
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{address(HEAD)} head.{DOMAIN} head\n")
    (etc / "resolv.conf").write_text(RESOLV_CONF)
    (etc / "nsswitch.conf").write_text(NSSWITCH_CONF)
    (folder / "switches").write_text(SWITCHES)


def write_logins(
    folder: Path, keys: Keys, numbers: Mapping[str, int], specs: Sequence[Spec]
) -> None:
    """The files for clustercheck and ssh, to be used in the head."""
    known_hosts = folder / "known_hosts"
    key = " ".join(Path(f"{keys.host}.pub").read_text().split()[:2])
    known, nodes = [], []
    for name, number in numbers.items():
        known.append(f"{name},{name}.{DOMAIN},{address(number)},{address6(number)} {key}\n")
    for spec in specs:
        where = f"host={address(numbers[spec.name])}"
        nodes.append(f"{spec.name} {where} {spec.variables}".rstrip() + "\n")
    known_hosts.write_text("".join(known))
    (folder / "inventory.ini").write_text(
        f"[lab]\n{''.join(nodes)}\n[all:vars]\nuser = root\nkey = {keys.plain}\n\n"
        f"[check:ntp]\nreference = {address(SERVICES)}\n\n"
        "[check:mtu]\nnames = {node}-data\n\n"
        # All nodes share one machine: a shell may take its time, and who is busy is not known.
        "[check:login]\nwarn_seconds = 9\n\n"
        "[check:cpu]\nbusy_percent = 100000\n"
    )
    (folder / "ssh_config").write_text(
        f'User root\nIdentityFile "{keys.plain}"\nIdentitiesOnly yes\n'
        f'UserKnownHostsFile "{known_hosts}"\n'
    )


def own_files(number: int, name: str) -> dict[str, str]:
    """What every node has of its own."""
    return {
        "etc/hostname": f"{name}\n",
        "etc/hosts": f"127.0.0.1 localhost\n{address(number)} {name}.{DOMAIN} {name}\n",
        "etc/resolv.conf": RESOLV_CONF,
        "etc/nsswitch.conf": NSSWITCH_CONF,
    }


def cables(number: int, spec: Spec, pid: int) -> list[str]:
    """Lines for `ip -batch`: the node's two links, the far ends in the switches."""
    login, data, rack = f"login{number}", f"data{number}", f"data-rack{spec.rack}"
    return [
        f"link add {login} mtu {spec.port_mtu} type veth peer name eth0 mtu {spec.mtu} netns {pid}",
        f"link set {login} master logins {'up' if spec.plugged else 'down'}",
        f"link add {data} mtu {spec.data_port_mtu} type veth "
        f"peer name eth1 mtu {spec.data_mtu} netns {pid}",
        f"link set {data} master {rack} up",
    ]
