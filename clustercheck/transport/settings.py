"""What the user says about SSH for the whole run."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class SshSettings:
    """How nodes are reached.

    config: files of ssh_config, the first counts most; None is ~/.ssh/config and
        /etc/ssh/ssh_config.
    known_hosts: files of known_hosts, accept-new writes to the first; None is what the
        configuration says (~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts by default).
    host_keys: "strict" refuses a host whose key is not known; "accept-new" adds it. A changed or
        revoked key is always refused.
    connect_timeout: seconds for a TCP connection over all addresses of a name, and again for the
        greeting and key exchange; 0 leaves it to ConnectTimeout of the configuration, then 10.
    password: for logging in, also where it is asked for by keyboard-interactive.
    passphrase: for private keys that are locked.
    agent: ask the agent at $SSH_AUTH_SOCK.
    """

    config: tuple[str, ...] | None = None
    known_hosts: tuple[str, ...] | None = None
    host_keys: Literal["strict", "accept-new"] = "strict"
    connect_timeout: float = 0
    password: str = field(default="", repr=False)
    passphrase: str = field(default="", repr=False)
    agent: bool = True
