"""Nodes with a kernel of their own: user-mode Linux, which needs no virtual machine."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.lab.cluster import DidNotComeUp, Lab
from tests.lab.layout import own_files
from tests.lab.spec import Spec, address, address6, data_address
from tools.fetch import TOOLS, CannotFetch, fetch

HERE = Path(__file__).parent
POLICY = TOOLS / "policy"


@dataclass(frozen=True)
class Guest:
    """One guest.

    spec: of it count the name, before, files, records and variables.
    selinux: the mode; where it is not disabled, Debian's policy is loaded.
    memory: in MiB.
    """

    spec: Spec
    selinux: Literal["disabled", "permissive", "enforcing"] = "disabled"
    memory: int = 256


# In the head, in its memory: the root that all guests begin with, and a place for each.
# $1: that memory; then the layers, the uppermost first.
PREPARE = r"""
cd "$1"
shift
mkdir -p guests/tmp guests/root
lower=''
for layer in "$@"; do
    name=${layer##*/}
    [ -e "layers/$name" ] || cp -a "$layer" layers/
    lower="$lower${lower:+:}layers/$name"
done
mkdir -p layers/guest/usr/local/sbin
cp "$init" layers/guest/usr/local/sbin/guest-init
chmod 755 layers/guest/usr/local/sbin/guest-init
mount -t overlay -o "lowerdir=$lower:/" guests guests/root
"""

# $1: folder of the guests; the rest is linux.uml's command line. The kernel is told paths, which
# must not depend on where the laboratory is; and it runs code from TMPDIR.
BOOT = r"""
read -r outside rest </proc/self/stat
mount --rbind "$1" /mnt
shift
echo "$outside"
exec >&2
TMPDIR=/mnt/tmp exec "$@"
"""

# $1: folder of the layers; $2: an empty one for what is made. What the package of the policy does
# after it is unpacked, without a kernel to load it.
COMPILE = r"""
mkdir "$2/memory"
mount -t tmpfs policy "$2/memory"
cd "$2/memory"
mkdir upper work root layers
cp -a "$1/guest" "$1/root" layers/
mount -t overlay \
    -o lowerdir=layers/guest:layers/root:/,upperdir=upper,workdir=work policy root
mount -t proc proc root/proc
mount --bind /dev root/dev
mkdir -p root/etc/selinux root/var/lib/selinux/default
printf 'SELINUX=permissive\nSELINUXTYPE=default\n' >root/etc/selinux/config
set --
for module in $(cat root/usr/share/selinux/default/.modules); do
    set -- "$@" -i "/usr/share/selinux/default/$module.pp.bz2"
done
chroot root semodule -X 100 -n -s default "$@"
mkdir ../made
cp -a upper/etc ../made/
"""


def why_no_guests() -> str:
    """Why there can be no guests on this machine; "" where there can. Fetches what they need."""
    release = Path("/etc/os-release")
    if release.exists() and "ID=debian\n" not in release.read_text():
        return "cannot here: user-mode Linux is a package of Debian's only"
    if os.uname().machine != "x86_64":
        return "cannot here: user-mode Linux is for x86-64 only"
    try:
        fetch("guest")
    except CannotFetch as why:
        return str(why)
    return ""


def boot(lab: Lab, guests: Sequence[Guest], within: float = 240) -> None:
    """Boot the guests side by side; `lab` was made with their specs. Raises DidNotComeUp."""
    if any(guest.selinux != "disabled" for guest in guests):
        compile_policy()
    layers = [POLICY, *(TOOLS / name for name in ("guest", "chrony", "root"))]
    words = [str(lab.memory), *(str(layer) for layer in layers if layer.exists())]
    init = shlex.quote(str(HERE / "guest-init.sh"))
    lab.run_in_head(f"set -- {shlex.join(words)}\ninit={init}\n{PREPARE}")
    for guest in guests:
        _write(lab, guest)
        _boot(lab, guest)
    deadline = time.monotonic() + within
    for guest in guests:
        name = guest.spec.name
        while f"{name} is up" not in lab.log(name):
            if time.monotonic() > deadline or not lab.is_up(name):
                raise DidNotComeUp(f"{name}: {lab.log(name)[-3000:]}")
            time.sleep(0.05)


def _write(lab: Lab, guest: Guest) -> None:
    """Fill its folder in the head's memory."""
    name, number = guest.spec.name, lab.numbers[guest.spec.name]
    there = lab.seen(lab.memory / "guests" / name)
    shutil.copytree(lab.folder / "common", there / "files", symlinks=True)
    for owned in (lab.folder / "common").rglob("*"):
        status = owned.lstat()
        copy = there / "files" / owned.relative_to(lab.folder / "common")
        os.chown(copy, status.st_uid, status.st_gid, follow_symlinks=False)
    settings = {
        "name": name,
        "address": address(number),
        "address6": address6(number),
        "data": data_address(number),
        "selinux": guest.selinux,
    }
    lines = [f"{key}={shlex.quote(value)}\n" for key, value in settings.items()]
    (there / "settings").write_text("".join(lines))
    (there / "before").write_text(guest.spec.before + "\n")
    config = f"SELINUX={guest.selinux}\nSELINUXTYPE=default\n"
    files = {**own_files(number, name), "etc/selinux/config": config, **guest.spec.files}
    for path, text in files.items():
        file = there / "files" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _boot(lab: Lab, guest: Guest) -> None:
    name, number = guest.spec.name, lab.numbers[guest.spec.name]
    login, data = f"login{number}", f"data{number}"
    lab.batch(
        [
            f"tuntap add {login} mode tap",
            f"link set {login} mtu 1500 master logins up",
            f"tuntap add {data} mode tap",
            f"link set {data} mtu 9000 master data-rack1 up",
        ]
    )
    kernel = [
        str(lab.memory / "layers/guest/usr/bin/linux.uml"),
        f"mem={guest.memory}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/mnt/root",
        "ro",
        "init=/usr/local/sbin/guest-init",
        "quiet",
        "con=null",
        "con0=fd:0,fd:1",
        f"vec0:transport=tap,ifname={login},depth=64,gro=1",
        f"vec1:transport=tap,ifname={data},depth=64,gro=1,mtu=9000",
        f"security={'none' if guest.selinux == 'disabled' else 'selinux'}",
        f"guest={name}",
    ]
    script = ["/bin/sh", "-euc", BOOT, "boot", str(lab.memory / "guests"), *kernel]
    lab.start(name, ["--mount", "--pid", "--fork", "--kill-child", *script])


def compile_policy() -> None:
    """Make .tools/policy, once: it takes some 20 s of CPU."""
    if POLICY.exists():
        return
    new = TOOLS / "policy.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    words = ["unshare", "--mount", "sh", "-euc", COMPILE, "compile", str(TOOLS), str(new)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise DidNotComeUp(f"the SELinux policy was not made: {done.stderr}")
    (new / "made").rename(POLICY)
    shutil.rmtree(new)
