"""What OpenSSH's client configuration says about a host (ssh_config(5)), read once for all nodes.

The user's file comes before the system's, and the first value wins. `Include` and `Match` are
followed. A `Host` block without wildcards is found by name, so 10,000 nodes with a block each cost
one dictionary look-up a node.
"""

import getpass
import glob
import logging
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from clustercheck.errors import ConfigError

log = logging.getLogger(__name__)

Options = Mapping[str, tuple[str, ...]]
"""Arguments by keyword in small letters; those of IdentityFile are all that apply, in order."""

MAX_DEPTH = 16  # of Include in Include, as in OpenSSH
EXEC_LIMIT = 10  # seconds for the command of a "Match exec"

_WHOLE_LINE = {"proxycommand", "localcommand", "remotecommand", "knownhostscommand"}
_GATHERED = {"identityfile", "certificatefile"}
_HAVE_ARGUMENT = {"host", "originalhost", "user", "localuser", "exec"}
_CANNOT_TELL = {"localnetwork", "tagged", "command", "version", "sessiontype"}
_LINE = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.*?)\s*$")


def patterns_match(patterns: tuple[str, ...], text: str) -> bool:
    """Whether ssh's pattern list ("*.cluster", "!login*") matches the text."""
    matched = False
    for pattern in patterns:
        if pattern.startswith("!"):
            if _wildcard(pattern[1:]).fullmatch(text):
                return False
        elif not matched:
            matched = _wildcard(pattern).fullmatch(text) is not None
    return matched


@cache
def _wildcard(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(c) or re.escape(c) for c in pattern), re.DOTALL)


def expand(text: str, tokens: Mapping[str, str]) -> str:
    """The text with ssh's %-tokens ("%h") put in; a token that is not known stays as it is."""
    return re.sub(r"%(.)", lambda m: {"%": "%", **tokens}.get(m[1], m[0]), text)


@dataclass(frozen=True)
class _Criterion:
    kind: str  # "host", "originalhost", "user", "localuser", "exec", "all", "final", "never"
    patterns: tuple[str, ...]
    negated: bool = False


@dataclass
class _Block:
    """Settings that apply where every criterion holds."""

    criteria: tuple[_Criterion, ...]
    settings: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def names(self) -> tuple[str, ...]:
        """The only names that the block can apply to; () when it has to be tried on each."""
        for c in self.criteria:
            exact = not any(p.startswith("!") or "*" in p or "?" in p for p in c.patterns)
            if c.kind == "originalhost" and not c.negated and exact:
                return c.patterns
        return ()


class SshConfig:
    """The configuration files, parsed. Thread-safe.

    paths: files in the order in which they count; one that does not exist is passed over.
    home: what "~" and the relative paths of Include stand for.

    Raises ConfigError naming file and line where a file cannot be understood.
    """

    def __init__(self, paths: tuple[Path, ...], home: Path) -> None:
        self._home = home
        self._blocks: list[_Block] = []
        self._named: dict[str, list[int]] = {}
        self._unnamed: list[int] = []
        self._local_user = local_user()
        for path in paths:
            if path.exists():
                self._blocks += _Reader(home).read(path, ())
        for number, block in enumerate(self._blocks):
            names = block.names()
            for name in names:
                self._named.setdefault(name, []).append(number)
            if not names:
                self._unnamed.append(number)
        self._final = any(c.kind == "final" for b in self._blocks for c in b.criteria)

    def lookup(self, name: str, user: str = "") -> Options:
        """What applies to `ssh NAME`, or to `ssh -l USER NAME`."""
        numbers = sorted({*self._named.get(name, ()), *self._unnamed})
        blocks = [self._blocks[number] for number in numbers]
        found = self._collect(blocks, name, user, {}, final=False)
        if self._final:
            found = self._collect(blocks, name, user, found, final=True)
        return {keyword: tuple(arguments) for keyword, arguments in found.items()}

    def _collect(
        self,
        blocks: list[_Block],
        name: str,
        user: str,
        found: dict[str, list[str]],
        final: bool,
    ) -> dict[str, list[str]]:
        for block in blocks:
            if not all(self._holds(c, name, user, found, final) for c in block.criteria):
                continue
            for keyword, arguments in block.settings:
                if keyword in _GATHERED:
                    files = found.setdefault(keyword, [])
                    files += [a for a in arguments if a not in files]
                else:
                    found.setdefault(keyword, list(arguments))
        return found

    def _holds(
        self, c: _Criterion, name: str, user: str, found: dict[str, list[str]], final: bool
    ) -> bool:
        match c.kind:
            case "all":
                held = True
            case "final":
                held = final
            case "originalhost":
                held = patterns_match(c.patterns, name)
            case "host":
                host = expand(found.get("hostname", [name])[0], {"h": name})
                held = patterns_match(c.patterns, host)
            case "user":
                held = patterns_match(c.patterns, user or found.get("user", [self._local_user])[0])
            case "localuser":
                held = patterns_match(c.patterns, self._local_user)
            case "exec":
                tokens = self._tokens(name, user, found)
                held = _succeeds(expand(c.patterns[0], tokens))
            case _:
                return False
        return held != c.negated

    def _tokens(self, name: str, user: str, found: dict[str, list[str]]) -> dict[str, str]:
        return {
            "h": expand(found.get("hostname", [name])[0], {"h": name}),
            "n": name,
            "p": found.get("port", ["22"])[0],
            "r": user or found.get("user", [self._local_user])[0],
            **local_tokens(self._home),
        }


