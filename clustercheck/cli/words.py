"""Plain words of the command line, read without pydantic.

Typer reads each argument by pydantic, whose loading takes longer than all that `run` does before it
asks a node. What needs no check is read here; all else, and whatever is wrong, is typer's.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

_WHOLE = re.compile("[0-9]{1,9}")
_UNCLEAR = object()
# What typer would have to hold a value against; numbers have `min` and `max` here too.
_RULES = ("parser", "exists", "resolve_path", "writable", "allow_dash", "path_type", "clamp")


def quicken(command: Any) -> Any:
    """A command of typer's, or a group of them, that reads plain words in this way.

    Versions of typer that have no pydantic stay as they are.
    """
    for one in getattr(command, "commands", {}).values():
        quicken(one)
    command.get_params = partial(_parameters, command.get_params)
    return command


def _parameters(theirs: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    parameters = theirs(context)  # with --help, which is made here
    for parameter in parameters:
        read = getattr(parameter, "get_runtime_param", None)
        if read and not isinstance(read, _Words):
            parameter.get_runtime_param = _Words(read)
    return parameters


@dataclass(frozen=True)
class _Words:
    theirs: Callable[[], Any]

    def __call__(self) -> "_Words":
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        descriptor = param.type_descriptor
        plain = _plain(descriptor.annotation, value, descriptor.parameter_info)
        return self.theirs().coerce(value, param=param, ctx=ctx) if plain is _UNCLEAR else plain


def _plain(kind: Any, value: Any, rules: Any) -> Any:
    """The value as its kind, or _UNCLEAR."""
    if any(getattr(rules, name, None) for name in _RULES):
        return _UNCLEAR
    if kind == list[str]:
        return () if value is None else value
    if value is None or (kind is str and isinstance(value, str)):
        return value
    if kind is Path and (os.access(value, os.R_OK) or not os.path.exists(value)):
        return Path(value)
    if kind in (int, float) and (isinstance(value, int) or _WHOLE.fullmatch(str(value))):
        number = kind(value)
        low, high = rules.min, rules.max
        if (low is None or low <= number) and (high is None or number <= high):
            return number
    return _UNCLEAR
