"""What a node of the laboratory is, and what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

DOMAIN = "lab.test"
HEAD = 1
SERVICES = 53  # name server and the time server that is right
LATE = 54  # a time server that is 0.7 s off
LATER = 55  # and one that is 3 s off
OLD_NAMES = 56  # a name server with the zone from before the cluster moved
DISTRUSTING = 57  # one that holds all answers for forged
STRANGER = 58  # one that knows nothing of the cluster
FROZEN = 59  # one whose daemon stands still
CLOSED = 60  # an address of that machine where none listens
NOBODY = 250  # an address that no node has
FIRST = 257  # of the nodes: 10.99.1.1
FIRST_GUEST = 2049  # of the nodes with a kernel of their own: 10.99.8.1


def address(number: int) -> str:
    """A node's address on the network for logins."""
    return f"10.99.{number >> 8}.{number & 255}"


def data_address(number: int) -> str:
    """A node's address on the network for data, with jumbo frames."""
    return f"10.98.{number >> 8}.{number & 255}"


def data_address6(number: int) -> str:
    """The same by IPv6, where `with_data6` has given it one."""
    return f"fd98::{number >> 8}:{number & 255}"


def address6(number: int) -> str:
    """A node's IPv6 address on the network for logins."""
    return f"fd99::{number:x}"


@dataclass(frozen=True)
class Spec:
    """One node.

    name: its host name.
    before, after: lines of sh that root runs there before sshd starts, and after; they must
        succeed, and what they start in the background goes on.
    settled: lines of sh that end when it has come to rest, run once all nodes are up.
    files: text by path without the first "/", put over the machine's files.
    layers: of tools/fetch.py, put over its root beside "root".
    tmp: mount options of its /tmp.
    memory: what its disk, which is memory, may take; "" is no limit.
    sshd: whether it is started.
    mtu, port_mtu: of its interface on the network for logins and of the switch port there.
    data_mtu, data_port_mtu: the same on the network for data.
    rack: its switch of the network for data, 1 or 2; between the two the MTU is 1500.
    plugged: whether the cable of the network for logins is in.
    records: what the name server says of it (dnsmasq's options, with {name}, {address}, {address6},
        {data}, and {back} for the name that leads back); None: its name, and back.
    variables: of the inventory ("user=alice").
    """

    name: str
    before: str = ""
    after: str = ""
    settled: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    tmp: str = "size=256m"
    memory: str = ""
    sshd: bool = True
    mtu: int = 1500
    port_mtu: int = 1500
    data_mtu: int = 9000
    data_port_mtu: int = 9000
    rack: int = 1
    plugged: bool = True
    records: tuple[str, ...] | None = None
    variables: str = ""


# chronyd is sure of its source only after some answers: until its error is below 20 ms.
FOLLOWS = """until chronyc -n -c tracking |
    awk -F, '{ exit !($14 == "Normal" && $11 / 2 + $12 < 0.02) }'; do sleep 0.1; done"""


def healthy(count: int) -> list[Spec]:
    """Nodes with nothing wrong: node01, node02, …"""
    width = max(2, len(str(count)))
    return [time_client(f"node{number:0{width}d}") for number in range(1, count + 1)]


def time_client(name: str, *sources: int, config: str = "") -> Spec:
    """A node whose chronyd follows the sources; it never sets the clock, which is the machine's.

    sources: numbers of servers; none: the one that is right.
    config: more lines of chrony.conf.
    """
    text = chrony_conf([f"server {address(source)}" for source in sources or (SERVICES,)], config)
    return Spec(
        name,
        layers=("chrony",),
        files={"etc/chrony/chrony.conf": text},
        before="chronyd -x",
        settled=FOLLOWS,
    )


def with_data6(spec: Spec) -> Spec:
    """The node with an IPv6 address on the network for data, too; its name is with "-data6"."""
    add = (
        "set -- $(ip -o -4 address show dev eth1)\nlast=${4#10.98.}\nlast=${last%/*}\n"
        'ip address add "fd98::${last%.*}:${last#*.}/64" dev eth1 nodad\n'
    )
    return replace(spec, before=add + spec.before)


