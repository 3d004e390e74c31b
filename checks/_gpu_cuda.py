"""Which driver and which GPU a CUDA version needs, by the table that comes with the package.

There are three ways: the driver's own CUDA version is as new; the driver is of the same major
family (minor-version compatibility); the compatibility package of the wanted version is installed,
which works on data-centre boards only (forward compatibility).
"""

import re
import sys
from functools import lru_cache
from importlib import resources
from typing import Any, Literal, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Read once, when the check is loaded: what is judged later needs no file.
TEXT = resources.files("clustercheck").joinpath("data/cuda_compat.toml").read_text(encoding="utf-8")

Number = tuple[int, ...]
Way = Literal["own", "minor", "forward", "past", "maybe", "no"]


class Toolkit(NamedTuple):
    """A CUDA toolkit: drivers that are new enough, and the GPUs it makes machine code for.

    own: the oldest driver whose own CUDA version is as new. minor: the oldest of its family.
    lowest, highest: compute capability times ten, 75 for 7.5. package: the compatibility package.
    """

    version: str
    label: str
    own: str
    minor: str
    lowest: int
    highest: int
    package: str


class Product(NamedTuple):
    """A GPU's name in the table, its compute capability and what class of board it is."""

    name: str
    capability: str
    kind: str


def number(version: str) -> Number:
    """Versions are compared field by field as numbers: 535.104.05 is newer than 535.86.09."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def branch(driver: str) -> int:
    """The branch of a driver: 535 for 535.183.01."""
    return number(driver)[0]


@lru_cache
def table() -> dict[str, Any]:
    """All of it; parsed when it is first asked for, which most nodes never need."""
    return tomllib.loads(TEXT)


@lru_cache
def all_toolkits() -> tuple[Toolkit, ...]:
    """Every toolkit, oldest first."""
    return tuple(
        Toolkit(
            version=row["version"],
            label=row["label"],
            own=row["min_driver_full"],
            minor=row["min_driver_minor_compat"],
            lowest=row["sm_min"],
            highest=row["sm_max"],
            package=row.get("compat_package", ""),
        )
        for row in table()["toolkit"]
    )


@lru_cache
def branches() -> dict[int, dict[str, Any]]:
    """What is known of a driver's branch, by its number."""
    return {row["branch"]: row for row in table()["branch"]}


def _plain(name: str) -> str:
    """A product's name without the words that come and go before it, in small letters."""
    return re.sub(r"^(?:(?:nvidia|tesla|quadro)\s+)+", "", name.strip().lower())


@lru_cache
def products() -> dict[str, Product]:
    """GPUs by their plain names."""
    rows = table()["gpu"]
    return {_plain(row["name"]): Product(row["name"], row["cc"], row["class"]) for row in rows}


def toolkits(wanted: str) -> list[Toolkit]:
    """The toolkits that a version means, oldest first: 12.4 and its updates, or 12.4.1 alone."""
    asked = number(wanted)
    return [toolkit for toolkit in all_toolkits() if number(toolkit.version)[: len(asked)] == asked]


def known_versions() -> list[str]:
    """The versions of the table without their updates, oldest first."""
    return list(dict.fromkeys(".".join(t.version.split(".")[:2]) for t in all_toolkits()))


def not_in_table(wanted: str) -> str:
    """Why there is no answer for a version."""
    known = known_versions()
    before = [version for version in known if number(version) < number(wanted)]
    after = [version for version in known if number(version) > number(wanted)]
    near = f"; before and after it come {before[-1]} and {after[0]}" if before and after else ""
    return f"CUDA {wanted} is not in the table, which goes from {known[0]} to {known[-1]}{near}"


def family_floor(wanted: str) -> str:
    """The oldest driver that runs anything of a version's major family; "" where not known."""
    families = table()["minor_family"]
    of_major = (f for f in families if f["cuda_major"] == number(wanted)[0])
    return next((str(family["min_driver"]) for family in of_major), "")


