"""Whether the key that a host shows may be trusted."""

import logging
import threading
from pathlib import Path

from clustercheck.known_hosts import HostKey, KnownHosts, Trust, Verdict
from clustercheck.transport import Unreachable
from clustercheck.transport.route import Route
from clustercheck.transport.settings import SshSettings

log = logging.getLogger(__name__)


class AskFor(Exception):
    """The host showed a key of a kind that is not known for it: connect again, asking for these."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__(kinds)
        self.kinds = kinds


class HostKeys:
    """All known host keys of the run. Thread-safe."""

    def __init__(self, settings: SshSettings) -> None:
        self._accept_new = settings.host_keys == "accept-new"
        self._lock = threading.Lock()
        self._files: dict[tuple[Path, ...], KnownHosts] = {}

    def kinds(self, route: Route) -> tuple[str, ...]:
        """The kinds of key to be asked for first. Raises Unreachable as `check` does."""
        known = self._known(route.known_hosts)
        return tuple(dict.fromkeys(k for name in route.key_names for k in known.kinds(name)))

    def check(self, route: Route, key: HostKey, asked: tuple[str, ...]) -> None:
        """Return if the key may be trusted.

        asked: the kinds that were asked for first.

        Raises Unreachable (host_key_unknown, host_key_changed, host_key_revoked), or AskFor where
        another kind of key should be asked for.
        """
        known = self._known(route.known_hosts)
        name = route.key_names[0]
        verdict = known.judge(name, key)
        if verdict.trust is Trust.UNKNOWN:
            # As ssh: a line without the port will do, and does not speak against the key.
            others = [known.judge(other, key).trust for other in route.key_names[1:]]
            if Trust.KNOWN in others:
                return
        if verdict.trust is Trust.UNKNOWN and self._accept_new:
            verdict = self._accept(known, route, key)
        if verdict.trust is Trust.KNOWN:
            return
        # Hashed lines tell their kinds only now.
        another_kind = verdict.trust is Trust.CHANGED and key.kind not in verdict.kinds
        if another_kind and not set(verdict.kinds) <= set(asked):
            raise AskFor(verdict.kinds)
        raise _refusal(verdict, route, key)

    def _accept(self, known: KnownHosts, route: Route, key: HostKey) -> Verdict:
        name = route.key_names[0]
        try:
            verdict = known.accept(name, key, route.hash_names)
        except OSError as error:
            text = f"the key of {name} is new and {route.known_hosts[0]} cannot be written: {error}"
            raise Unreachable("host_key_unknown", text) from error
        if verdict.trust is Trust.KNOWN:
            log.info("%s: new host key %s accepted", name, key.fingerprint)
        return verdict

    def _known(self, paths: tuple[Path, ...]) -> KnownHosts:
        with self._lock:
            if paths not in self._files:
                try:
                    self._files[paths] = KnownHosts(paths)
                except OSError as error:
                    text = f"no host key can be checked: {error.filename}: {error.strerror}"
                    raise Unreachable("host_key_unknown", text) from error
            return self._files[paths]


def _refusal(verdict: Verdict, route: Route, key: HostKey) -> Unreachable:
    name = route.key_names[0]
    shown = f"{key.kind} {key.fingerprint}"
    places = ", ".join(verdict.places)
    if verdict.trust is Trust.REVOKED:
        return Unreachable("host_key_revoked", f"{name} showed {shown}, revoked by {places}")
    if verdict.trust is Trust.CHANGED:
        return Unreachable("host_key_changed", f"{name} showed {shown}, another key is in {places}")
    text = f"the host key of {name} is not known: {shown}"
    if verdict.authority:
        text += "; a @cert-authority line is for it, and host certificates are not supported"
    return Unreachable("host_key_unknown", text)
