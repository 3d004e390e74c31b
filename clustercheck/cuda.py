"""Answers from the table of CUDA versions, without any node.

The table and its rules are the check gpu's. It is got at as the registry gets at checks: by name.
"""

import importlib
import re

from clustercheck import registry
from clustercheck.errors import UsageError


def page(version: str) -> str:
    """All about a CUDA version ("12.4"); all versions for "". Raises UsageError for an unknown."""
    pages = importlib.import_module(f"{registry.GROUP}._gpu_page")
    if not version:
        return str(pages.overview())
    if not re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,4})?", version):
        raise UsageError(f"{version!r} is no CUDA version; give one such as 12.4")
    try:
        return str(pages.page(version))
    except ValueError as error:
        raise UsageError(f"{error}; `clustercheck cuda` lists them") from error
