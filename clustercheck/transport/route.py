"""Where and how to connect for a node: what the inventory says, then what ssh_config says."""

import os
import re
import socket
import threading
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from clustercheck.known_hosts import lookup_name
from clustercheck.node import Node
from clustercheck.ssh_config import Options, SshConfig, expand, local_tokens, local_user
from clustercheck.transport import Unreachable
from clustercheck.transport.settings import SshSettings

SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
DEFAULT_KEYS = ("id_rsa", "id_ecdsa", "id_ed25519")
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
CONNECT_TIMEOUT = 10.0  # seconds
FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>.+)@)?(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:@]+))(?::(?P<port>\d+))?/?"
)


@dataclass(frozen=True)
class Route:
    """All that is needed to connect to one host.

    key_names: names under which known_hosts may have it; only the first may prove a change.
    known_hosts: accepted keys are written to the first.
    hash_names: as HashKnownHosts says.
    key: the one that the inventory names.
    identities: further keys to be tried; missing ones are no fault.
    agent: whether its keys are tried at all; identities_only leaves out those not named above.
    connect_timeout: seconds.
    jumps: hops as ssh's -J, all of them; the first is connected to first.
    proxy_command: "" where there is none.
    """

    host: str
    port: int
    user: str
    key_names: tuple[str, ...]
    known_hosts: tuple[Path, ...]
    hash_names: bool
    key: Path | None
    identities: tuple[Path, ...]
    identities_only: bool
    agent: bool
    connect_timeout: float
    family: socket.AddressFamily
    jumps: tuple[str, ...]
    proxy_command: str


