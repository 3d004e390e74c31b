"""What the table says of a CUDA version, as a page to read without any node."""

import textwrap
from collections.abc import Iterator

from . import _gpu_cuda as cuda

WIDTH = 79
MODULES = {
    "proprietary": "proprietary module",
    "either, open recommended": "either module",
    "open required": "open module only",
}
BY_WAY = {
    "own": "by itself",
    "minor": "by minor-version compatibility",
    "forward": "with the package, on data-centre boards",
    "past": "with the package, on data-centre boards, while the branch lived",
    "maybe": "with the package perhaps, the table does not say",
    "no": "no",
}


def page(wanted: str) -> str:
    """All about a CUDA version ("12.4", "12.4.1").

    Raises ValueError, in words, for a version that is not in the table.
    """
    found = cuda.toolkits(wanted)
    if not found:
        raise ValueError(cuda.not_in_table(wanted))
    parts = [_drivers(found), _package(found[0]), _gpus(found), _branches(wanted), _sources(found)]
    head = f"CUDA {wanted}: {', '.join(toolkit.label for toolkit in found)}"
    return "\n\n".join([head, *("\n".join(part) for part in parts)]) + "\n"


def overview() -> str:
    """The versions of the table, each with its drivers and GPUs."""
    lines = ["CUDA   driver of its own   of its family   compute capability"]
    for version in cuda.known_versions():
        toolkit, last = cuda.toolkits(version)[0], cuda.toolkits(version)[-1]
        span = f"{cuda.capability_of(toolkit.lowest)} to {cuda.capability_of(last.highest)}"
        lines.append(f"{version:<7}{toolkit.own:<20}{toolkit.minor or '-':<16}{span}")
    lines += ["", "`clustercheck cuda 12.4` tells all about one of them."]
    return "\n".join(lines) + "\n"


def _drivers(found: list[cuda.Toolkit]) -> Iterator[str]:
    yield "Driver"
    for toolkit in found:
        yield f"  {toolkit.own} or newer runs {toolkit.label} by itself"
    first = found[0]
    if first.minor and cuda.number(first.minor) < cuda.number(first.own):
        yield f"  {first.minor} or newer runs it by minor-version compatibility:"
        yield from _prose(
            "code that a program ships as PTX alone fails there, and so do calls that the older"
            " driver does not have"
        )
    if first.package:
        yield "  an older one runs its programs with the package below, if at all"
    else:
        yield "  an older one runs none of its programs"


def _package(toolkit: cuda.Toolkit) -> Iterator[str]:
    if not toolkit.package:
        yield "Compatibility package\n  there is none for this version"
        return
    yield f"Compatibility package {toolkit.package}"
    yield from _prose(
        "brings a newer libcuda.so for older drivers. It works on data-centre boards and on some"
        " RTX boards, never on GeForce (error 804). It lies in /usr/local/cuda-*/compat, and only"
        " programs that are told to load it from there (LD_LIBRARY_PATH) use it."
    )


def _gpus(found: list[cuda.Toolkit]) -> Iterator[str]:
    last = found[-1]
    yield "GPUs"
    yield (
        f"  it makes machine code for compute capability {cuda.capability_of(last.lowest)} to"
        f" {cuda.capability_of(last.highest)}"
    )
    for row in cuda.table()["arch"]:
        lowest, highest = min(row["sm"]), max(row["sm"])
        span = cuda.capability_of(lowest)
        if highest != lowest:
            span += f" to {cuda.capability_of(highest)}"
        yield f"  {row['name']:<10}{span:<13}{_of_architecture(row, last)}"


def _of_architecture(row: dict[str, object], toolkit: cuda.Toolkit) -> str:
    sms = row["sm"]
    assert isinstance(sms, list)
    module = str(row["kernel_module"])
    until = f", up to driver {row['last_driver_branch']}" if row["last_driver_branch"] else ""
    if max(sms) < toolkit.lowest:
        last = cuda.last_version(max(sms))
        return f"no: the last is CUDA {last}{until}"
    first = str(row["first_toolkit"])
    if cuda.number(first) > cuda.number(toolkit.version):
        return f"only what brings PTX: code from CUDA {first} on"
    return f"yes{until}; {MODULES.get(module, module)}"


def _branches(wanted: str) -> Iterator[str]:
    """Branches with equal answers are told as one."""
    yield f"Driver branches, and whether they run CUDA {wanted}"
    spans: list[tuple[int, int, str]] = []
    for number in sorted(cuda.branches(), reverse=True):
        words = _of_branch(number, wanted)
        if spans and spans[-1][2] == words:
            spans[-1] = (number, spans[-1][1], words)
        else:
            spans.append((number, number, words))
    for first, last, words in spans:
        yield f"  {first if first == last else f'{first} to {last}':<12}{words}"
    ends = [
        f"{number} {row['end_of_life']}"
        for number, row in cuda.branches().items()
        if row["end_of_life"]
    ]
    yield from textwrap.wrap(
        f"their ends, as far as they are known: {', '.join(ends)}",
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
    )


def _of_branch(number: int, wanted: str) -> str:
    own = cuda.toolkits(wanted)[0].own
    if number == cuda.branch(own) and "." in own:
        return f"by itself from {own} on"
    # the newest of a branch: whatever its build is, it is above the family's floor
    return BY_WAY[cuda.way(f"{number}.999", wanted)]


def _sources(found: list[cuda.Toolkit]) -> Iterator[str]:
    """Where the table has these figures from."""
    table = cuda.table()
    versions = {toolkit.version for toolkit in found}
    rows = [row for row in table["toolkit"] if row["version"] in versions]
    rows += [*table["minor_family"], table["forward_matrix"], *table["forward_image"]]
    rows += [*table["arch"], table["open_module"], *table["branch"]]
    keys = dict.fromkeys(key for row in rows for key in row["source"].split(";"))
    yield f"Sources, as of {table['meta']['collected']}"
    for key in keys:
        yield from textwrap.wrap(
            table["sources"][key], WIDTH, initial_indent="  ", subsequent_indent="    "
        )


def _prose(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ")
