"""What the daemon says: findings from its word, or from what there is where no daemon answers."""

import re
from collections.abc import Iterator, Sequence

from clustercheck.check import Facts, Finding, Quantity, fail, ok, unknown, warn

from ._ntp_clock import Clock, Limits, side, span
from ._ntp_remedy import (
    ASK_AS_ROOT,
    DISAGREE,
    FIND_OUT,
    INSTALL_TOOL,
    LOOK_ON_HOST,
    REAL_SOURCE,
    SOURCES,
    START,
    WRONG_SOURCE,
)
from ._ntp_timesyncd import service_is_active
from ._ntp_word import State, Word, first_line

_TROUBLES = (
    (State.FALSETICKER, "falseticker", DISAGREE, ("is a falseticker", "are falsetickers")),
    (State.VARIABLE, "variable", DISAGREE, ("is too variable", "are too variable")),
    (State.SILENT, "silent", SOURCES, ("does not answer", "do not answer")),
)


TOOLS = {"chronyd": "chronyc", "ntpd": "ntpq", "systemd-timesyncd": "timedatectl"}


def running(text: str) -> list[str]:
    """The daemons that set the clock, by their processes: "NAME COMMAND LINE" in each line."""
    found = []
    for line in text.splitlines():
        name, _, words = line.partition(" ")
        # the kernel keeps 15 characters of a name
        name = "systemd-timesyncd" if name == "systemd-timesyn" else name
        # phc2sys may only feed another daemon (ntpshm), or set the card's clock from the system's.
        feeds = "ntpshm" in words or re.search(r"-s ?CLOCK_REALTIME", words)
        if name in TOOLS or (name == "phc2sys" and not feeds):
            found.append(name)
    return list(dict.fromkeys(found))


def judge_word(
    word: Word,
    limits: Limits,
    *,
    kernel: bool | None,
    allow_own_clock: bool,
    clock: Clock | None,
) -> Iterator[Finding]:
    """kernel: whether its flag says that the clock is synchronised; None where not told.

    clock: what was measured; None where nothing was.
    """
    if not word.synchronised:
        yield _why_not(word)
        return
    if word.by_itself and not allow_own_clock:
        said = f"{word.daemon} is synchronised by name only: it follows the node's own clock"
        yield fail("name_only", said, REAL_SOURCE)
    elif word.by_itself:
        yield ok("own_clock", f"{word.daemon} serves the node's own clock, as is allowed")
    elif word.daemon == "systemd-timesyncd" and kernel is False:
        said = f"{word.server} answers, but the kernel says that the clock is not synchronised"
        yield fail("not_synchronised", said, SOURCES)
    else:
        yield _judge_offset(word, limits, clock)
    sources = word.sources or ()
    for state, code, remedy, verbs in _TROUBLES:
        names = [s.name for s in sources if s.state is state]
        if names:
            said = f"{len(names)} of {len(sources)} sources {verbs[len(names) > 1]}: "
            said += _listed(names)
            if len(names) == len(sources):
                said += "; the clock runs free"
            yield warn(code, said, remedy)


def _judge_offset(word: Word, limits: Limits, clock: Clock | None) -> Finding:
    said = f"{word.daemon} follows {word.server or 'an unnamed source'}"
    said += f" (stratum {word.stratum})" if word.stratum else ""
    if word.offset is None:
        return ok("synchronised", f"{said} and tells no offset")
    bound = word.bound or 0.0
    size = abs(word.offset)
    value = Quantity(word.offset, "s")
    if word.lasting and size - bound > limits.warn:
        make, limit = limits.severity(size - bound)
        said = f"{word.daemon} says that the clock is {side(word.offset)} {word.server}"
        said += f", should be within {limit:g} s"
        if clock and clock.known and abs(clock.offset) + clock.uncertainty <= limits.warn:
            said += f"; it is within {limits.warn:g} s of {clock.whom}, so {word.server} is wrong"
            return make("daemon_offset", said, WRONG_SOURCE, value=value)
        return make("daemon_offset", said, FIND_OUT, value=value)
    if not word.lasting and size - bound > limits.warn and not _is_settled(clock, limits):
        was = f"{word.daemon} found the clock {side(word.offset)} {word.server} at its last answer"
        was += f", should be within {limits.warn:g} s; whether it has set it since is not told"
        return warn("daemon_offset", was, FIND_OUT, value=value)
    total = size + bound if word.lasting else bound
    if total > limits.warn:
        said += f", but answers for no better than {span(total)}"
        return warn(
            "uncertain", f"{said}, should be {limits.warn:g} s or less", SOURCES, value=value
        )
    within = f", good to {span(total)}" if word.bound is not None else ""
    return ok("synchronised", f"{said}, {side(word.offset)} it{within}", value=value)


def _is_settled(clock: Clock | None, limits: Limits) -> bool:
    """Does the measurement say that the clock is right, or that it is off?"""
    if clock is None:
        return False
    right = clock.known and abs(clock.offset) + clock.uncertainty <= limits.warn
    return right or abs(clock.offset) - clock.uncertainty > limits.warn


