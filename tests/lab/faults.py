"""What can be wrong with a node: each is a node with one fault from a real cause."""

from dataclasses import replace

from tests.lab.spec import (
    CLOSED,
    DISTRUSTING,
    DOMAIN,
    FROZEN,
    LATE,
    LATER,
    NOBODY,
    OLD_NAMES,
    SERVICES,
    STRANGER,
    Spec,
    address,
    chrony_conf,
    time_client,
)

HANGS = "sleep 4321"  # what a hanging command does

# ---------------------------------------------------------------- the way to the node


def dead(name: str) -> Spec:
    """No power: nobody answers at its address."""
    return Spec(name, plugged=False)


def without_sshd(name: str) -> Spec:
    return replace(time_client(name), sshd=False)


def black_holed(name: str) -> Spec:
    """Its firewall drops all that comes in."""
    return Spec(name, after=_firewall("drop"))


def rejecting(name: str) -> Spec:
    """Its firewall says that nobody may come in."""
    return Spec(name, after=_firewall("reject with icmpx admin-prohibited"))


def silent_sshd(name: str) -> Spec:
    """sshd stands still: the kernel takes connections, and nobody greets."""
    return replace(time_client(name), after='kill -STOP "$(cat /run/sshd.pid)"')


def key_exchange_hangs(name: str) -> Spec:
    """Jumbo frames on its link for logins, and not on the switch port: large packets are lost."""
    # A large packet that the kernel has yet to cut would pass the switch, which is no wire.
    whole = "ip link set eth0 gso_max_segs 1"
    return replace(time_client(name), mtu=9000, port_mtu=1500, before=f"{whole}\nchronyd -x")


def with_other_host_key(name: str, key: str) -> Spec:
    spec = time_client(name)
    return replace(spec, files={**spec.files, "etc/ssh/host_key": key})


def hanging_command(name: str) -> Spec:
    """df does not come back, as with a dead mount."""
    return replace(time_client(name), after=_command("df", f"exec {HANGS}"))


def noisy_login(name: str) -> Spec:
    """Its .bashrc writes on both streams, and sshd shows a banner."""
    spec = time_client(name)
    noise = "echo 'Welcome to node'\necho 'module: command not found' >&2\n"
    return replace(spec, files={**spec.files, "root/.bashrc": noise})


def behind(name: str, gate: int) -> Spec:
    """Its firewall lets logins in from one other node only."""
    rules = f"tcp dport 22 ip saddr != {address(gate)} drop"
    return replace(time_client(name), after=_firewall(rules))


def with_user(name: str, user: str, more: str = "") -> Spec:
    return replace(time_client(name), variables=f"user={user} {more}".strip())


# ---------------------------------------------------------------- time


def follows_late(name: str, seconds: float) -> Spec:
    """Its daemon follows a server that is 0.7 or 3 s off."""
    return time_client(name, {0.7: LATE, 3: LATER}[seconds])


def silent_time_server(name: str) -> Spec:
    """Its daemon's only server does not answer: never synchronised."""
    return replace(time_client(name, NOBODY), settled="")


def no_time_server(name: str) -> Spec:
    """Its daemon has no server."""
    spec = time_client(name)
    files = {"etc/chrony/chrony.conf": chrony_conf([], "")}
    return replace(spec, files=files, settled="")


def serves_itself(name: str) -> Spec:
    """Its daemon follows the node's own clock, and says that it is synchronised."""
    spec = time_client(name)
    files = {"etc/chrony/chrony.conf": chrony_conf([], "local stratum 10")}
    return replace(spec, files=files, settled="")


def falseticker(name: str) -> Spec:
    """Three servers, each of which says something else."""
    settled = "until [ $(chronyc -n -c sources | grep -c '^^,x') = 3 ]; do sleep 0.1; done"
    return replace(time_client(name, SERVICES, LATE, LATER), settled=settled)


def no_time_daemon(name: str) -> Spec:
    return Spec(name)


