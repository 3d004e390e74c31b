"""Does this node run the CUDA version that is wanted: its driver, and its GPUs?"""

import re
from collections.abc import Iterator

from clustercheck.check import Facts, Finding, fail, ok, unknown, warn

from . import _gpu_cuda as cuda
from ._gpu_read import Gpu
from ._gpu_remedies import NEWER_DRIVER, OTHER_CUDA, SET_VERSION

LIMITS = "code shipped as PTX alone and calls that are newer than the driver fail below"


def judge_cuda(facts: Facts, gpus: list[Gpu], driver: str, wanted: str) -> Iterator[Finding]:
    """Findings on driver and GPUs for a CUDA version such as 12.4; one for each kind of GPU."""
    if not cuda.toolkits(wanted):
        yield _not_in_table(driver, wanted)
        return
    kinds: dict[tuple[str, str], Gpu] = {(gpu.name, gpu.capability): gpu for gpu in gpus}
    said = set()
    for gpu in kinds.values():
        product = cuda.product(gpu.name)
        finding = _driver(facts, gpu.name, product.kind if product else "", driver, wanted)
        if finding.message not in said:
            yield finding
        said.add(finding.message)
        yield from _capability(gpu, product, wanted)


def _not_in_table(driver: str, wanted: str) -> Finding:
    """A version that came after the table: its major family tells which drivers are too old."""
    least = cuda.family_floor(wanted)
    if least and driver and cuda.number(driver) < cuda.number(least):
        message = f"driver {driver} is too old for any CUDA {cuda.number(wanted)[0]}, should be"
        return fail("cuda", f"{message} {least} or newer", NEWER_DRIVER)
    return unknown("cuda", cuda.not_in_table(wanted), SET_VERSION)


def _driver(facts: Facts, name: str, kind: str, driver: str, wanted: str) -> Finding:
    if not driver:
        return unknown("cuda", f"the driver's version is told by nobody, wanted is CUDA {wanted}")
    toolkit = cuda.toolkits(wanted)[0]
    way = cuda.way(driver, wanted, kind)
    if way == "own":
        return ok("cuda", f"driver {driver} runs CUDA {wanted} by itself ({toolkit.own} or newer)")
    if way == "minor":
        return ok(
            "cuda",
            f"driver {driver} runs CUDA {wanted} by minor-version compatibility ({toolkit.minor} or"
            f" newer); {LIMITS} {toolkit.own}",
        )
    least = min((v for v in (toolkit.own, toolkit.minor) if v), key=cuda.number)
    old = f"driver {driver} is too old for CUDA {wanted}, should be {least} or newer"
    if way == "no":
        why = ""
        if cuda.takes_package(kind) is False:
            why = f"; compatibility packages do not work on {name}"
        elif toolkit.package:
            why = f"; {toolkit.package} does not work with branch {cuda.branch(driver)}"
        return fail("cuda", old + why, NEWER_DRIVER)
    place = _installed(facts, toolkit)
    if not place:
        help = f"; {toolkit.package}, which may do instead, is not installed"
        return fail("cuda", old + help, NEWER_DRIVER)
    by = f"driver {driver} runs CUDA {wanted} by the package in {place}, for programs that load it"
    if way == "forward" and cuda.takes_package(kind):
        return ok("cuda", f"{by}; by itself it is too old ({least} or newer)")
    doubts = {
        "past": f"branch {cuda.branch(driver)} has come to its end since",
        "maybe": f"whether it works with branch {cuda.branch(driver)} is not in the table",
        "forward": f"whether {name or 'this GPU'} takes it is not in the table",
    }
    return warn("cuda", f"{by}; {doubts[way]}; should be {least} or newer", NEWER_DRIVER)


def _installed(facts: Facts, toolkit: cuda.Toolkit) -> str:
    """Where a compatibility package as new as the toolkit is installed; "" where none is."""
    for path in facts.get("compat", "").splitlines():
        library = re.search(r"\.so\.([0-9.]+)$", path)
        if library and cuda.number(library[1]) >= cuda.number(toolkit.own):
            return path.rpartition("/")[0]
    return ""


def _capability(gpu: Gpu, product: cuda.Product | None, wanted: str) -> Iterator[Finding]:
    name = gpu.name or gpu.title
    capability = gpu.capability or (product.capability if product else "")
    if not capability:
        message = f"{name}: its compute capability is told by nobody, and it is not in the table"
        yield unknown("capability", message)
        return
    sm = cuda.sm_of(capability)
    has = f"{name} has compute capability {capability}"
    toolkit = cuda.toolkits(wanted)[-1]
    first = cuda.first_version(sm)
    if sm < toolkit.lowest:
        lowest, last = cuda.capability_of(toolkit.lowest), cuda.last_version(sm)
        until = f", the last for it is {last}" if last else ""
        message = f"{has}, CUDA {wanted} begins at {lowest}{until}"
        yield fail("capability", message, OTHER_CUDA)
    elif not first:
        yield unknown("capability", f"{has}, which is not in the table")
    elif cuda.number(first) > cuda.number(toolkit.version):
        message = f"{has}, for which CUDA {wanted} makes no code: it should be {first} or newer;"
        yield warn("capability", f"{message} only programs that bring PTX run", OTHER_CUDA)
    else:
        yield ok("capability", f"{has}, CUDA {wanted} makes code for it")
