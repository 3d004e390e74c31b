"""What the page says of each node, and once of what most nodes say alike."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clustercheck.check import Finding, Remedy, Status
from clustercheck.render.html_changes import Marks
from clustercheck.render.html_trend import Trend
from clustercheck.report import TROUBLE, NodeResult, Report, each

# From so many nodes on, what most of them say in the same words stands once for all of them.
USUAL_FROM = 4

# A remedy that more of the nodes' parts would repeat is a link in them.
REPEATED = 100


@dataclass(frozen=True)
class Said:
    """A finding in a node's part.

    first: the first of its check, where the check's cell leads.
    step: the finding of the page where its remedy is; 0 where it is told here.
    word: what is new about it ("new", "for 3 nights").
    """

    status: Status
    name: str
    message: str
    column: int = 0
    first: bool = False
    remedy: Remedy | None = None
    step: int = 0
    word: str = ""
    trend: Trend | None = None


@dataclass(frozen=True)
class Part:
    """What the page says of one node. usual: checks that say what they do on most nodes."""

    place: int
    name: str
    status: Status
    names: str
    seconds: str
    trouble: tuple[Said, ...]
    well: tuple[Said, ...]
    usual: str


_Key = tuple[str, str, Status, str]
"""Check, code, status and message of a finding about no pair of nodes."""


class Parts:
    """The nodes' parts; what most nodes say in the same words stands once.

    step: where among the page's findings each remedy is told first.
    """

    def __init__(
        self,
        report: Report,
        checks: Sequence[str],
        places: Mapping[str, int],
        step: Mapping[Remedy, int],
        marks: Marks,
    ) -> None:
        self._marks = marks
        self._columns = {check: place for place, check in enumerate(checks)}
        self._places = places
        counts = Counter(
            _key(check, finding)
            for _, check, finding in each(report)
            if finding.status not in TROUBLE and not finding.peer
        )
        least = max(len(report.nodes) // 2 + 1, USUAL_FROM)
        self._usual = {key for key, count in counts.items() if count >= least}
        remedies = Counter(f.remedy for _, _, f in each(report) if f.remedy)
        self._step = {
            remedy: place for remedy, place in step.items() if remedies[remedy] > REPEATED
        }

    def usual_said(self) -> tuple[Said, ...]:
        """What most nodes say, in the order of the checks."""
        order = sorted(self._usual, key=lambda key: (self._columns[key[0]], key[1]))
        return tuple(
            Said(status, f"{check}.{code}", message) for check, code, status, message in order
        )

    def of(self, result: NodeResult) -> Part:
        """What is said of a node."""
        trouble: list[Said] = []
        well: list[Said] = []
        usual: dict[str, None] = {}
        for check, findings in result.findings.items():
            first = True
            for finding in sorted(findings, key=lambda f: f.status, reverse=True):
                key = _key(check, finding)
                line = self._marks.trend(result.node, check, finding)
                name = f"{check}.{finding.code}"
                said = Said(finding.status, name, _with_peer(finding), trend=line)
                if finding.status in TROUBLE:
                    trouble.append(
                        replace(
                            said,
                            column=self._columns[check],
                            first=first,
                            remedy=finding.remedy,
                            step=self._step.get(finding.remedy, 0) if finding.remedy else 0,
                            word=self._marks.word(result.node, check, finding),
                        )
                    )
                    first = False
                elif finding.peer or line or key not in self._usual:
                    well.append(said)
                else:
                    usual[check] = None
        trouble.sort(key=lambda said: said.status, reverse=True)
        return Part(
            place=self._places[result.node],
            name=result.node,
            status=result.status,
            names=", ".join(dict.fromkeys(said.name for said in trouble)),
            seconds=seconds_of(result.seconds),
            trouble=tuple(trouble),
            well=tuple(well),
            usual=", ".join(usual),
        )


def _key(check: str, finding: Finding) -> _Key:
    return check, finding.code, finding.status, finding.message


def _with_peer(finding: Finding) -> str:
    return f"{finding.message} (peer {finding.peer})" if finding.peer else finding.message


def seconds_of(number: float | None) -> str:
    """To a tenth; "" where it was never tried."""
    return "" if number is None else f"{number:.1f}"
