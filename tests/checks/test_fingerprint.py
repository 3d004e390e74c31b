"""The check fingerprint: what a node tells of itself."""

import importlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from clustercheck.check import Facts
from tests.fingerprint_facts import TOLD, compared, node
from tests.made_up import MadeUpNode, judged
from tests.shells import SHELLS

DATA = Path(__file__).resolve().parent.parent / "data" / "gpu"  # its README has the sources
CPUINFO = "".join(
    f"processor\t: {n}\nmodel name\t: AMD EPYC 7543 32-Core Processor\nmicrocode\t: 0xa0011d1\n"
    f"physical id\t: {n % 2}\ncore id\t\t: {n // 4}\n\n"
    for n in range(8)
)
NVIDIA = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n"
    "GCC version:  gcc version 12.2.0\n"
)
INFORMATION = "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 0\nVideo BIOS: \t 92.00.45.00.03\n"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max stack size            8388608              unlimited            bytes     \n"
    "Max core file size        0                    unlimited            bytes     \n"
    "Max open files            1024                 524288               files     \n"
    "Max locked memory         unlimited            unlimited            bytes     \n"
)
MOUNTS = (
    "/dev/sda1 / ext4 rw,relatime 0 0\n"
    "nfs:/home /home nfs4 rw,noatime,vers=4.2,rsize=1048576,hard,clientaddr=10.0.0.7,addr=10.0.0.1"
    " 0 0\n"
    "10.0.0.5@o2ib:/fs /scratch lustre rw,flock 0 0\n"
    "/dev/nvme0n1p1 /local xfs ro,noatime,attr2,inode64,logbufs=8,sunit=256,prjquota 0 0\n"
    "tmpfs /run/user/0 tmpfs rw,nosuid,nodev,relatime,size=26389840k,mode=700 0 0\n"
    "/dev/sda1 /var/lib/docker/plugins ext4 rw,relatime 0 0\n"
)
FILES = {
    "/etc/os-release": 'NAME="Rocky Linux"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\n',
    "/proc/sys/kernel/osrelease": "5.14.0-427.el9.x86_64\n",
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Wed May 1\n",
    "/proc/sys/kernel/hostname": "node07\n",
    "/proc/cmdline": "BOOT_IMAGE=(hd0)/vmlinuz root=UUID=07 ro mitigations=off rd.lvm.lv=a/b\n",
    "/proc/cpuinfo": CPUINFO,
    "/proc/meminfo": "MemTotal: 527912345 kB\nSwapTotal: 0 kB\n",
    "/proc/mounts": MOUNTS,
    "/proc/self/limits": LIMITS,
    "/proc/sys/vm/swappiness": "10\n",
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "/proc/driver/nvidia/version": NVIDIA,
    "/proc/driver/nvidia/gpus/0000:07:00.0/information": INFORMATION,
    "/proc/driver/nvidia/gpus/0000:47:00.0/information": INFORMATION,
    "/sys/class/dmi/id/product_name": "PowerEdge XE8545\n",
    "/sys/devices/system/cpu/smt/control": "on\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/sys/class/net/eth0/device/vendor": "0x15b3\n",
    "/sys/class/net/eth0/device/device": "0x101d\n",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512\n",
    "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
    "/sys/class/net/eth0/speed": "25000\n",
    "/sys/class/net/eth0/mtu": "9000\n",
    "/sys/bus/pci/devices/0000:07:00.0/class": "0x030200\n",
    "/sys/bus/pci/devices/0000:07:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:07:00.0/device": "0x20b2\n",
    "/etc/resolv.conf": "search cluster.example\nnameserver 10.0.0.53\nnameserver 10.0.0.54\n",
    "/etc/chrony.conf": "# ours\nserver 10.0.0.1 iburst\nmakestep 1 3\n",
    "/etc/hosts": "127.0.0.1 localhost\n10.0.0.7 node07.cluster.example node07\n10.0.0.1 nfs\n",
}

SUMS = ("file.hosts", "file.nsswitch.conf")


