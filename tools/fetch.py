#!/usr/bin/env python3
"""Get the programs that the tests need: the machine's own, else unpacked below .tools/.

What the machine lacks is taken from the packages of Debian or Ubuntu and unpacked, not installed:
nothing outside this folder is changed, no service is started, and root is not needed.

    .tools/root, .tools/chrony, .tools/ntpsec   layers, to be put over a root
    .tools/plugins                              monitoring plug-ins
    .tools/dns                                  a name server
    .tools/faketime                             a clock that is off for one process
    .tools/slurm                                Slurm and Munge
    .tools/chromium                             a browser without a window; fetched when asked for
    .tools/mail                                 a sendmail program; likewise
    .tools/units                                what reads units as systemd does; likewise
    .tools/promtool                             what reads metrics as Prometheus does; likewise
    .tools/guest                                a Linux kernel that runs as a process, with NFS and
                                                SELinux; large, so fetched only when asked for
    .tools/bin                                  what of .tools/root can be called from here

The time daemons have layers of their own, since as packages they exclude each other. Run it as
often as you like, from several processes at once: with everything there it takes no time.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
TOOLS = PROJECT / ".tools"

# layer -> command, or path of a file -> Debian's package for it
WANTED = {
    "root": {
        "bash": "bash",
        "busybox": "busybox",
        "dash": "dash",
        "fish": "fish",
        "ip": "iproute2",
        "mount": "mount",
        "nft": "nftables",
        "nsenter": "util-linux",
        "ping": "iputils-ping",
        "ps": "procps",
        "setpriv": "util-linux",
        "ss": "iproute2",
        "ssh": "openssh-client",
        "ssh-agent": "openssh-client",
        "ssh-keygen": "openssh-client",
        "sshd": "openssh-server",
        "sudo": "sudo",
        "tcsh": "tcsh",
        "unshare": "util-linux",
    },
    "dns": {"dnsmasq": "dnsmasq-base"},
    "faketime": {"faketime": "faketime"},
    "slurm": {
        "munge": "munge",
        "munged": "munge",
        "scontrol": "slurm-client",
        "sinfo": "slurm-client",
        "slurmctld-wlm": "slurmctld",
        "slurmd-wlm": "slurmd",
        "unmunge": "munge",
    },
    "chromium": {"/usr/lib/chromium/chromium-headless-shell": "chromium-headless-shell"},
    "chrony": {"chronyc": "chrony", "chronyd": "chrony"},
    "guest": {
        "dbus-daemon": "dbus-daemon",
        "exportfs": "nfs-kernel-server",
        "getenforce": "selinux-utils",
        "linux.uml": "user-mode-linux",
        "load_policy": "policycoreutils",
        "modprobe": "kmod",
        "mount.nfs": "nfs-common",
        "rpcbind": "rpcbind",
        "tc": "iproute2",
        "timedatectl": "systemd",
        "/etc/netconfig": "libtirpc-common",
        "/etc/protocols": "netbase",
        "/usr/lib/systemd/systemd-timesyncd": "systemd-timesyncd",
        "/usr/share/selinux/default/.modules": "selinux-policy-default",
    },
    "mail": {"msmtp": "msmtp"},
    "ntpsec": {"ntpd": "ntpsec", "ntpq": "ntpsec"},
    "units": {"systemd-analyze": "systemd"},
    "plugins": dict.fromkeys(
        ("check_disk", "check_load", "check_procs"), "monitoring-plugins-basic"
    ),
    "promtool": {"promtool": "prometheus"},
}

# What is fetched only by its name.
ON_DEMAND = {"chromium", "guest", "mail", "promtool", "units"}

# Where commands of a layer may be, below it.
FOLDERS = ("usr/bin", "usr/sbin", "usr/lib/nagios/plugins")

# Of no use without a root to itself: it wants to be set-uid and looks for its parts below /usr.
NOT_CALLABLE = {"sudo"}

# What dpkg-deb unpacks and nothing here reads.
UNREAD = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")


class CannotFetch(Exception):
    """The packages cannot be had; the message says why, and what to do."""


def program(name: str) -> Path | None:
    """The command `name` as it can be called on this machine, or None."""
    path = os.pathsep.join([str(TOOLS / "bin"), os.environ["PATH"], "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def lacking(layer: str, *, unpacked: bool = True) -> list[str]:
    """The commands of a layer that the machine has not, nor the unpacked layer if that counts."""
    own = str(TOOLS / "bin")
    path = os.pathsep.join(
        [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != own]
        + ["/usr/sbin", "/sbin", "/usr/lib/nagios/plugins"]
        + [str(TOOLS / layer / folder) for folder in FOLDERS if unpacked]
    )
    roots = [Path("/"), *([TOOLS / layer] if unpacked else [])]
    return [
        wanted
        for wanted in WANTED[layer]
        if not shutil.which(wanted, path=path)
        and not any((root / wanted[1:]).is_file() for root in roots if wanted.startswith("/"))
    ]


def fetch(*layers_too: str) -> None:
    """Bring about that nothing is lacking; raises CannotFetch.

    layers_too: of those in ON_DEMAND.
    """
    asked = [layer for layer in WANTED if layer not in ON_DEMAND or layer in layers_too]
    if not any(map(lacking, asked)):
        return
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        layers = [layer for layer in asked if lacking(layer)]  # another process may have been here
        if not layers:
            return
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            words = " ".join(command for layer in layers for command in lacking(layer))
            raise CannotFetch(f"install these commands with the machine's package manager: {words}")
        for layer in layers:
            print(f"fetching {' '.join(lacking(layer))} into .tools/{layer}", file=sys.stderr)
            _fetch_layer(layer)


def _fetch_layer(layer: str) -> None:
    """Make the layer anew beside the old one, so that what was interrupted is never taken."""
    new = TOOLS / f"{layer}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    # Of the old layer nothing is kept: what it holds is downloaded with what it lacks.
    absent = lacking(layer, unpacked=False)
    _unpack(_download(sorted({WANTED[layer][command] for command in absent})), new)
    if layer == "root":
        _make_callable(new)
    old = TOOLS / f"{layer}.old"
    shutil.rmtree(old, ignore_errors=True)
    if (TOOLS / layer).exists():
        (TOOLS / layer).rename(old)
    new.rename(TOOLS / layer)
    shutil.rmtree(old, ignore_errors=True)


def _download(packages: list[str]) -> list[Path]:
    """The archives of the packages and of what they need that the machine lacks.

    The machine's package lists are tried first; they may be missing or name versions that are no
    longer kept, so then lists of our own are.
    """
    apt = TOOLS / "apt"
    for folder in ("lists/partial", "cache/archives/partial", "archives"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    machines = apt / "machines-lists.conf"
    # apt would otherwise turn into the user _apt, who may not be allowed to read this folder.
    machines.write_text(f'APT::Sandbox::User "root";\nDir::Cache "{apt}/cache";\n')
    own = apt / "own-lists.conf"
    own.write_text(
        f'{machines.read_text()}Dir::State::lists "{apt}/lists";\n'
        # The machine's hooks would tidy its own cache and indexes after our update.
        "#clear APT::Update::Pre-Invoke;\n"
        "#clear APT::Update::Post-Invoke;\n"
        "#clear APT::Update::Post-Invoke-Success;\n"
    )
    try:
        return _archives(machines, packages)
    except CannotFetch:
        _apt(own, "update")
        return _archives(own, packages)


def _archives(config: Path, packages: list[str]) -> list[Path]:
    folder = TOOLS / "apt" / "archives"
    shutil.rmtree(folder)
    folder.mkdir()
    # Only a simulated installation knows for each release what else is needed. It says nothing of
    # a package that is installed and whose command is gone all the same.
    plan = _apt(config, "--simulate", "--no-install-recommends", "install", *packages)
    needed = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    _apt(config, "download", *(needed or packages), cwd=folder)
    return sorted(folder.glob("*.deb"))


def _apt(config: Path, *words: str, cwd: Path = PROJECT) -> str:
    command = ["apt-get", "-q", "-c", str(config), *words]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True
    )
    if done.returncode:
        raise CannotFetch(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
    return done.stdout


def _unpack(archives: list[Path], layer: Path) -> None:
    for archive in archives:
        subprocess.run(["dpkg-deb", "-x", archive, layer], check=True)
    # A package may bring a real /lib, which would hide the machine's link to usr/lib.
    for name in ("bin", "sbin", "lib", "lib64"):
        old = layer / name
        if old.is_dir() and not old.is_symlink():
            shutil.copytree(old, layer / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(old)
    for unread in UNREAD:
        shutil.rmtree(layer / unread, ignore_errors=True)
    for link in [file for file in layer.rglob("*") if file.is_symlink()]:
        # One to /bin/kmod means the layer's, here as well as over a root.
        target = os.readlink(link).lstrip("/")
        inside = [layer / "usr" / target, layer / target]
        if os.path.isabs(os.readlink(link)) and any(map(os.path.lexists, inside)):
            link.unlink()
            link.symlink_to(os.path.relpath(next(filter(os.path.lexists, inside)), link.parent))
    for file in layer.rglob("*"):
        # Nothing here may give a caller rights that he lacks: the tests' host gives them back.
        if file.is_file() and not file.is_symlink() and file.stat().st_mode & 0o6000:
            file.chmod(file.stat().st_mode & 0o777)


def _make_callable(layer: Path) -> None:
    """Fill .tools/bin: a link where that will do, else a script that says where libraries are."""
    folder = TOOLS / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    objects = [*layer.rglob("*.so"), *layer.rglob("*.so.*")]
    libraries = sorted({str(file.parent.relative_to(layer)) for file in objects})
    for file in sorted([*layer.glob("usr/bin/*"), *layer.glob("usr/sbin/*")]):
        if file.name not in WANTED["root"] or file.name in NOT_CALLABLE:
            continue
        if not _unresolved(file, ""):
            (folder / file.name).symlink_to(Path("../root") / file.relative_to(layer))
            continue
        if left := _unresolved(file, ":".join(str(layer / path) for path in libraries)):
            raise CannotFetch(f"{file.name} needs libraries that no package brings: {left}")
        script = folder / file.name
        there = ":".join(f"$root/{path}" for path in libraries)
        script.write_text(
            '#!/bin/sh\nroot=$(cd "$(dirname "$0")/../root" && pwd)\n'
            f'export LD_LIBRARY_PATH="{there}"\n'
            f'exec "$root/{file.relative_to(layer)}" "$@"\n'
        )
        script.chmod(0o755)


def _unresolved(file: Path, libraries: str) -> str:
    """The libraries that the loader would not find, in one line."""
    environment = {**os.environ, "LC_ALL": "C", "LD_LIBRARY_PATH": libraries}
    told = subprocess.run(["ldd", file], env=environment, capture_output=True, text=True).stdout
    return " ".join(line.split()[0] for line in told.splitlines() if "not found" in line)


def main() -> int:
    try:
        fetch()
    except CannotFetch as why:
        print(f"tools/fetch.py: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
