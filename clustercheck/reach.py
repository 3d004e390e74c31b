"""Why a node gave no answer: the findings that belong to no check, each with its remedy.

They are shown as those of a check called `ssh`, so that an unreachable node is one finding.
"""

from clustercheck.check import Code

NAME = "ssh"

CODES: dict[str, Code] = {}
