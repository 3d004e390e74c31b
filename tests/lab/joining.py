"""Nodes before they join: with GPUs, Munge, Slurm and scratch space; one clean, one odd.

The GPUs are made up: the driver's files and nvidia-smi's answers are recorded ones, put where a
node has them. All else is real: the daemons, the mounts, the network.
"""

from dataclasses import replace
from pathlib import Path

from tests.lab.spec import DOMAIN, FIRST, LATER, NOBODY, Spec, address, time_client

DATA = Path(__file__).resolve().parent.parent / "data"
CONTROL = "control"
DRIVER, OTHER_DRIVER = "550.90.07", "535.183.01"
KEY, OTHER_KEY = "0123456789abcdef" * 8, "fedcba9876543210" * 8

# What is wrong with the odd node, in the order in which it is to be told: each with what names it.
DIFFERENCES = {
    "MTU": "fail mtu.side",
    "hosts entry": "fail dns.differs",
    "clock": "fail ntp.daemon_offset",
    "munge key": "fail munge.same_key",
    "slurm.conf line": "warn slurm.conf",
    "driver text": "warn fingerprint.uniform gpu.driver",
    "uid": "warn fingerprint.uniform account.slurm",
    "mount option": "warn fingerprint.uniform mount./scratch",
    "kernel parameter": "warn fingerprint.uniform sysctl.vm.swappiness",
    "limit": "warn fingerprint.uniform limit.nofile",
}

SLURM_CONF = """ClusterName=lab
SlurmctldHost={control}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/lib/slurm
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SlurmdTimeout=300
{nodes}
PartitionName=main Nodes=ALL Default=YES State=UP
"""

MUNGE = """
chmod 400 /etc/munge/munge.key
mkdir -p -m 755 /run/munge /var/lib/munge
mkdir -p -m 700 /var/log/munge
munged --force
"""
SLURMD = """
ln -sf slurmd-wlm /usr/sbin/slurmd
ln -sf slurmstepd-wlm /usr/sbin/slurmstepd
mkdir -p /var/spool/slurmd
slurmd
"""
SLURMCTLD = """
ln -sf slurmctld-wlm /usr/sbin/slurmctld
mkdir -p /var/lib/slurm
slurmctld
"""
ACCOUNT = "echo 'slurm:x:{}:64030::/nonexistent:/usr/sbin/nologin' >>/etc/passwd\n"
SCRATCH = "mkdir /scratch\nmount -t tmpfs -o mode=1777,size=1m,nosuid,{} scratch /scratch\n"
GPUS = """
chmod 755 /usr/bin/nvidia-smi
mount -t tmpfs -o size=1m driver /proc/driver
cp -r /usr/share/gpus/driver/. /proc/driver
mount -t tmpfs -o size=1m devices /sys/bus/pci/devices
cp -r /usr/share/gpus/devices/. /sys/bus/pci/devices
"""
NVIDIA_SMI = """#!/bin/sh
case "$*" in
--query-gpu=index*) exec cat /usr/share/gpus/rows ;;
--query-gpu=persistence*) exec cat /usr/share/gpus/settings ;;
--query-compute-apps=*) exec cat /usr/share/gpus/apps ;;
'-q -x') exec cat /usr/share/gpus/xml ;;
'nvlink -s') exec cat /usr/share/gpus/nvlink ;;
esac
exit 2
"""
ODD = """
prlimit --nofile=512:1000 --pid "$(cat /run/sshd.pid)"
echo 1 >/run/swappiness
mount --bind /run/swappiness /proc/sys/vm/swappiness
"""


def specs(peers: int) -> list[Spec]:
    """A controller; node01, node02, … that are in, and one more that is as they are; and "odd"."""
    names = [f"node{number:02}" for number in range(1, peers + 2)]
    lines = [
        f"NodeName={name} NodeAddr={address(FIRST + place)} CPUs=1 RealMemory=100"
        for place, name in enumerate([*names, "odd"], 1)
    ]
    conf = SLURM_CONF.format(control=CONTROL, nodes="\n".join(lines))
    return [
        _control(conf),
        *(_like_the_others(time_client(name), conf) for name in names),
        _odd(conf),
    ]