@lru_cache(maxsize=1000)  # GPUs are mostly of one kind
def product(name: str) -> Product | None:
    """The product whose name is the longest within a GPU's name; None for one not in the table."""
    plain = _plain(name)
    found = [
        key for key in products() if re.search(rf"(?<![a-z0-9]){re.escape(key)}(?![a-z0-9])", plain)
    ]
    return products()[max(found, key=len)] if found else None


def sm_of(capability: str) -> int:
    """80 for the compute capability 8.0."""
    major, minor = number(capability)
    return 10 * major + minor


def capability_of(sm: int) -> str:
    """8.0 for 80."""
    return f"{sm // 10}.{sm % 10}"


def architecture(sm: int) -> dict[str, Any] | None:
    """The table's row for the architecture of a compute capability; None for one it has not."""
    return next((row for row in table()["arch"] if sm in row["sm"]), None)


def first_version(sm: int) -> str:
    """The first CUDA version with machine code that runs on a GPU, "" where it is not known.

    Machine code runs on later minor capabilities of the same major one: that for 8.0 on 8.6, too.
    """
    rows = [row for row in table()["sm_range"] if row["sm"] // 10 == sm // 10 and row["sm"] <= sm]
    return min((row["first_toolkit"] for row in rows), key=number, default="")


def last_version(sm: int) -> str:
    """The last CUDA version that makes code for a GPU, "" where it is still going on."""
    fitting = [t for t in all_toolkits() if t.lowest <= sm]
    if not fitting or fitting[-1] == all_toolkits()[-1]:
        return ""
    return ".".join(fitting[-1].version.split(".")[:2])


def most_of(driver: str) -> str:
    """The newest CUDA version that a driver supports by itself, "" for a branch not in the table"""
    row = branches().get(branch(driver))
    return str(row["max_cuda"]) if row else ""


def takes_package(kind: str) -> bool | None:
    """Do boards of a class take compatibility packages? None where only some do."""
    return {"datacenter": True, "geforce": False}.get(kind)


def way(driver: str, wanted: str, kind: str = "datacenter") -> Way:
    """The way in which a driver can run a CUDA version that is in the table.

    kind: the class of the GPU's board ("" where it is not known).
    "forward", "past" and "maybe" need the compatibility package: "past" where the driver's branch
    has come to its end since, "maybe" where the table does not say.
    """
    toolkit = toolkits(wanted)[0]
    if number(driver) >= number(toolkit.own):
        return "own"
    if toolkit.minor and number(driver) >= number(toolkit.minor):
        return "minor"
    if not toolkit.package or takes_package(kind) is False:
        return "no"
    return _by_package(branch(driver), toolkit)


def _by_package(of_driver: int, toolkit: Toolkit) -> Way:
    matrix = table()["forward_matrix"]
    row = matrix["rows"].get(toolkit.package)
    if of_driver in matrix["driver_branches"]:
        if row is None:
            return "maybe"
        works = row[matrix["driver_branches"].index(of_driver)] == "C"
        return "forward" if works else "no"
    version = ".".join(toolkit.version.split(".")[:2])
    images = [image for image in table()["forward_image"] if image["toolkit"] == version]
    if any(of_driver in image["driver_branches"] for image in images):
        return "past"
    return "no" if images and "head of the list" not in images[0].get("note", "") else "maybe"


def open_module_fault(sm: int, flavour: str) -> str:
    """What is wrong with a kernel module's flavour for a GPU; "" where they go together."""
    row = architecture(sm)
    if row is None or not flavour:
        return ""
    if row["kernel_module"] == "open required" and flavour == "proprietary":
        return f"{row['name']} GPUs need the open kernel module, and the proprietary one is loaded"
    if row["kernel_module"] == "proprietary" and flavour == "open":
        return f"the open kernel module, which is loaded, does not drive {row['name']} GPUs"
    return ""
