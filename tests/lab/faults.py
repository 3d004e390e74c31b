"""What can be wrong with a node: each is a node with one fault from a real cause."""

from dataclasses import replace

from tests.lab.spec import (
    DOMAIN,
    LATE,
    LATER,
    NOBODY,
    SERVICES,
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


def dead_name_server(name: str) -> Spec:
    """The first of its two name servers is gone."""
    text = f"search {DOMAIN}\nnameserver {address(NOBODY)}\nnameserver {address(SERVICES)}\n"
    spec = time_client(name)
    return replace(spec, files={**spec.files, "etc/resolv.conf": text})


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


# ---------------------------------------------------------------- SELinux


def _firewall(rule: str) -> str:
    return (
        "nft -f - <<END\ntable inet lab {\n"
        "    chain in {\n        type filter hook input priority 0; policy accept;\n"
        f"        iif lo accept\n        {rule}\n    }}\n}}\nEND"
    )


def _command(name: str, script: str) -> str:
    path = f"/usr/bin/{name}"
    return f"printf '%s\\n' '#!/bin/sh' '{script}' >{path}\nchmod 755 {path}"
