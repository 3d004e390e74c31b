"""Why a node gave no answer: the findings that belong to no check, each with its remedy.

They are shown as those of a check called `access`, so that an unreachable node is one finding.
"""

from clustercheck.check import Code

NAME = "access"

CODES: dict[str, Code] = {}