def ntpsec(name: str, server: int = SERVICES) -> Spec:
    """NTPsec's ntpd in place of chronyd."""
    config = (
        f"disable ntp\nserver {address(server)} iburst minpoll 3 maxpoll 4\n"
        "restrict default kod limited nomodify noquery\nrestrict 127.0.0.1\nrestrict ::1\n"
    )
    return Spec(
        name,
        layers=("ntpsec",),
        files={"etc/ntp.conf": config},
        before="ntpd -c /etc/ntp.conf -p /run/ntpd.pid",
        settled="until ntpq -n -p | grep -q '^[*]'; do sleep 0.1; done",
    )


# ---------------------------------------------------------------- /tmp


def tmp_filled(name: str) -> Spec:
    """95 % of the space is gone, most of it by one user's one file."""
    fill = "head -c 240M /dev/zero >/tmp/core.4711\nchown alice /tmp/core.4711"
    return replace(time_client(name), after=fill)


def tmp_no_inodes(name: str) -> Spec:
    """Many empty files: space, and no inode."""
    fill = 'i=0; while [ $i -lt 1900 ]; do i=$((i + 1)); echo "/tmp/x$i"; done | xargs touch'
    return replace(time_client(name), tmp="size=256m,nr_inodes=2000", after=fill)


def tmp_deleted(name: str) -> Spec:
    """The space is held by a file that was deleted and is open still."""
    fill = "exec 4>/tmp/log\nhead -c 240M /dev/zero >&4\nrm /tmp/log\nsleep 100000 </dev/null &"
    return replace(time_client(name), after=fill)


def tmp_read_only(name: str) -> Spec:
    """As after an error of its file system."""
    return replace(time_client(name), after="mount -o remount,ro /tmp")


def read_only_against_the_table(name: str) -> Spec:
    """The same, where /etc/fstab says otherwise: /tmp, and the mount that it is on."""
    spec = tmp_read_only(name)
    files = {**spec.files, "etc/fstab": "tmp /tmp tmpfs defaults 0 0\n"}
    # The machine may be a container, which has no such table.
    return replace(spec, files=files, before=f"{spec.before}\nrm -f /.dockerenv")


def tmp_mode(name: str, mode: str) -> Spec:
    """/tmp has another mode than 1777."""
    return replace(time_client(name), after=f"chmod {mode} /tmp")


def tmp_noexec(name: str) -> Spec:
    return replace(time_client(name), tmp="size=256m,noexec")


def tmp_missing(name: str) -> Spec:
    return replace(time_client(name), after="umount /tmp\nrmdir /tmp")


def disk_full(name: str) -> Spec:
    """The root file system has no byte left, nor have the places in memory."""
    fill = (
        "for place in / /tmp /dev/shm /run /root /home /srv /mnt; do\n"
        '    cat /dev/zero >"$place/fill" 2>/dev/null || :\ndone'
    )
    return replace(time_client(name), memory="24m", tmp="size=8m", after=fill)


# ---------------------------------------------------------------- names


def with_name_servers(name: str, *servers: int, asked: bool = True) -> Spec:
    """A node of these name servers, in this order.

    asked: the inventory names them for the check, so that they are asked from the head as well.
    """
    lines = [f"search {DOMAIN}", *(f"nameserver {address(server)}" for server in servers)]
    spec = time_client(name)
    poor = ",".join(address(server) for server in servers if server != SERVICES)
    return replace(
        spec,
        files={**spec.files, "etc/resolv.conf": "\n".join(lines) + "\n"},
        variables=f"dns.servers={poor}" if asked else "",
    )


def dead_name_server(name: str) -> Spec:
    """The first of its two name servers is gone."""
    return with_name_servers(name, NOBODY, SERVICES, asked=False)


def frozen_name_server(name: str) -> Spec:
    """The daemon of the first of its two name servers stands still."""
    return with_name_servers(name, FROZEN, SERVICES, asked=False)


def no_name_server(name: str) -> Spec:
    """Its only name server is gone."""
    return with_name_servers(name, NOBODY, asked=False)


def closed_name_server(name: str, *, asked: bool = True) -> Spec:
    """On the machine of its first name server, no daemon runs any more."""
    return with_name_servers(name, CLOSED, SERVICES, asked=asked)


