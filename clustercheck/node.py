"""A node, and how it is reached."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A node of the inventory or of the command line.

    name: what the user calls it, shown in every report.
    host: address or name to connect to; "" means that ~/.ssh/config and then `name` decide.
    port, user, key: as ssh's -p, -l and -i; 0 or "" leave it to ~/.ssh/config and the defaults.
    jump: as ssh's -J: "[user@]host[:port]", several joined by commas.
    become: "sudo" lets probes that need root use `sudo -n`; "" means as the login user.
    groups: the groups of the inventory that it is in, nearest first.
    local: it is this machine, to be checked without SSH (`ansible_connection=local`).
    """

    name: str
    host: str = ""
    port: int = 0
    user: str = ""
    key: str = ""
    jump: str = ""
    become: str = ""
    groups: tuple[str, ...] = ()
    local: bool = False
