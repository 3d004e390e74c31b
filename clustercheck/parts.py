"""What can be set that is no check, below `[sweep]`: the sweep itself, and `mail.…`, its mail."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge, Le

from clustercheck import mail_options
from clustercheck.check import option


@dataclass(frozen=True)
class SweepOptions:
    cluster: str = option("", "the cluster's name in mails and files; empty: the inventory's name")
    keep: Annotated[int, Ge(1), Le(3650)] = option(
        90, "for how long sweeps are kept in the history", unit="days"
    )
    page: str = option("", "file that the HTML page of each sweep is written to; empty: none")


@dataclass(frozen=True)
class Part:
    """A part of the product with options, as a check has them.

    of_groups: those options that may also be set for a group or a node.
    """

    title: str
    options: Any
    of_groups: tuple[str, ...] = ()

    def option_fields(self) -> tuple[dataclasses.Field[Any], ...]:
        """The options in the order in which they are declared."""
        return dataclasses.fields(self.options)


SWEEP = "sweep"  # the section, and the part that its plain names belong to

PARTS = {
    SWEEP: Part("the sweep that a timer starts each night", SweepOptions()),
    "mail": Part("the mail of a sweep", mail_options.Options(), ("to", "when")),
}
