"""The options of a check, from text to their types and back.

A check declares its options as a frozen dataclass. A field is a float, an int, a bool, a str, a
Literal of words, a tuple of these, or one of these or None; pydantic's constraints in `Annotated`
are kept to, and so is a `Rule`.
"""

import dataclasses
import math
import re
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Gt, Le

from clustercheck.check import Check
from clustercheck.errors import nearest
from clustercheck.nodeset import shorten

if TYPE_CHECKING:
    from pydantic import TypeAdapter

WORDS = {
    **dict.fromkeys(("yes", "true", "on", "1"), True),
    **dict.fromkeys(("no", "false", "off", "0"), False),
}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class Settable(Protocol):
    """What has options: a check, or a part of the product such as the mail."""

    @property
    def options(self) -> Any:
        """An instance of a frozen dataclass, with the defaults."""

    def option_fields(self) -> tuple[dataclasses.Field[Any], ...]:
        """Its fields."""


class Rule(NamedTuple):
    """In `Annotated`: what a value must be beside its type.

    check: raises ValueError with what is wrong and what to write instead.
    """

    check: Callable[[Any], object]


def unknown_option(check_name: str, check: Settable, option: str) -> str | None:
    """What is wrong with the name of an option, with the nearest right one; None if it is known."""
    names = [field.name for field in check.option_fields()]
    if option in names:
        return None
    what = f"check {check_name}" if isinstance(check, Check) else check_name
    if not names:
        return f"{what} has no options, so not {option!r} either"
    hint = nearest(option, names) or f"; its options are {', '.join(names)}"
    return f"{what} has no option {option!r}{hint}"


def parse(check: Settable, option: str, text: str) -> object:
    """The value of one option. Raises ValueError with what is wrong and what to write instead."""
    (field,) = (field for field in check.option_fields() if field.name == option)
    declared: object = type(check.options)
    kind = _kinds(declared)[option]
    example = as_text(getattr(check.options, option) or "")
    value = _convert(kind, text.strip(), field.metadata.get("unit", ""), example)
    if _certainly_fits(kind, value):
        return value
    from pydantic import ValidationError  # not at the top: it takes longer to load than all else

    try:
        return _adapter(declared, option).validate_python(value)
    except ValidationError as error:
        reason = str(error.errors()[0]["msg"]).removeprefix("Input ")
        raise ValueError(f"{shorten(text)} {reason}{_such_as(example)}") from None


def instance(check: Settable, texts: Mapping[str, str]) -> Any:
    """The check's options with the values of `texts` in place of its own.

    Raises ValueError where a value, or the values together (`__post_init__`), cannot be.
    """
    if not texts:
        return check.options
    values = {name: parse(check, name, text) for name, text in texts.items()}
    return dataclasses.replace(check.options, **values)


def as_text(value: object) -> str:
    """A value as it would be written in an inventory; `parse` makes the same value of it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, tuple):
        return ", ".join(as_text(one) for one in value)
    return str(value)


@cache
def _kinds(options: object) -> dict[str, Any]:
    return get_type_hints(options, include_extras=True)


@cache
def _adapter(options: object, option: str) -> "TypeAdapter[object]":
    from pydantic import TypeAdapter

    return TypeAdapter(_kinds(options)[option])


def _convert(kind: Any, text: str, unit: str, example: str) -> object:
    """Text to what pydantic then validates; the words for wrong text are ours, not pydantic's."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        value = _convert(inner[0], text, unit, example)
        for rule in inner[1:]:
            if isinstance(rule, Rule):
                rule.check(value)
        return value
    if origin in (Union, types.UnionType):
        if text.lower() == "none" or not text:
            return None
        return _convert(next(one for one in inner if one is not type(None)), text, unit, example)
    if origin is tuple:
        parts = [part.strip() for part in text.split(",")] if text else []
        if not all(parts):
            raise ValueError(f"{shorten(text)} has an empty place between commas")
        if inner[-1:] == (Ellipsis,):
            inner = inner[:1] * len(parts)
        elif len(parts) != len(inner):
            raise ValueError(
                f"{shorten(text)} is not {len(inner)} values with commas between; "
                f"write such as {example}"
            )
        return tuple(
            _convert(of, part, unit, example) for of, part in zip(inner, parts, strict=True)
        )
    if origin is Literal:
        if text not in inner:
            hint = nearest(text, inner)
            raise ValueError(f"{shorten(text)} is not one of {', '.join(inner)}{hint}")
        return text
    if kind is bool:
        if text.lower() not in WORDS:
            raise ValueError(f"{shorten(text)} is neither yes nor no; write yes or no")
        return WORDS[text.lower()]
    if kind in (int, float):
        return _number(kind, text, unit, example)
    return text


def _certainly_fits(kind: Any, value: object) -> bool:
    """Whether a value of `_convert` keeps to constraints that are plain; pydantic tells of others,
    and has the words for what is wrong."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        number: Any = value if isinstance(value, (int, float)) else math.nan  # keeps to no rule
        return _certainly_fits(inner[0], value) and all(
            (type(rule) is Ge and number >= rule.ge)
            or (type(rule) is Gt and number > rule.gt)
            or (type(rule) is Le and number <= rule.le)
            for rule in inner[1:]
        )
    if origin in (Union, types.UnionType):
        return value is None or any(_certainly_fits(one, value) for one in inner)
    if origin is tuple and isinstance(value, tuple):
        kinds = inner[:1] * len(value) if inner[-1:] == (Ellipsis,) else inner
        return all(map(_certainly_fits, kinds, value))
    return origin is Literal or type(value) is kind


def _number(kind: type, text: str, unit: str, example: str) -> float:
    """A number; its own unit, or a percent sign, may follow it."""
    bare = text.removesuffix(unit or "%").rstrip()
    of_unit = f" of {unit}" if unit else ""
    if kind is int:
        if not _WHOLE.fullmatch(bare):
            raise ValueError(f"{shorten(text)} is not a whole number{of_unit}{_such_as(example)}")
        return int(bare)
    if not _NUMBER.fullmatch(bare) or not math.isfinite(float(bare)):
        raise ValueError(f"{shorten(text)} is not a number{of_unit}{_such_as(example)}")
    return float(bare)


def _such_as(example: str) -> str:
    return f"; write one such as {example}" if example else ""