def _control(conf: str) -> Spec:
    spec = time_client(CONTROL)
    return replace(
        spec,
        layers=(*spec.layers, "slurm"),
        files={**spec.files, **_daemons(conf, KEY)},
        before=f"{spec.before}\n{MUNGE}{SLURMCTLD}",
    )


def _like_the_others(
    spec: Spec,
    conf: str,
    *,
    key: str = KEY,
    driver: str = DRIVER,
    number: int = 64030,
    scratch: str = "noatime",
    registers: bool = True,
) -> Spec:
    lines = [spec.before, ACCOUNT.format(number), SCRATCH.format(scratch), GPUS, MUNGE, SLURMD]
    idle = f"until scontrol -o show node {spec.name} | grep -q State=IDLE; do sleep 0.1; done"
    return replace(
        spec,
        layers=(*spec.layers, "slurm"),
        files={**spec.files, **_daemons(conf, key), **_gpus(driver)},
        before="\n".join(lines),
        settled=f"{spec.settled}\n{idle}" if registers else spec.settled,
    )


def _odd(conf: str) -> Spec:
    hosts = f"127.0.0.1 localhost\n{address(NOBODY)} node01.{DOMAIN} node01\n"
    spec = _like_the_others(
        time_client("odd", LATER),
        conf.replace("SlurmdTimeout=300", "SlurmdTimeout=30"),
        key=OTHER_KEY,
        driver=OTHER_DRIVER,
        number=1234,
        scratch="relatime",
        registers=False,
    )
    return replace(spec, after=ODD, data_mtu=1500, files={**spec.files, "etc/hosts": hosts})


def _daemons(conf: str, key: str) -> dict[str, str]:
    return {
        "etc/munge/munge.key": key,
        "etc/slurm/slurm.conf": conf,
        "etc/slurm/cgroup.conf": "CgroupPlugin=cgroup/v1\n",
    }


def _gpus(driver: str) -> dict[str, str]:
    """Two A100 of a node, with their driver."""
    version = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Sun May 12 19:39:15 UTC\n"
    rows = [
        "index, name, uuid, pci.bus_id, driver_version, compute_cap, memory.total [MiB],"
        " memory.used [MiB], utilization.gpu [%], temperature.gpu, pstate, mig.mode.current"
    ]
    one = (DATA / "gpu_health" / "gpu-a100.txt").read_text()
    xml = f'<?xml version="1.0" ?>\n<nvidia_smi_log>\n\t<driver_version>{driver}</driver_version>\n'
    files, links = {}, []
    for number in range(2):
        bus = f"00000000:{0x10 + number:02X}:00.0"
        short = bus.lower()[4:]
        rows.append(
            f"{number}, NVIDIA A100-SXM4-80GB, GPU-{number:08d}-aaaa, {bus}, {driver}, 8.0,"
            " 81920 MiB, 4 MiB, 0 %, 31, P0, Disabled"
        )
        xml += one.replace("00000000:10:00.0", bus)
        links.append(f"GPU {number}: NVIDIA A100-SXM4-80GB\n\t Link 0: 25 GB/s\n")
        files[f"driver/nvidia/gpus/{short}/information"] = (
            f"Model: \t\t NVIDIA A100-SXM4-80GB\nVideo BIOS: \t 92.00.45.00.03\n"
            f"Device Minor: \t {number}\n"
        )
        for name, text in (("class", "0x030200"), ("vendor", "0x10de"), ("device", "0x20b2")):
            files[f"devices/{short}/{name}"] = f"{text}\n"
    files |= {
        "driver/nvidia/version": version,
        "rows": "\n".join(rows) + "\n",
        "settings": "persistence_mode, power.limit [W]\nEnabled, 400.00 W\nEnabled, 400.00 W\n",
        "apps": "gpu_bus_id, gpu_uuid, pid, used_gpu_memory [MiB], process_name\n",
        "xml": f"{xml}</nvidia_smi_log>\n",
        "nvlink": "".join(links),
    }
    found = {f"usr/share/gpus/{name}": text for name, text in files.items()}
    return {**found, "usr/bin/nvidia-smi": NVIDIA_SMI}
