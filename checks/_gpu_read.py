"""From what nvidia-smi and the kernel say to GPUs, processes and versions.

Everything is found by the name of its field: columns by the header, elements by their tag.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from clustercheck.check import Facts

from ._gpu_table import gpu_rows, user_rows

# what nvidia-smi writes in place of a value: it has none, or the GPU gives none any more
NO_VALUE = re.compile(r"\[.*\]|N/A|")
BROKEN = re.compile(r"\[?(.*Unknown Error|.*is lost.*|.*requires (?:reset|restart).*|ERR!)\]?")
# of the table for people, whatever its layout: "Driver Version: 390.12", since 610 "KMD Version"
DRIVER = re.compile(r"\b(?:driver|kmd) version\s*:\s*([0-9][0-9.]{0,15})", re.IGNORECASE)
CUDA = re.compile(
    r"\bcuda (?:umd )?version\s*:\s*([0-9][0-9.]{0,15}|N/A|Not Found|ERR!)", re.IGNORECASE
)
DRIVER_ELEMENT = re.compile(r"<(?:driver|kmd)_version>([0-9][0-9.]{0,15})<")
CUDA_ELEMENT = re.compile(r"<cuda_(?:umd_)?version>([0-9][0-9.]{0,15}|N/A|Not Found|ERR!)<")
VERSION = re.compile(r"\b([0-9]{3}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)\b")


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver describes it.

    address: "3b:00.0" in whatever length and case it came. minor: N of /dev/nvidiaN.
    capability: compute capability, "8.0". total, used: memory in MiB; None where not reported.
    mig: it is cut into MIG devices. host_of: "Host VGPU" where virtual machines share it.
    broken: what stands in place of values when the GPU does not answer any more.
    denied: the login user may not see how much memory is in use.
    """

    index: str
    name: str = ""
    uuid: str = ""
    address: str = ""
    minor: str = ""
    driver: str = ""
    capability: str = ""
    total: int | None = None
    used: int | None = None
    mig: bool = False
    host_of: str = ""
    broken: str = ""
    denied: bool = False

    @property
    def title(self) -> str:
        """`GPU 2 (0000:3b:00.0)`."""
        return f"GPU {self.index}" + (f" ({self.address})" if self.address else "")


class User(NamedTuple):
    """A process that nvidia-smi lists: on which GPU, and with how much memory in MiB."""

    address: str
    uuid: str
    pid: str
    name: str
    used: int | None


class Process(NamedTuple):
    """What /proc says of a process; state is its letter there, or "gone".

    minors: the GPUs' device files that it has open. place: its control group, where that is a
    container's or a job's.
    """

    pid: str
    parent: str
    state: str
    threads: str
    user: str
    minors: frozenset[str]
    waits: str
    place: str
    parent_command: str
    command: str


class Versions(NamedTuple):
    """Of the driver: of the kernel module that is loaded, and of what programs are run with.

    flavour: of the kernel module, "open" or "proprietary". cuda: the most that it supports.
    libraries: of libnvidia-ml on the disk.
    """

    kernel: str
    flavour: str
    said: str
    cuda: str
    libraries: tuple[str, ...]

    @property
    def driver(self) -> str:
        """The one that counts: the loaded module's, or what nvidia-smi says of it."""
        return self.kernel or self.said


def short(address: str) -> str:
    """An address to compare by: nvidia-smi writes eight digits of the domain, sysfs four."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:].rjust(4, '0')}:{rest}"


def columns(text: str) -> list[str]:
    """The columns of what `--format=csv` prints, without their units; none of another text."""
    head = next(iter(_rows(text)), "")
    if not re.match(r"[a-z_.]+( \[\w+\])?(, |$)", head):
        return []
    return [name.partition(" [")[0].strip() for name in head.split(",")]


def cells(text: str) -> list[dict[str, str]]:
    """The rows of what `--format=csv` prints, by the name of the column."""
    names = columns(text)
    rows = []
    for line in _rows(text)[1:] if names else ():
        values = line.split(",", len(names) - 1)  # only the last may have commas in it
        if len(values) == len(names):
            rows.append(dict(zip(names, (value.strip() for value in values), strict=True)))
    return rows


def _rows(text: str) -> list[str]:
    """Its lines without the warnings that may stand anywhere, as of a damaged infoROM."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [line for line in lines if not line.upper().startswith("WARNING: ")]


def number(cell: str) -> int | None:
    """The whole number at the beginning of a cell ("81920 MiB"); None where there is none."""
    found = re.match(r"[0-9]{1,12}(?![0-9])", cell)
    return int(found.group()) if found else None


def value(cell: str) -> str:
    """A cell's text; "" for what nvidia-smi writes where it has no value."""
    return "" if NO_VALUE.fullmatch(cell) or BROKEN.fullmatch(cell) else cell


def gpus(facts: Facts) -> list[Gpu]:
    """The GPUs that nvidia-smi lists; one whose name is not told has its number all the same."""
    boards = {short(words[0]): words[1] for words in _boards(facts)}
    modes = _modes(facts.get("details", ""))
    found = []
    for place, row in enumerate(cells(facts["gpus"])):
        address = value(row.get("pci.bus_id", ""))
        capability = value(row.get("compute_cap", ""))
        found.append(
            Gpu(
                index=value(row.get("index", "")) or str(place),
                name=value(row.get("name", "")),
                uuid=value(row.get("uuid", "")),
                address=address,
                minor=boards.get(short(address), ""),
                driver=value(row.get("driver_version", "")),
                capability=capability if re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability) else "",
                total=number(row.get("memory.total", "")),
                used=number(row.get("memory.used", "")),
                mig=row.get("mig.mode.current") == "Enabled",
                host_of=modes.get(short(address), ""),
                broken=next((cell for cell in row.values() if BROKEN.fullmatch(cell)), ""),
                denied="Insufficient Permissions" in row.get("memory.used", ""),
            )
        )
    return found or _of_table(facts["gpus"])