class Router:
    """Makes routes. Thread-safe. Raises ConfigError when a configuration file cannot be read."""

    def __init__(self, settings: SshSettings) -> None:
        self._settings = settings
        self._home = Path.home()
        if settings.config is None:
            files: tuple[Path, ...] = (self._home / ".ssh/config", SYSTEM_CONFIG)
        else:
            files = tuple(Path(name).expanduser() for name in settings.config)
        self._config = SshConfig(files, self._home)
        self._here = local_tokens(self._home)
        self._lock = threading.Lock()
        self._hops: dict[str, Route] = {}

    def node(self, node: Node) -> Route:
        """The route to a node: as for `ssh HOST`, HOST being its host or else its name."""
        return self._route(
            node.host or node.name,
            node.port,
            node.user,
            _expanded(node.key) if node.key else None,
            node.jump,
        )

    def hop(self, hop: str, before: tuple[str, ...]) -> Route:
        """The route to a jump host, as for `ssh [USER@]HOST[:PORT]`, through those before it."""
        route = self._hop(hop, ())
        return replace(route, jumps=before, proxy_command="" if before else route.proxy_command)

    def _hop(self, hop: str, behind: tuple[str, ...]) -> Route:
        """behind: the hops that lead here by their own configuration."""
        if hop in behind:
            raise Unreachable("jump", f"the jump hosts lead in a circle: {' to '.join(behind)}")
        with self._lock:
            if hop in self._hops:
                return self._hops[hop]
        parts = _HOP.fullmatch(hop)
        port = int(parts["port"] or 0) if parts else 0
        if not parts or port > 65535:
            raise Unreachable("jump", f"the jump host {hop!r} should be [user@]host[:port]")
        host = parts["v6"] or parts["host"]
        route = self._route(host, port, parts["user"] or "", None, "", (*behind, hop))
        with self._lock:
            self._hops[hop] = route
        return route

    def _route(
        self,
        name: str,
        port: int,
        user: str,
        key: Path | None,
        jump: str,
        behind: tuple[str, ...] = (),
    ) -> Route:
        options = self._config.lookup(name, user)
        host = expand(_word(options, "hostname", name), {"h": name})
        port = port or int(_word(options, "port", "22"))
        user = user or _word(options, "user", "") or local_user()
        alias = _word(options, "hostkeyalias", "")
        tokens = {
            **self._here,
            "h": host,
            "n": name,
            "p": str(port),
            "r": user,
            "k": alias or name,
            "j": "",
        }
        jumps, command = _way(options, jump)
        hops = tuple(expand(hop.strip(), tokens) for hop in jumps)
        if hops and _same(hops[-1], name, host, port):
            hops = ()
        if hops:
            # The first may itself be reached through others only.
            hops = (*self._hop(hops[0], behind).jumps, *hops)
        if alias:
            key_names: tuple[str, ...] = (alias.lower(),)
        else:
            key_names = tuple(dict.fromkeys((lookup_name(host, port), host.lower())))
        return Route(
            host=host,
            port=port,
            user=user,
            key_names=key_names,
            known_hosts=self._known_hosts(options, tokens),
            hash_names=_word(options, "hashknownhosts", "no") == "yes",
            key=key,
            identities=self._identities(options, tokens, given=key is not None),
            identities_only=_word(options, "identitiesonly", "no") == "yes",
            agent=_word(options, "identityagent", "") != "none",
            connect_timeout=self._settings.connect_timeout or _timeout(options),
            family=FAMILIES.get(_word(options, "addressfamily", "any"), socket.AF_UNSPEC),
            jumps=hops,
            proxy_command=expand(command, tokens),
        )

    def _identities(
        self, options: Options, tokens: dict[str, str], given: bool
    ) -> tuple[Path, ...]:
        files = [f for f in options.get("identityfile", ()) if f != "none"]
        if "identityfile" not in options and not given:
            return tuple(_under(self._home, f"~/.ssh/{name}") for name in DEFAULT_KEYS)
        return tuple(self._path(file, tokens) for file in files)

    def _known_hosts(self, options: Options, tokens: dict[str, str]) -> tuple[Path, ...]:
        if self._settings.known_hosts is not None:
            return tuple(map(_expanded, self._settings.known_hosts))
        files = (
            *options.get("userknownhostsfile", USER_KNOWN_HOSTS),
            *options.get("globalknownhostsfile", GLOBAL_KNOWN_HOSTS),
        )
        return tuple(self._path(file, tokens) for file in files if file != "none")

    def _path(self, text: str, tokens: dict[str, str]) -> Path:
        if "%" not in text and "$" not in text:
            return _under(self._home, text)
        text = re.sub(r"\$\{(\w+)\}", lambda m: os.environ.get(m[1], ""), expand(text, tokens))
        return _under(self._home, text)


# One object for all nodes: a Path is taken apart again for each new one.


@cache
def _expanded(text: str) -> Path:
    return Path(text).expanduser()


@cache
def _under(home: Path, text: str) -> Path:
    path = Path(text)
    return home.joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def _word(options: Options, keyword: str, default: str) -> str:
    return options.get(keyword, (default,))[0]


def _timeout(options: Options) -> float:
    text = _word(options, "connecttimeout", "none")
    seconds = sum(
        int(n) * _UNITS[unit.lower()] for n, unit in re.findall(r"(\d+)([A-Za-z]?)", text)
    )
    return seconds or CONNECT_TIMEOUT


def _way(options: Options, jump: str) -> tuple[tuple[str, ...], str]:
    """The jump hosts or the ProxyCommand: the inventory's, else whichever comes first."""
    if jump:
        return (() if jump == "none" else tuple(jump.split(",")), "")
    for keyword in options:
        if keyword == "proxyjump":
            hops = _word(options, keyword, "none")
            return (() if hops == "none" else tuple(hops.split(",")), "")
        if keyword == "proxycommand":
            command = _word(options, keyword, "none")
            return ((), "" if command == "none" else command)
    return ((), "")


def _same(hop: str, name: str, host: str, port: int) -> bool:
    """Whether a jump host is the host itself: a `Host *` block with ProxyJump means the others."""
    parts = _HOP.fullmatch(hop)
    if not parts:
        return False
    return (parts["v6"] or parts["host"]) in (name, host) and int(parts["port"] or port) == port
