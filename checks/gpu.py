"""GPUs answer, are all there, run the CUDA version that is wanted, and their memory is free.

A driver that was updated under a running system answers nothing any more. One that is too old runs
most programs and fails the new ones. A GPU that has fallen off the bus is missed only when the job
that got it dies. And memory that a dead job has left behind makes the next one run out of it.

NVIDIA's GPUs are asked by nvidia-smi. Those of AMD and Intel are found and named, no more.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from clustercheck.check import Check, Code, Facts, Finding, fail, ok, option, skip, unknown, warn

from . import _gpu_cuda as cuda
from ._gpu_memory import judge_memory
from ._gpu_probe import PROBE
from ._gpu_read import Gpu, Versions, attached, deprecated, gpus, models, short, versions
from ._gpu_remedies import (
    END_PARENT,
    FIND_GPU,
    FIND_HOLDER,
    FLASH_IT,
    GET_LIBCUDA,
    GET_TOOL,
    GIVE_RIGHTS,
    LOAD_DRIVER,
    LOOK_AS_ROOT,
    NEWER_BRANCH,
    NEWER_DRIVER,
    OTHER_CUDA,
    RIGHT_MODEL,
    RIGHT_MODULE,
    SAME_VERSION,
    SEE_DEVICES,
    SEE_HANG,
    SEE_LOST,
    SEE_NVML,
    SEE_WHOSE,
    SET_VERSION,
)
from ._gpu_trouble import cards, is_loaded, lost, no_driver, nvidias, plural, trouble
from ._gpu_wanted import judge_cuda

INFOROM = re.compile(r"infoROM is corrupted at gpu ([0-9A-Fa-f:.]{7,20})", re.IGNORECASE)
MAKERS = {"1002": "AMD", "8086": "Intel"}


@dataclass(frozen=True)
class Options:
    count: Annotated[int, Ge(-1)] = option(
        -1,
        "how many GPUs there are; 0: none is wanted, -1: as many as the driver has on the PCI bus",
        unit="GPUs",
    )
    model: tuple[str, ...] = option(
        (), "words of which each GPU's name has at least one (A100, H100)"
    )
    require_cuda: str = option("", "CUDA version that the driver and the GPUs must run (12.4)")
    held_mib: Annotated[int, Ge(0)] = option(
        500, "memory that may be in use on a GPU without a process", unit="MiB"
    )
    answer_seconds: Annotated[int, Ge(1), Le(14)] = option(
        10, "how long nvidia-smi may take for one answer", unit="s"
    )
    warn_end_of_life: bool = option(
        False, "warn where the driver's branch has come to its end by the package's table"
    )

    def __post_init__(self) -> None:
        if self.require_cuda and not re.fullmatch(
            r"\d{1,3}\.\d{1,3}(\.\d{1,4})?", self.require_cuda
        ):
            raise ValueError(
                f"require_cuda is no version: {self.require_cuda!r}; write one such as 12.4"
            )


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    if "part" in facts:
        yield unknown("part", f"not all of its GPUs can be seen: {facts['part']}")
        return
    found = nvidias(facts)
    no_gpu = not found and not is_loaded(facts)
    if facts["tool"] == "absent":
        problem: Finding | None = _no_tool(facts, options)
    else:
        problem = trouble(facts, options.answer_seconds)
    # where the bus cannot be read, nvidia-smi alone tells that there should be a GPU
    unseen = facts["pci"] == "unreadable" and facts["tool"] != "absent"
    no_fault = ("tool",) if unseen else ("driver", "tool")
    if no_gpu and problem and problem.code in no_fault:
        yield _none(facts, options)
    elif problem and problem.code == "devices" and facts["container"] and options.count <= 0:
        yield skip("none", "no GPU was given to this container")
    elif options.count == 0:
        yield skip("none", f"{plural(len(found))} not looked at: none is wanted")
    elif problem:
        yield problem
    else:
        yield from _answered(facts, options)


def _none(facts: Facts, options: Options) -> Finding:
    """No GPU of NVIDIA's, nor its driver."""
    if facts["pci"] == "unreadable":
        return unknown("none", "the PCI bus cannot be read (/sys/bus)")
    if options.count > 0:
        return fail("count", f"no NVIDIA GPU, should be {options.count}", FIND_GPU)
    given = [card for card in cards(facts) if card.vendor == "10de"]
    if given:
        return skip("none", f"{plural(len(given))} given to virtual machines (vfio), not looked at")
    words = []
    for vendor, maker in MAKERS.items():
        own = [card for card in cards(facts) if card.vendor == vendor]
        if own:
            drivers = ", ".join(sorted({card.driver for card in own}))
            words.append(f"{plural(len(own), f'{maker} GPU')} (driver: {drivers})")
    if words:
        return skip("other", f"{' and '.join(words)}; only NVIDIA's are looked at")
    return skip("none", "no GPU")


