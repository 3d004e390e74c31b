"""Logging in over a connection whose host key has been checked."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

import paramiko

from clustercheck.transport import ACCOUNT_CLOSED, Unreachable, check_flood
from clustercheck.transport.keys import AgentKey, Key, Keyring
from clustercheck.transport.password import TRIES, Password
from clustercheck.transport.route import Route
from clustercheck.transport.wire import Wire, listener

BY_PASSWORD = {"password", "keyboard-interactive"}


class _Answer(Enum):
    IN = "logged in"
    MORE = "right, and another proof is wanted as well"
    NO = "refused"
    NOT_OFFERED = "the server does not offer this way"


@dataclass
class Attempts:
    """What has been tried on one connection, for the user to read when all of it was refused."""

    transport: paramiko.Transport
    wire: Wire
    user: str
    tried: list[str] = field(default_factory=list)
    remark: str = ""

    def attempt(self, what: str, way: Callable[[], list[str]]) -> _Answer:
        """Try one proof. Raises Unreachable where the connection does not survive it."""
        if what:
            self.tried.append(what)
        # The wire ends all waits for the peer; an agent that does not answer is waited for here.
        self.transport.auth_timeout = max(self.wire.deadline - time.monotonic(), 0) + 0.2
        try:
            return _Answer.MORE if way() else _Answer.IN
        except paramiko.BadAuthenticationType:
            return _Answer.NOT_OFFERED
        except Exception as error:
            # Whatever ended paramiko's thread comes out here, also what garbage from the peer did.
            if not self.transport.is_active() or time.monotonic() >= self.wire.deadline:
                raise self._ended() from error
            if isinstance(error, paramiko.AuthenticationException):
                return _Answer.NO
            raise

    def _ended(self) -> Unreachable:
        try:
            check_flood(self.wire.step_bytes or 0)
        except Unreachable as flood:
            return flood
        if self.wire.expired or time.monotonic() >= self.wire.deadline:
            last = f", {self.tried[-1]} was being tried" if self.tried else ""
            text = f"the login of {self.user} did not come to an end in time{last}"
            return Unreachable("auth_timeout", text)
        banner = listener(self.transport).banner
        if ACCOUNT_CLOSED.search(banner):  # the key was right, so its name would mislead
            words = " ".join(banner.split())
            return Unreachable("account_closed", f"the node does not let {self.user} in: {words}")
        farewell = listener(self.transport).farewell
        text = f"the server ended the login of {self.user}: {farewell or 'it gave no reason'}"
        return Unreachable("login_refused", f"{text}; tried: {', '.join(self.tried) or 'nothing'}")

    def refused(self, unusable: list[Key], named: Path | None) -> Unreachable:
        """The cause when no proof is left. `named` is the key file that the user asked for."""
        causes = [k for k in unusable if str(named) == k.label] or unusable
        if causes and (str(named) == causes[0].label or not self.tried):
            return Unreachable(causes[0].problem, causes[0].reason)
        offered = ", ".join(listener(self.transport).methods) or "nothing"
        text = f"user {self.user} was refused; the server offers {offered}"
        text += f"; tried: {', '.join(self.tried) or 'nothing, for there is no key or password'}"
        text += "".join(f"; {key.reason}" for key in unusable) + self.remark
        return Unreachable("login_refused", text)


def log_in(
    transport: paramiko.Transport, wire: Wire, route: Route, keyring: Keyring, password: Password
) -> None:
    """Log in as ssh would: by keys of the agent and of files, then by the password.

    Raises Unreachable: login_refused, account_closed, key_passphrase, key_unreadable
    or auth_timeout.
    """
    attempts = Attempts(transport, wire, route.user)
    unusable: list[Key] = []
    for key in _candidates(route, keyring):
        if key.private is None:
            unusable.append(key)
            continue
        private = key.private
        if isinstance(private, AgentKey):
            private = private.by(wire.deadline)
        way = partial(transport.auth_publickey, route.user, private)
        answer = attempts.attempt(str(key), way)
        if answer is _Answer.IN:
            return
        if answer is not _Answer.NO:
            break
    # Without a key: to hear what the server offers; and some let everybody in.
    nothing = partial(transport.auth_none, route.user)
    if not attempts.tried and attempts.attempt("", nothing) is _Answer.IN:
        return
    if password.text and BY_PASSWORD & set(listener(transport).methods):
        left = wire.deadline - time.monotonic()
        send = partial(_by_password, attempts, transport, password.text)
        if password.attempt(route.user, send, left):
            return
        if password.withheld(route.user):
            attempts.remark = (
                f"; the password was refused by {TRIES} nodes and is sent to no other, "
                "for refusals may lock the account"
            )
    raise attempts.refused(unusable, route.key)


def _by_password(attempts: Attempts, transport: paramiko.Transport, password: str) -> bool:
    """Send the password in one way only: a wrong one must not count twice where logins lock."""
    offered = listener(transport).methods
    user = attempts.user
    if "password" in offered:
        what = "the password"
        way = partial(transport.auth_password, user, password, fallback=False)
    else:
        what = "the password (keyboard-interactive)"
        way = partial(transport.auth_interactive, user, partial(_answers, password))
    return attempts.attempt(what, way) is _Answer.IN


def _answers(
    password: str, title: str, instructions: str, prompts: list[tuple[str, bool]]
) -> list[str]:
    """The password to each question whose answer is not shown, nothing to the others."""
    return ["" if shown else password for _, shown in prompts]


def _candidates(route: Route, keyring: Keyring) -> Iterator[Key]:
    """Keys in ssh's order: those named, by the agent where it has them; then the agent's others."""
    agent = keyring.agent() if route.agent else ()
    named = [keyring.file(route.key)] if route.key else []
    named += [key for key in map(keyring.file, route.identities) if not key.missing]
    held = {key.blob: key for key in agent}
    for key in dict.fromkeys(named):
        yield held.get(key.blob, key)
    if not route.identities_only:
        blobs = {key.blob for key in named}
        yield from (key for key in agent if key.blob not in blobs)