def local_user() -> str:
    """Who we are here; a number where the user has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the second since Python 3.13
        return str(os.getuid())


def local_tokens(home: Path) -> dict[str, str]:
    """The tokens that say where ssh runs: %u, %d, %i, %l and %L."""
    here = socket.gethostname()
    return {
        "u": local_user(),
        "d": str(home),
        "i": str(os.getuid()),
        "l": here,
        "L": here.split(".")[0],
    }


@cache
def _succeeds(command: str) -> bool:
    """Whether the command of a "Match exec" ends with 0. Asked once for each command."""
    shell = os.environ.get("SHELL", "/bin/sh")
    try:
        done = subprocess.run(
            [shell, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=EXEC_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("ssh configuration: Match exec does not hold: %s", error)
        return False
    return done.returncode == 0


class _Reader:
    """Turns a file, and those that it includes, into blocks."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._depth = 0

    def read(self, path: Path, outer: tuple[_Criterion, ...]) -> Iterator[_Block]:
        """The blocks of a file; all of them need the criteria `outer` as well."""
        try:
            lines = path.read_text(errors="surrogateescape").splitlines()
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
        block = _Block(outer)
        for number, line in enumerate(lines, 1):
            place = f"{path}:{number}"
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            parsed = _LINE.match(line)
            if not parsed or not parsed[2]:
                raise ConfigError(f"{place}: a keyword of ssh_config and its value should be here")
            keyword, rest = parsed[1].lower(), parsed[2]
            if keyword in _WHOLE_LINE:
                block.settings.append((keyword, (rest,)))
                continue
            arguments = _split(rest, place)
            if keyword == "host":
                yield block
                block = _Block((*outer, _Criterion("originalhost", arguments)))
            elif keyword == "match":
                yield block
                block = _Block((*outer, *_criteria(arguments, place)))
            elif keyword == "include":
                yield block
                for pattern in arguments:
                    yield from self._include(pattern, path, place, block.criteria)
                block = _Block(block.criteria)
            else:
                _check(keyword, arguments, place)
                block.settings.append((keyword, arguments))
        yield block

    def _include(
        self, pattern: str, path: Path, place: str, criteria: tuple[_Criterion, ...]
    ) -> Iterator[_Block]:
        if self._depth == MAX_DEPTH:
            raise ConfigError(f"{place}: files are included more than {MAX_DEPTH} deep")
        if pattern.startswith("~/"):
            pattern = str(self._home / pattern[2:])
        base = path.parent if path.is_relative_to("/etc/ssh") else self._home / ".ssh"
        self._depth += 1
        for name in sorted(glob.glob(str(base / pattern))):
            yield from self.read(Path(name), criteria)
        self._depth -= 1


def _check(keyword: str, arguments: tuple[str, ...], place: str) -> None:
    """Raise ConfigError for a value that could not be used later, where no line is known."""
    value = arguments[0]
    if keyword == "port" and not (value.isdecimal() and 0 < int(value) < 65536):
        raise ConfigError(f"{place}: Port is {value!r}, should be a number from 1 to 65535")
    if keyword == "connecttimeout" and not re.fullmatch(r"none|(\d+[smhdwSMHDW]?)+", value):
        raise ConfigError(f"{place}: ConnectTimeout is {value!r}, should be seconds")


def _split(rest: str, place: str) -> tuple[str, ...]:
    words = shlex.shlex(rest, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = "#"
    words.escape = ""
    try:
        arguments = tuple(words)
    except ValueError as error:
        raise ConfigError(f"{place}: a quotation mark is not closed") from error
    if not arguments:
        raise ConfigError(f"{place}: a value should be here, not only a comment")
    return arguments


def _criteria(arguments: tuple[str, ...], place: str) -> Iterator[_Criterion]:
    words = list(arguments)
    while words:
        word, equals, glued = words.pop(0).partition("=")
        kind = word.lower().removeprefix("!")
        negated = word.startswith("!")
        if kind in ("all", "final", "canonical"):
            # Host names are not made canonical here, so "canonical" never holds.
            yield _Criterion("never" if kind == "canonical" else kind, (), negated)
            continue
        if kind not in _HAVE_ARGUMENT | _CANNOT_TELL:
            raise ConfigError(f"{place}: Match does not know {word!r}")
        if not equals and not words:
            raise ConfigError(f"{place}: Match {word} needs a value")
        value = glued if equals else words.pop(0)
        if kind in _CANNOT_TELL:
            log.warning("%s: Match %s is not supported: the block is left out", place, kind)
            kind = "never"
        patterns = (value,) if kind == "exec" else tuple(value.split(","))
        yield _Criterion(kind, patterns, negated)