def _no_tool(facts: Facts, options: Options) -> Finding:
    if not is_loaded(facts):
        return no_driver(facts)
    loaded = versions(facts).kernel or "of unknown version"
    known = models(facts)
    of = f" for {plural(len(known))} ({', '.join(dict.fromkeys(known))})" if known else ""
    message = f"driver {loaded} is loaded{of}, and there is no nvidia-smi to ask"
    if options.count > 0:
        return fail("tool", f"{message}; {plural(options.count)} wanted", GET_TOOL)
    return unknown("tool", message, GET_TOOL)


def _answered(facts: Facts, options: Options) -> Iterator[Finding]:
    found, of_driver = gpus(facts), versions(facts)
    if not found:
        line = " ".join(facts["gpus"].split())[:200]
        yield unknown("answer", f"nvidia-smi's answer cannot be read: {line or 'nothing'}")
        return
    yield from _driver(facts, of_driver, options)
    broken = [gpu for gpu in found if gpu.broken]
    if broken:
        yield lost(broken)
    yield from _inforom(facts, found)
    yield from _count(facts, found, options)
    yield from _model(found, options)
    yield from _module(found, of_driver)
    if options.require_cuda:
        yield from judge_cuda(facts, found, of_driver.driver, options.require_cuda)
    yield from judge_memory(facts, [gpu for gpu in found if not gpu.broken], options.held_mib)
    fields = [*facts["refused"].split(), *deprecated(facts)]
    if fields:
        yield skip("field", f"not told by this nvidia-smi: {', '.join(fields)}")


def _driver(facts: Facts, found: Versions, options: Options) -> Iterator[Finding]:
    if not found.driver:
        yield unknown("driver", "the driver's version is told by nobody")
        return
    if found.said and found.kernel and found.said != found.kernel:
        yield warn(
            "driver",
            f"the loaded kernel module is {found.kernel}, nvidia-smi says {found.said}; should be"
            " the same version",
            SAME_VERSION,
        )
        return
    flavour = f" ({found.flavour} kernel module)" if found.flavour else ""
    row = cuda.branches().get(cuda.branch(found.driver))
    most = found.cuda if found.cuda[:1].isdigit() else cuda.most_of(found.driver)
    up_to = f", CUDA up to {most}" if most else ""
    message = f"driver {found.driver}{flavour}{up_to}"
    ended = str(row["end_of_life"]) if row else ""
    if ended and ended < facts["month"]:
        message += f"; branch {cuda.branch(found.driver)} came to its end in {ended}"
        if options.warn_end_of_life:
            yield warn("driver", f"{message}, should be one that is kept up", NEWER_BRANCH)
            return
    yield ok("driver", message)
    if found.cuda in ("N/A", "Not Found", "ERR!"):
        finds = "cannot use" if found.cuda == "ERR!" else "finds no"
        message = f"nvidia-smi {finds} libcuda.so.1 (CUDA version: {found.cuda})"
        yield warn("libcuda", message, GET_LIBCUDA)


def _inforom(facts: Facts, found: list[Gpu]) -> Iterator[Finding]:
    """The store on the board in which its errors are kept, of which nvidia-smi warns."""
    damaged = {short(address) for address in INFOROM.findall(facts["gpus"])}
    titles = [gpu.title for gpu in found if short(gpu.address) in damaged]
    if damaged:
        named = ", ".join(titles or sorted(damaged))
        yield warn("inforom", f"the infoROM of {named} is damaged, should be whole", FLASH_IT)


def _count(facts: Facts, found: list[Gpu], options: Options) -> Iterator[Finding]:
    here = len(found)
    says = attached(facts)
    driven = [card for card in nvidias(facts) if card.driver == "nvidia"]
    apart = [card for card in nvidias(facts) if card.driver != "nvidia"]
    if options.count > 0:
        wanted, of = options.count, ""
    elif facts["container"] or not driven:
        wanted, of = here, ""  # a container sees the host's whole bus; some GPUs are on none
    else:
        wanted, of = len(driven), ", as many as the driver has on the PCI bus"
    if here != wanted:
        listed = {short(gpu.address) for gpu in found if gpu.address}
        away = [card.address for card in nvidias(facts) if short(card.address) not in listed]
        where = f"; without an answer: {', '.join(away)}" if away and listed else ""
        yield fail("count", f"{plural(here)}, should be {wanted}{of}{where}", FIND_GPU)
    elif says is not None and says != here:
        yield warn("count", f"{plural(here)} listed, and {says} attached as it says", FIND_GPU)
    else:
        kinds = ", ".join(dict.fromkeys(gpu.name or "of unknown name" for gpu in found))
        yield ok("count", f"{plural(here)}: {kinds}")
        if apart and options.count < 0 and not facts["container"]:
            where = ", ".join(f"{card.address} (driver: {card.driver})" for card in apart)
            yield warn("count", f"the driver does not have the NVIDIA GPU at {where}", FIND_GPU)