def chrony_conf(servers: list[str], config: str) -> str:
    """chrony.conf for a daemon that is quick to follow."""
    lines = [f"{server} iburst minpoll 0 maxpoll 2" for server in servers]
    lines += ["user root", "driftfile /run/chrony.drift", config]
    return "\n".join(lines) + "\n"


def services(nodes: Mapping[str, tuple[int, Spec]]) -> dict[int, Spec]:
    """The nodes that serve the others, by number."""
    serve = "local stratum 3\nallow 10.99.0.0/16"
    right = Spec(
        "services",
        layers=("chrony", "dns"),
        files={
            "etc/chrony/chrony.conf": chrony_conf([], serve),
            "etc/dnsmasq.conf": _dnsmasq_conf(nodes),
        },
        before="chronyd -x\ndnsmasq --conf-file=/etc/dnsmasq.conf",
    )
    return {
        SERVICES: right,
        LATE: _off("late", 0.7),
        LATER: _off("later", 3),
        OLD_NAMES: _poor_name_servers(nodes),
    }


def _off(name: str, seconds: float) -> Spec:
    """A server whose time is ahead: it follows the right one with an offset. No clock is wrong."""
    text = chrony_conf([f"server {address(SERVICES)} offset {seconds}"], "allow 10.99.0.0/16")
    return Spec(
        name, layers=("chrony",), files={"etc/chrony/chrony.conf": text}, before="chronyd -x"
    )


def _dnsmasq_conf(nodes: Mapping[str, tuple[int, Spec]]) -> str:
    lines = [*_server(SERVICES), *ZONE, f"host-record=head.{DOMAIN},{address(HEAD)}"]
    for name, (number, spec) in nodes.items():
        lines += records(name, number) if spec.records is None else _filled(name, number, spec)
    return "\n".join(lines) + "\n"


def _server(number: int) -> list[str]:
    return [
        f"listen-address={address(number)}",
        f"pid-file=/run/dnsmasq.{number}",
        "bind-interfaces",
        "no-resolv",
        "no-hosts",
        "user=root",
    ]


ZONE = [
    f"local=/{DOMAIN}/",
    *(f"local=/{net}.10.in-addr.arpa/" for net in (97, 98, 99)),
    *(f"local=/{net}.9.d.f.ip6.arpa/" for net in (8, 9)),
]


def _filled(name: str, number: int, spec: Spec) -> list[str]:
    back = ".".join(reversed(address(number).split("."))) + ".in-addr.arpa"
    return [
        line.format(
            name=f"{name}.{DOMAIN}",
            address=address(number),
            address6=address6(number),
            data=data_address(number),
            back=back,
        )
        for line in spec.records or ()
    ]


def _poor_name_servers(nodes: Mapping[str, tuple[int, Spec]]) -> Spec:
    """A machine with several name servers, none of them any good."""
    old = [
        f"host-record={name}.{DOMAIN},10.97.{number >> 8}.{number & 255}"
        for name, (number, _) in nodes.items()
    ]
    # It was told to trust signed answers alone, and asks a server that signs nothing.
    key = "E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D"
    distrust = [f"server={address(SERVICES)}", "dnssec", f"trust-anchor=.,20326,8,2,{key}"]
    servers = {OLD_NAMES: [*ZONE, *old], DISTRUSTING: distrust, STRANGER: [], FROZEN: ZONE}
    files, before = {}, []
    for number in (*servers, CLOSED):
        if number != OLD_NAMES:
            before.append(f"ip address add {address(number)}/16 dev eth0")
    for number, lines in servers.items():
        files[f"etc/dnsmasq.{number}"] = "\n".join([*_server(number), *lines]) + "\n"
        before.append(f"dnsmasq --conf-file=/etc/dnsmasq.{number}")
    before.append(f'kill -STOP "$(cat /run/dnsmasq.{FROZEN})"')
    return Spec("poor-names", layers=("dns",), files=files, before="\n".join(before))


def records(name: str, number: int) -> list[str]:
    """What a name server in order says of a node."""
    return [
        f"host-record={name}.{DOMAIN},{address(number)}",
        f"host-record={name}-data.{DOMAIN},{data_address(number)}",
        f"host-record={name}-data6.{DOMAIN},{data_address6(number)}",
    ]