def fields_of(told: Mapping[str, str]) -> dict[str, str]:
    """As the check compares them."""
    module = importlib.import_module("clustercheck.checks._fingerprint_fields")
    return dict(module.fields(Facts(told)))


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_node_tells(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    for path, text in FILES.items():
        node.file(path, text)
    node.says("id", "alice\n")
    node.command(
        "getent",
        'case "$*" in "passwd slurm munge alice")'
        " echo 'slurm:x:450:450::/:/bin/false'; echo 'munge:x:991:990::/:/bin/false'"
        "; echo 'alice:x:2001:100::/home/alice:/bin/sh' ;; esac",
    )
    node.says("slurmd", "slurm 23.11.6\n")
    node.says("munge", "munge-0.5.15 (2022-06-22)\n")
    node.hide("getconf", "apptainer", "singularity", "podman", "docker", "enroot", "mpirun")
    found = fields_of(node.probe("fingerprint", shell=shell))
    sums = {name: found.pop(name, "") for name in SUMS}
    assert "".join(f"{name} {found[name]}\n" for name in sorted(found)) == TOLD
    assert len(sums["file.hosts"]) == 64 and sums["file.nsswitch.conf"] == ""


# The columns that are asked for, of GPUs as nvidia-smi has them.
HEAD = "persistence_mode, ecc.mode.current, mig.mode.current, power.limit [W], compute_mode\n"
A100 = "Enabled, Enabled, Disabled, 400.00 W, Default\n"


def settings_of(node: MadeUpNode, shell: str = "sh") -> dict[str, str]:
    """The fields that the option gpu_settings adds, and whether they were asked for."""
    node.file("/proc/driver/nvidia/version", NVIDIA)
    told = node.probe("fingerprint", shell=shell, gpu_settings=True)
    found = {n: v for n, v in fields_of(told).items() if n.startswith("gpu.")}
    del found["gpu.driver"]
    return {**found, "asked": told["gpu_settings"]}


@pytest.mark.parametrize("shell", SHELLS)
def test_how_gpus_are_set(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.says("nvidia-smi", HEAD + A100 * 7 + A100.replace("400", "300"))
    assert settings_of(node, shell) == {
        "gpu.persistence_mode": "Enabled",
        "gpu.ecc_mode": "Enabled",
        "gpu.mig_mode": "Disabled",
        "gpu.power_limit": "1 x 300.00 W | 7 x 400.00 W",
        "gpu.compute_mode": "Default",
        "asked": "asked",
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_an_old_driver_is_asked_for_what_it_knows(tmp_path: Path, shell: str) -> None:
    """As driver 470 refuses a field; GPUs before Ampere have no MIG, some boards no ECC."""
    node = MadeUpNode(tmp_path)
    node.command(
        "nvidia-smi",
        """case $1 in
        *mig.mode*) echo 'Field "mig.mode.current" is not a valid field to query.'; exit 2 ;;
        *) printf '%s\\n' 'persistence_mode, ecc.mode.current, power.limit [W], compute_mode' \\
            'Disabled, [N/A], 250.00 W, Default' 'Disabled, [N/A], 250.00 W, Default' ;;
        esac""",
    )
    assert settings_of(node, shell) == {
        "gpu.persistence_mode": "Disabled",
        "gpu.power_limit": "250.00 W",
        "gpu.compute_mode": "Default",
        "asked": "asked",
    }


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (
            "595-l40s-all-fields",
            {
                "gpu.persistence_mode": "Disabled",
                "gpu.ecc_mode": "Enabled",
                "gpu.power_limit": "350.00 W",
                "gpu.compute_mode": "Default",
                "asked": "asked",
            },
        ),
        ("mig-na", {"asked": "asked"}),  # none of the columns
        ("470-compute-cap-invalid", {"asked": "failed 2"}),
    ],
)
def test_samples_of_what_nvidia_smi_says(
    tmp_path: Path, sample: str, expected: dict[str, str]
) -> None:
    text = (DATA / f"csv-{sample}.txt").read_text()
    node = MadeUpNode(tmp_path)
    node.says("nvidia-smi", text, status=2 if "not a valid" in text else 0)
    assert settings_of(node) == expected


def test_a_gpu_that_must_be_reset_has_no_settings(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    lost = ", ".join(["[GPU requires reset]"] * 5)
    node.says("nvidia-smi", f"{HEAD}{A100}{lost}\n{A100}")
    assert settings_of(node)["gpu.ecc_mode"] == "Enabled"


@pytest.mark.parametrize("shell", SHELLS)
def test_an_nvidia_smi_that_hangs(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/proc/driver/nvidia/version", NVIDIA)
    node.command("nvidia-smi", "exec sleep 30")
    told = node.probe("fingerprint", shell=shell, gpu_settings=True)
    assert judged("fingerprint", told)[2:] == [
        "unknown settings: how the GPUs are set is not told: nvidia-smi gives no answer within 8 s"
    ]


def test_how_gpus_are_set_is_not_asked_for_in_a_run(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/proc/driver/nvidia/version", NVIDIA)
    node.command("nvidia-smi", f"touch {tmp_path}/asked")
    told = node.probe("fingerprint")
    assert not (tmp_path / "asked").exists()
    # a baseline of `admit` in an inventory is no false alarm
    assert judged("fingerprint", told, expect=("gpu.ecc_mode Enabled",))[2:] == [
        "skip settings: gpu.ecc_mode in `expect`: not asked for, as gpu_settings is off"
    ]


def with_settings(power: str = "400.00 W") -> dict[str, str]:
    told = node()
    lines = f"gpu.power_limit {power}\n"
    return {"fields": told["fields"] + lines, "gpu_settings": "asked"}


def test_gpus_that_are_set_otherwise() -> None:
    nodes = {f"n{place}": with_settings() for place in range(4)}
    nodes["n3"] = with_settings("300.00 W")
    nodes["n4"] = {**node(), "gpu_settings": "failed 124"}  # which is said of it already
    nodes["n5"] = {**node(), "gpu_settings": "not asked"}
    assert compared(nodes) == [
        "n3 warn uniform: gpu.power_limit is 300.00 W, and 400.00 W on 3 of 4 nodes of its kind"
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_gpus_of_amd(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/sys/module/amdgpu/version", "6.7.0\n")
    for number in range(4):
        address = f"0000:0{number}:00.0"
        node.file(f"/sys/bus/pci/drivers/amdgpu/{address}/vbios_version", "113-D65201-031\n")
        for name, value in (("class", "0x120000"), ("vendor", "0x1002"), ("device", "0x740f")):
            node.file(f"/sys/bus/pci/devices/{address}/{name}", f"{value}\n")
    found = fields_of(node.probe("fingerprint", shell=shell))
    assert {name: value for name, value in found.items() if name.startswith("gpu.")} == {
        "gpu.cards.1002:740f": "4",
        "gpu.driver": "6.7.0",
        "gpu.vbios": "113-D65201-031",
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_the_version_of_a_network_cards_driver(tmp_path: Path, shell: str) -> None:
    """Once, however many cards it has; the kernel's own have none."""
    node = MadeUpNode(tmp_path)
    for name, driver in (("eth0", "mlx5_core"), ("eth1", "mlx5_core"), ("eth2", "virtio_net")):
        folder = node.file(f"/sys/bus/pci/drivers/{driver}/bind").parent
        place = node.file(f"/sys/class/net/{name}/device/vendor", "0x15b3\n").parent
        (place / "driver").symlink_to(folder)
    node.file("/sys/bus/pci/drivers/mlx5_core/module/version", "24.10-2.1.8\n")
    told = node.probe("fingerprint", shell=shell)
    assert told["fields"].count("driver.") == 1
    assert fields_of(told)["driver.mlx5_core"] == "24.10-2.1.8"


ETHTOOL = "driver: ixgbe\nversion: 5.14.0\nfirmware-version: 0x80000d7e, 1.2839.0\nbus-info: x\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_firmware_of_network_cards(tmp_path: Path, shell: str) -> None:
    """Of cards that have it in no file; virtual functions, of which there may be many, are none."""
    node = MadeUpNode(tmp_path)
    for name, driver in (("eth0", "ixgbe"), ("eth1", "mlx5_core"), ("vf0", "ixgbevf")):
        device = f"/sys/class/net/{name}/device"
        node.file(f"{device}/vendor", "0x8086\n")
        node.file(f"{device}/device", "0x10fb\n")
        (node.root / device.lstrip("/") / "driver").symlink_to(f"/drivers/{driver}")
    node.file("/sys/class/net/eth1/device/infiniband/mlx5_0/x")
    node.file("/sys/class/infiniband/mlx5_0/fw_ver", "20.31.1014\n")
    node.file("/sys/class/net/vf0/device/physfn/x")
    node.command("ethtool", f"[ \"$*\" = '-i eth0' ] && printf '%s' '{ETHTOOL}'")
    found = fields_of(node.probe("fingerprint", shell=shell))
    assert {n: v for n, v in found.items() if n.startswith(("net.", "firmware.", "ib."))} == {
        "net.eth0": "ixgbe 8086:10fb",
        "net.eth1": "mlx5_core 8086:10fb",
        "net.vf0": "ixgbevf 8086:10fb",
        "firmware.eth0": "0x80000d7e, 1.2839.0",
        "ib.mlx5_0": "20.31.1014",
    }


@pytest.mark.parametrize("said", ["firmware-version: \nbus-info: x\n", "firmware-version: N/A\n"])
def test_a_card_that_tells_no_firmware(tmp_path: Path, said: str) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/sys/class/net/eth0/device/vendor", "0x1af4\n")
    node.says("ethtool", f"driver: virtio_net\n{said}")
    assert "firmware.eth0" not in fields_of(node.probe("fingerprint"))


@pytest.mark.parametrize("shell", SHELLS)
def test_name_servers_behind_systemd_resolved(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/etc/resolv.conf", "nameserver 127.0.0.53\n")
    node.file("/run/systemd/resolve/resolv.conf", "# own\nnameserver 10.0.0.53\nsearch x\n")
    found = fields_of(node.probe("fingerprint", shell=shell))
    assert found["resolv.nameserver"] == "127.0.0.53"
    assert found["resolv.upstream"] == "10.0.0.53"


@pytest.mark.parametrize("shell", SHELLS)
def test_hundreds_of_mounts_push_nothing_else_out(tmp_path: Path, shell: str) -> None:
    """An automounter's: with what goes before each line, all of it is below 16 KB."""
    node = MadeUpNode(tmp_path)
    lines = [f"nfs:/home/u{n} /home/u{n} nfs4 rw,noatime,vers=4.2,hard 0 0\n" for n in range(900)]
    node.file("/proc/mounts", "".join(lines))
    node.says("slurmd", "slurm 23.11.6\n")
    told = node.probe("fingerprint", shell=shell)
    found = fields_of(told)
    assert found["version.slurm"] == "slurm 23.11.6"
    assert {value for name, value in found.items() if name.startswith("mount.")} == {"nfs4 noatime"}
    assert 12_000 < len(told["fields"]) + 40 * told["fields"].count("\n") < 16_000
    assert judged("fingerprint", told)[0].endswith(
        "; mounts that did not fit into 16 KB are left out"
    )


def test_every_field_that_is_told_says_what_it_is() -> None:
    """A field without a line in KINDS may vary: none does by oversight."""
    module = importlib.import_module("clustercheck.checks._fingerprint_fields")
    told = [*(line.split(" ")[0] for line in TOLD.splitlines()), *SUMS, "firmware.eth0", "bios"]
    assert [name for name in told if module.kind_of(name) is None] == []
    assert module.kind_of("file.slurm/cgroup.conf").said_by == "slurm"
    assert module.kind_of("file.slurm/gres.conf").said_by == ""


def test_a_number_of_the_kernels_is_told_whole(tmp_path: Path) -> None:
    """dash reads byte by byte, and the kernel gives it the first digit of /proc/sys alone."""
    node = MadeUpNode(tmp_path)
    (node.root / "proc").mkdir()
    (node.root / "proc/sys").symlink_to("/proc/sys")
    expected = Path("/proc/sys/fs/aio-max-nr").read_text().strip()
    assert len(expected) > 1
    found = fields_of(node.probe("fingerprint", shell="dash"))
    assert found["sysctl.fs.aio-max-nr"] == expected


def test_the_line_of_its_own_name_in_hosts_counts_for_nothing(tmp_path: Path) -> None:
    sums = set()
    for name, more in (("node01", ""), ("node02", "# a remark\n"), ("node02", "10.0.0.9 old\n")):
        (tmp_path / f"{name}{len(more)}").mkdir()
        node = MadeUpNode(tmp_path / f"{name}{len(more)}")
        node.file("/proc/sys/kernel/hostname", f"{name}\n")
        node.file("/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}.x {name}\n{more}")
        sums.add(fields_of(node.probe("fingerprint"))["file.hosts"])
    assert len(sums) == 2
