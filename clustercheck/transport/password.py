"""A password for many nodes, which may be wrong."""

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

TRIES = 3


@dataclass
class _User:
    lock: threading.Lock = field(default_factory=threading.Lock)
    accepted: bool = False
    refused: int = 0


class Password:
    """Sends a wrong password to few nodes only: many refusals lock an account.

    Until a node has accepted it from a user, one node at a time is tried; after TRIES refusals no
    other. Thread-safe.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._users: defaultdict[str, _User] = defaultdict(_User)

    def withheld(self, user: str) -> bool:
        """It has been refused so often that it is not sent any more."""
        known = self._users[user]
        return not known.accepted and known.refused >= TRIES

    def attempt(self, user: str, send: Callable[[], bool], seconds: float) -> bool:
        """Whether the node accepted it; False without sending it where it is withheld.

        seconds: to wait for its turn at most.
        """
        known = self._users[user]
        if known.accepted:
            return send()
        if not known.lock.acquire(timeout=max(seconds, 0)):
            return False
        try:
            if self.withheld(user):
                return False
            accepted = send()
            known.accepted = known.accepted or accepted
            known.refused += not accepted
            return accepted
        finally:
            known.lock.release()