def _of_table(table: str) -> list[Gpu]:
    return [
        Gpu(
            index=row.place,
            name=row.name,
            address=row.address,
            used=number(row.used),
            total=number(row.total),
            broken=row.broken,
        )
        for row in gpu_rows(table)
    ]


def _elements(details: str) -> list[str]:
    return [line for line in details.splitlines() if "<" in line]


def _modes(details: str) -> dict[str, str]:
    """The virtualisation mode of each GPU by address: "None", "Pass-Through", "Host VGPU", …"""
    found, address = {}, ""
    for line in _elements(details):
        if start := re.search(r'<gpu id="([^"]+)"', line):
            address = short(start[1])
        elif mode := re.match(r"\s*<virtualization_mode>([^<]{1,99})<", line):
            found[address] = mode[1]
    return found


def deprecated(facts: Facts) -> list[str]:
    """The columns that this nvidia-smi still knows and has no value for any more."""
    columns = [
        column
        for row in cells(facts["gpus"])
        for column, cell in row.items()
        if "deprecated" in cell and column != "driver_version"
    ]
    return list(dict.fromkeys(columns))


def attached(facts: Facts) -> int | None:
    """How many GPUs the driver says are attached; None where it does not."""
    found = re.search(r"<attached_gpus>([0-9]{1,6})<", facts.get("details", ""))
    return int(found[1]) if found else None


def users(facts: Facts) -> list[User]:
    """The processes that nvidia-smi lists: of the query for computing ones, then all others."""
    found: dict[tuple[str, str], User] = {}
    for row in cells(facts.get("apps", "")):
        address, uuid = row.get("gpu_bus_id", ""), row.get("gpu_uuid", "")
        used = number(row.get("used_gpu_memory", row.get("used_memory", "")))
        found[row.get("pid", ""), short(address)] = User(
            address, uuid, row.get("pid", ""), row.get("process_name", ""), used
        )
    addresses = {row.place: row.address for row in gpu_rows(facts["gpus"])}
    for of_table in user_rows(facts.get("apps", "")):
        address = addresses.get(of_table.place, "")
        found[of_table.pid, address] = User(
            address, "", of_table.pid, of_table.name, number(of_table.used)
        )
    address, fields = "", dict[str, str]()
    for line in _elements(facts.get("details", "")):
        if start := re.search(r'<gpu id="([^"]+)"', line):
            address = start[1]
        elif "<process_info>" in line:
            fields = {}
        elif part := re.match(r"\s*<(pid|process_name|used_memory)>(.*)</\1>", line):
            fields[part[1]] = part[2]
            if part[1] == "used_memory":
                pid, used = fields.get("pid", ""), number(part[2])
                before = found.get((pid, short(address)))
                # one that computes and draws may be told twice
                if before is None or (before.used or 0) < (used or 0):
                    name = fields.get("process_name", "")
                    found[pid, short(address)] = User(address, "", pid, name, used)
    return [user for user in found.values() if user.pid.isdigit()]


def processes(facts: Facts) -> dict[str, Process]:
    """The processes that were looked at in /proc, by id."""
    found = {}
    for line in facts["processes"].splitlines():
        words = line.split(" ", 9)
        if len(words) == 10 and words[0].isdigit():
            minors = frozenset(words[5].split(",")) - {"-"}
            pid, parent, state, threads, user, _, *rest = words
            waits, place, above, command = rest
            found[pid] = Process(
                pid, parent, state, threads, user, minors, waits, place, above, command
            )
    return found


def versions(facts: Facts) -> Versions:
    """The driver's versions, from wherever each can be had."""
    kernel = facts["kernel"]
    loaded = VERSION.search(kernel) or VERSION.search(facts["module"])
    flavour = "open" if "Open Kernel Module" in kernel else "proprietary"
    text = "\n".join([facts.get("banner", ""), facts.get("gpus", "")])
    details = facts.get("details", "")
    rows = [value(row.get("driver_version", "")) for row in cells(facts.get("gpus", ""))]
    elements = DRIVER_ELEMENT.findall(details)
    of_text = DRIVER.findall(text)
    said = [version for version in [*rows, *elements, *of_text] if VERSION.fullmatch(version)]
    cuda = [*CUDA_ELEMENT.findall(details), *CUDA.findall(text)]
    return Versions(
        kernel=loaded[1] if loaded else "",
        flavour=flavour if "Kernel Module" in kernel else "",
        said=said[0] if said else "",
        cuda=next((one for one in cuda if one[0].isdigit()), cuda[0] if cuda else ""),
        libraries=tuple(dict.fromkeys(facts.get("libraries", "").split())),
    )


def _boards(facts: Facts) -> list[list[str]]:
    """Address, minor number and model of each GPU that the kernel module drives."""
    lines = facts.get("boards", "").splitlines()
    return [words for words in (line.split(" ", 2) for line in lines) if len(words) == 3]


def models(facts: Facts) -> list[str]:
    """The models that the kernel module knows, also where nvidia-smi lists none."""
    return [words[2].strip() for words in _boards(facts) if words[2].strip() not in ("-", "")]
