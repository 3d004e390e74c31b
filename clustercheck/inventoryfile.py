"""The lines of an inventory file, before anybody asks what they mean.

configparser is not used: it gives no line numbers for its values, and cannot read the host lines
of Ansible (`gpu01 ansible_port=2222`), which are neither a name nor a name and one value.
"""

import ipaddress
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from clustercheck.errors import ConfigError, nearest
from clustercheck.nodeset import shorten

KINDS = ("hosts", "vars", "children")
OURS = ("check", "profile")  # what stands first in [check:NAME]
SWEEP = "sweep"  # [sweep], unless it names nodes: then it is a group
LARGEST = 64 * 2**20  # bytes; 100,000 nodes at 600 bytes each

_HEADER = re.compile(r"\[\s*([^\[\]:]*?)\s*(?::\s*([^\[\]]*?)\s*)?\](.*)")
_SETTING = re.compile(r"[\w.]+\s*=")
_GROUP_NAME = re.compile(r"\w[\w.+-]*")
_ADDRESS = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?(?=\s|$)")


class Line(NamedTuple):
    """A line that says something: what it is about ("" in vars), and its variables.

    number: counted from 1.
    head: a node set in hosts, a group in children, "" in vars and check.
    variables: (name, value) in order, quotes taken off.
    """

    number: int
    head: str
    variables: tuple[tuple[str, str], ...]


@dataclass
class Section:
    """`[name:kind]` and its lines. kind: hosts, vars, children, check, profile or sweep.

    The lines before any header are the section ("ungrouped", "hosts") with the title "".
    """

    number: int
    title: str
    name: str
    kind: str
    lines: list[Line] = field(default_factory=list)


def read(path: Path) -> tuple[list[Section], list[tuple[int, str]]]:
    """The sections of a file, and the faults in its syntax as (line number, text).

    Raises ConfigError where there is no text to read at all.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {_cannot(error)}") from None
    except ValueError:  # open() refuses a NUL in the path so
        raise ConfigError(f"{str(path)!r}: not a path; write -i and a file's path") from None
    if len(data) > LARGEST:
        raise ConfigError(f"{path}: larger than 64 MiB; this is not an inventory")
    lines, faults = _decode(data)
    if faults:
        return [], faults
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("#!"):
        raise ConfigError(f"{path}:1: a program; run it and write what it says as INI")
    if first.strip() in ("---", "{"):
        raise ConfigError(f"{path}:1: YAML or JSON; write an inventory as INI, [GROUP] and nodes")
    sections = [Section(0, "", "ungrouped", "hosts")]
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        try:
            if text[0] == "[" and not _is_address(text):
                sections.append(_header(number, text))
            else:
                if sections[-1].title == SWEEP and _SETTING.match(text):
                    sections[-1].kind = SWEEP
                sections[-1].lines.append(_line(number, text, sections[-1]))
        except ValueError as error:
            faults.append((number, str(error)))
    return sections, faults


def _cannot(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file; write -i and the inventory's path"
    if isinstance(error, IsADirectoryError):
        return "a directory; write -i and a file in it"
    return f"cannot be read: {error.strerror}"


def _decode(data: bytes) -> tuple[list[str], list[tuple[int, str]]]:
    """Lines ended by line feeds only: str.splitlines would count form feeds as well."""
    lines: list[str] = []
    faults: list[tuple[int, str]] = []
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            lines.append(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            where = f"byte {error.start + 1} of the line, 0x{raw[error.start]:02x},"
            faults.append((number, f"{where} is not UTF-8; save the file as UTF-8"))
            continue
        if "\0" in lines[-1]:
            faults.append((number, "holds a NUL byte; save the file as UTF-8 text"))
    # a program or an image: one fault says enough
    return lines, faults[:1] if b"\0" in data else faults


def _is_address(text: str) -> bool:
    """Whether a line begins with an IPv6 address in brackets and so is no header."""
    match = _ADDRESS.match(text)
    if not match:
        return False
    try:
        ipaddress.IPv6Address(match[1])
    except ValueError:
        return False
    return True


def _header(number: int, text: str) -> Section:
    match = _HEADER.fullmatch(text)
    if not match or (match[3].strip() and not re.match(r"\s+[#;]", match[3])):
        raise ValueError(f"{shorten(text)} is not a section; write [GROUP], alone on its line")
    name, kind = match[1], match[2]
    if kind is None:
        kind = "hosts"
    elif name in OURS and kind not in KINDS:
        name, kind = kind, name
    elif kind not in KINDS:
        hint = nearest(kind, KINDS) or f"; write [{name}:vars], [{name}:children] or [check:NAME]"
        raise ValueError(f"there is no section of the kind {kind!r}{hint}")
    if not _GROUP_NAME.fullmatch(name):
        raise ValueError(f"{shorten(name)} is not a name; write letters, digits and . - _ only")
    return Section(number, text[1 : text.index("]")], name, kind)


def _line(number: int, text: str, section: Section) -> Line:
    if section.kind in ("vars", SWEEP, *OURS):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or name.split() != [name]:
            raise ValueError(f"{shorten(text)} is not NAME = VALUE")
        return Line(number, "", ((_variable(name), _unquote(_uncomment(value))),))
    try:
        # shlex takes 100 µs a line: only where there is something for it to take off
        words = shlex.split(text, comments=True) if set(text) & set("\"'\\#") else text.split()
    except ValueError as error:
        reason = "a quote is not closed" if "quot" in str(error) else "a backslash ends the line"
        raise ValueError(f"{reason} in {shorten(text)}") from None
    if not words:
        raise ValueError(f"no node is named in {shorten(text)}")
    head, *rest = words
    if section.kind == "children":
        if rest:
            raise ValueError(f"{shorten(rest[0])} after a group; write one group a line")
        return Line(number, head, ())
    if rest[:1] == ["="] or "=" in head:
        variables = f"[{section.name}:vars]" if section.title else "[all:vars]"
        raise ValueError(
            f"{shorten(text)} names no node; write variables below {variables}, "
            "options of checks below [check:NAME]"
        )
    for word in rest:
        if "=" not in word[1:]:
            raise ValueError(f"{shorten(word)} after a node is not NAME=VALUE, without blanks")
    pairs = (word.split("=", 1) for word in rest)
    return Line(number, head, tuple((_variable(name), value) for name, value in pairs))


def _variable(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"{shorten(name)} is not the name of a variable")
    return name


def _uncomment(value: str) -> str:
    """Without the comment, which is a # at the start or after a blank, outside quotes."""
    if "#" not in value:
        return value
    quote = ""
    for place, char in enumerate(value):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and value.find(char, place + 1) > 0:
            quote = char
        elif char == "#" and (place == 0 or value[place - 1].isspace()):
            return value[:place].rstrip()
    return value


def _unquote(value: str) -> str:
    """Without the quotes around the whole of it; quotes inside belong to the value."""
    quoted = len(value) > 1 and value[0] in "\"'" and value.find(value[0], 1) == len(value) - 1
    return value[1:-1] if quoted else value
