"""What nodes told of their clocks, for the tests of the check ntp."""

from pathlib import Path

from tests.made_up import MadeUpNode

DATA = Path(__file__).resolve().parent / "data" / "ntp"

NOBODY = {"running": "", "processes": "all"}
NO_REFERENCE = {"here.error": "no reference is set, and this machine itself follows none"}
GOOD = {
    "running": "chronyd chronyd -F 2",
    "processes": "all",
    "chrony.tracking": "0A14000B,10.20.0.11,2,1796060521.36,0.000033676,0.000001772,"
    "0.000019939,0.737,0.028,1.343,0.000098005,0.000206379,2.0,Normal",
    "chrony.sources": "^,*,10.20.0.11,1,1,377,1,0.000002205,0.000003977,0.000247506",
}
FOLLOWS = (
    "pass synchronised: chronyd follows 10.20.0.11 (stratum 2), 0.000034 s behind it, "
    "good to 0.000289 s"
)
TIMESYNCD = {"running": "systemd-timesyn /usr/lib/systemd/systemd-timesyncd", "processes": "all"}
# What the collectors of the recorded cases took for granted.
POLICY = {"warn_offset": 0.05, "fail_offset": 0.1}


def recorded(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


def clock(offset: float, uncertainty: float) -> dict[str, str]:
    return {"clock.offset": repr(offset), "clock.uncertainty": repr(uncertainty)}


def here(offset: float, uncertainty: float) -> dict[str, str]:
    return {
        "here.offset": repr(offset),
        "here.uncertainty": repr(uncertainty),
        "here.server": "10.20.0.1",
    }


def with_tracking(**changed: str) -> dict[str, str]:
    """GOOD with cells of the csv changed, each called c and its place from 0."""
    cells = GOOD["chrony.tracking"].split(",")
    for place, value in changed.items():
        cells[int(place[1:])] = value
    return {**GOOD, "chrony.tracking": ",".join(cells)}


def runs(node: MadeUpNode, pid: int, comm: str, *words: str) -> None:
    node.file(f"/proc/{pid}/comm", comm + "\n")
    node.file(f"/proc/{pid}/cmdline", "\0".join([comm, *words]) + "\0")