def old_name_server(name: str) -> Spec:
    """One of its two name servers has an old zone."""
    return with_name_servers(name, SERVICES, OLD_NAMES)


def distrusting_name_server(name: str) -> Spec:
    """Its first name server holds all answers for forged: SERVFAIL."""
    return with_name_servers(name, DISTRUSTING, SERVICES)


def refusing_name_server(name: str) -> Spec:
    """Its first name server has nothing to do with the cluster: REFUSED."""
    return with_name_servers(name, STRANGER, SERVICES)


def only_distrusting(name: str) -> Spec:
    """Its only name server holds all answers for forged."""
    return with_name_servers(name, DISTRUSTING)


def without_way_back(name: str) -> Spec:
    """Its address leads to no name."""
    return _with_records(name, "address=/{name}/{address}")


def other_way_back(name: str) -> Spec:
    """Its address leads to the name of the node that had it before."""
    back = f"ptr-record={{back}},old-name.{DOMAIN}"
    return _with_records(name, "address=/{name}/{address}", back)


def two_addresses(name: str) -> Spec:
    """Its name is its addresses on both networks."""
    return _with_records(name, "host-record={name},{address}", "host-record={name},{data}")


def stale_address(name: str) -> Spec:
    """Its name has the address of its old network card still, beside the right one."""
    old = f"host-record={{name}},{address(NOBODY)}"
    return _with_records(name, "host-record={name},{address}", old)


def six_only(name: str) -> Spec:
    """Its name has an IPv6 address and none of IPv4."""
    return _with_records(name, "host-record={name},{address6}")


def _with_records(name: str, *records: str) -> Spec:
    on_data = f"host-record={name}-data.{DOMAIN},{{data}}"
    return replace(time_client(name), records=(*records, on_data))


def hosts_contradict(name: str) -> Spec:
    """Its /etc/hosts has an old address for another node."""
    spec = time_client(name)
    text = f"127.0.0.1 localhost\n{address(NOBODY)} node01.{DOMAIN} node01\n"
    return replace(spec, files={**spec.files, "etc/hosts": text})


def own_name_on_loopback(name: str) -> Spec:
    """As Debian's installer writes it."""
    spec = time_client(name)
    text = f"127.0.0.1 localhost\n127.0.1.1 {name}.{DOMAIN} {name}\n"
    return replace(spec, files={**spec.files, "etc/hosts": text})


# ---------------------------------------------------------------- MTU


def jumbo_without_switch(name: str) -> Spec:
    """Jumbo frames on its link for data, and not on the switch port there."""
    return replace(time_client(name), data_mtu=9000, data_port_mtu=1500)


def small_mtu(name: str) -> Spec:
    """Its own interface for data was left at 1500."""
    return replace(time_client(name), data_mtu=1500)


def small_rack(name: str) -> Spec:
    """Between it and most others is a cable without jumbo frames."""
    return replace(time_client(name), rack=2)


def without_echo(name: str) -> Spec:
    """Its firewall drops echo requests; its own get through."""
    return replace(time_client(name), after=_firewall("icmp type echo-request drop"))


def without_icmp(name: str) -> Spec:
    """Its firewall drops all of ICMP."""
    return replace(time_client(name), after=_firewall("ip protocol icmp drop"))


def astray_on_data(name: str) -> Spec:
    """Its interface for data has an address of another network."""
    wrong = "ip address flush dev eth1\nip address add 10.97.0.1/16 dev eth1"
    return replace(time_client(name), after=f"{wrong}\nip route add 10.98.0.0/16 dev eth1")


# ---------------------------------------------------------------- helpers


def _firewall(rule: str) -> str:
    return (
        "nft -f - <<END\ntable inet lab {\n"
        "    chain in {\n        type filter hook input priority 0; policy accept;\n"
        f"        iif lo accept\n        {rule}\n    }}\n}}\nEND"
    )


def _command(name: str, script: str) -> str:
    path = f"/usr/bin/{name}"
    return f"printf '%s\\n' '#!/bin/sh' '{script}' >{path}\nchmod 755 {path}"