def _model(found: list[Gpu], options: Options) -> Iterator[Finding]:
    if not options.model:
        return
    wanted = " or ".join(options.model)
    words = [re.compile(rf"(?<!\w){re.escape(w)}(?!\w)", re.IGNORECASE) for w in options.model]
    nameless = [gpu for gpu in found if not gpu.name]
    others = [g for g in found if g.name and not any(word.search(g.name) for word in words)]
    if others:
        each = "; ".join(f"{gpu.title} is {gpu.name}" for gpu in others)
        yield fail("model", f"{each}; should be {wanted}", RIGHT_MODEL)
    elif nameless:
        yield unknown("model", f"{nameless[0].title} tells no name, should be {wanted}")
    else:
        yield ok("model", f"all are {wanted}")


def _module(found: list[Gpu], of_driver: Versions) -> Iterator[Finding]:
    faults: dict[str, Gpu] = {}
    for gpu in found:
        product = cuda.product(gpu.name)
        capability = gpu.capability or (product.capability if product else "")
        if capability:
            fault = cuda.open_module_fault(cuda.sm_of(capability), of_driver.flavour)
            faults.setdefault(fault, gpu)
    for fault, gpu in faults.items():
        if fault:
            yield fail("module", f"{gpu.name or gpu.title}: {fault}", RIGHT_MODULE)


def probe_here(options: Options) -> Mapping[str, str]:
    """The same facts by NVML in place of nvidia-smi."""
    from ._gpu_here import facts_here

    return facts_here(options.answer_seconds, options.held_mib)


CHECK = Check(
    title="GPUs: driver, number, CUDA version and memory in use",
    stale="use",
    options=Options(),
    judge=judge,
    codes={
        "none": Code("No GPU, or none that is wanted here."),
        "part": Code("Asked from within a job of Slurm that has not all GPUs of the node."),
        "other": Code("GPUs of another maker, which are not looked at."),
        "driver": Code(
            "The driver's version, and whether kernel module and libraries go together.",
            (SAME_VERSION, LOAD_DRIVER, SEE_NVML, GET_TOOL, NEWER_BRANCH),
        ),
        "libcuda": Code("The library that CUDA programs are run with.", (GET_LIBCUDA,)),
        "answer": Code(
            "Whether the driver answers at all, in time.", (SEE_HANG, GIVE_RIGHTS, SEE_DEVICES)
        ),
        "tool": Code("Whether nvidia-smi is there and can be run.", (GET_TOOL,)),
        "devices": Code("The driver is loaded and can use no GPU.", (SEE_DEVICES,)),
        "lost": Code("A GPU that does not answer any more, or must be reset.", (SEE_LOST,)),
        "inforom": Code(
            "The store on the board that keeps its errors and remapped rows.", (FLASH_IT,)
        ),
        "count": Code("How many GPUs there are.", (FIND_GPU,)),
        "model": Code("Whether they are of the model that is wanted.", (RIGHT_MODEL,)),
        "module": Code(
            "Whether the kernel module, open or proprietary, fits them.", (RIGHT_MODULE,)
        ),
        "cuda": Code(
            "Whether the driver runs the wanted CUDA version.", (NEWER_DRIVER, SET_VERSION)
        ),
        "capability": Code(
            "Whether the wanted CUDA version makes code for the GPUs.", (OTHER_CUDA,)
        ),
        "memory": Code("Memory in use without a process.", (FIND_HOLDER, LOOK_AS_ROOT)),
        "hidden": Code("Memory of processes that nvidia-smi does not list.", (SEE_WHOSE,)),
        "stuck": Code("Memory of processes that are dead, or wait for ever.", (END_PARENT,)),
        "field": Code("What this nvidia-smi does not know, or does not tell any more."),
    },
    probe=PROBE,
    probe_options=("held_mib", "answer_seconds"),
    root_adds="which other users' processes have a GPU open whose memory is in use",
    limit=60,
    probe_here=probe_here,
)