def _why_not(word: Word) -> Finding:
    """The one cause for which a daemon is not synchronised."""
    said = f"{word.daemon} is not synchronised ({word.why})"
    if word.sources == ():
        return fail(
            "no_source",
            f"no source is configured, or none has an address; {said}",
            SOURCES,
        )
    sources = word.sources or ()
    names = [s.name for s in sources]
    states = {s.state for s in sources}
    if states == {State.SILENT}:
        silent = f"no source answers, of {len(names)}: {_listed(names)}"
        return fail("silent", f"{silent}; {said}", SOURCES)
    if State.FALSETICKER in states and not states & {State.SELECTED, State.GOOD}:
        wrong = _listed([s.name for s in sources if s.state is State.FALSETICKER])
        return fail("falseticker", f"the sources disagree: {wrong}; {said}", DISAGREE)
    if states == {State.VARIABLE}:
        variable = f"all sources are too variable: {_listed(names)}"
        return fail("variable", f"{variable}; {said}", DISAGREE)
    return fail("not_synchronised", said, SOURCES)


def judge_without_word(
    facts: Facts, kernel: bool | None, limits: Limits, *, require_daemon: bool
) -> Finding:
    """Where no daemon answered: PTP, one that is dumb, one out of sight, or none at all."""
    found = running(facts["running"])
    if found and found != ["phc2sys"]:
        return _dumb(facts, found[0], kernel)
    if "ptp4l" in facts["running"] or found:
        return _ptp(facts.get("pmc", ""), kernel, limits)
    if service_is_active(facts.get("timedatectl", "")) and kernel is not None:
        said = "a time service is active, and the kernel says that the clock is"
        return _by_kernel(said, kernel)
    if kernel and "container" in facts and not require_daemon:
        said = "the kernel says that the clock is synchronised; the container's host keeps it so"
        return ok("host_keeps", said)
    if kernel is None and "container" in facts and not require_daemon:
        said = "no time daemon runs in this container, and whether its host keeps the clock is"
        return unknown("no_answer", f"{said} not told", LOOK_ON_HOST)
    if facts["processes"] != "all" and not _no_service(facts.get("units", "")):
        said = "no time daemon answers, and not all processes can be seen"
        return unknown("no_answer", said, ASK_AS_ROOT)
    if kernel:
        said = "the kernel still says that the clock is synchronised, but no time daemon runs here"
        return warn("unkept", f"{said} to keep it so", START)
    for tool in ("chrony.tracking", "ntpq"):
        if re.search("timed out|no answer|[Nn]ot authori", facts.get(tool, "")):
            answer = first_line(facts[tool])
            said = f"no time daemon is seen here, yet something is there to be asked ({answer})"
            return unknown("no_answer", said, ASK_AS_ROOT)
    chrony = first_line(facts.get("chrony.tracking", ""))
    detail = f" (chronyc says: {chrony})" if chrony else ""
    said = f"no time daemon runs: neither chronyd{detail} nor ntpd nor systemd-timesyncd"
    return fail("no_daemon", said, START)


def _no_service(units: str) -> bool:
    """Does systemd say of each service that could keep the clock that it does not run?"""
    states = units.split()
    return len(states) >= 5 and set(states) <= {"inactive", "failed", "unknown"}


def _ptp(pmc: str, kernel: bool | None, limits: Limits) -> Finding:
    states = re.findall(r"portState\s+(\w+)", pmc)
    offset = re.search(r"offsetFromMaster\s+(-?[0-9]{1,18}(?:\.[0-9]+)?)", pmc)
    if "SLAVE" in states and offset:
        ahead = float(offset[1]) / 1e9
        said = f"ptp4l's clock is {side(ahead)} its master's"
        if abs(ahead) <= limits.warn:
            return ok("synchronised", said, value=Quantity(ahead, "s"))
        make, limit = limits.severity(abs(ahead))
        said += f", should be within {limit:g} s"
        return make("daemon_offset", said, FIND_OUT, value=Quantity(ahead, "s"))
    if states and not set(states) & {"SLAVE", "MASTER", "GRAND_MASTER"}:
        said = f"ptp4l's ports are {', '.join(states)}, one should be SLAVE"
        return fail("not_synchronised", said, SOURCES)
    if kernel:
        said = "PTP keeps the clock, and the kernel says that it is synchronised"
        return ok("synchronised", said)
    return unknown("no_answer", "PTP keeps the clock, and pmc does not tell how well", ASK_AS_ROOT)


def _dumb(facts: Facts, daemon: str, kernel: bool | None) -> Finding:
    if daemon == "ntpd" and facts.get("ntpd") == "busybox" and kernel is not None:
        said = "busybox's ntpd cannot be asked, and the kernel says that the clock is"
        return _by_kernel(said, kernel)
    if daemon == "systemd-timesyncd" and kernel is not None and "timesyncd" in facts:
        said = "systemd-timesyncd runs and tells no more; the kernel says that the clock is"
        return _by_kernel(said, kernel)
    tool = TOOLS[daemon]
    fact = {"chronyc": "chrony.tracking", "ntpq": "ntpq", "timedatectl": "timesyncd"}[tool]
    if fact in facts:
        said, remedy = first_line(facts[fact]) or f"{tool} says nothing", ASK_AS_ROOT
    elif facts.get("ntpd") == "busybox":
        said, remedy = "busybox's has no tool to ask it", INSTALL_TOOL
    else:
        said, remedy = f"{tool} is not installed", INSTALL_TOOL
    return unknown("no_answer", f"{daemon} runs, but does not answer ({said})", remedy)


def _by_kernel(said: str, kernel: bool) -> Finding:
    if kernel:
        return ok("synchronised", f"{said} synchronised")
    return fail("not_synchronised", f"{said} not synchronised", SOURCES)


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
