"""What can be set for the mail of a sweep: `mail.to = …` below `[sweep]`."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge, Le

from clustercheck.check import option
from clustercheck.nodeset import shorten
from clustercheck.options import Rule

PORTS = {"smtp": 25, "smtps": 465}

# An address as mail programs take it bare: no blanks, quotes, brackets or line ends, so that
# nothing but an address can get into a header or onto a command line.
_ADDRESS = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}(?:@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}))?"
)
_SERVER = re.compile(
    r"(?P<way>smtps?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*)"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)


class Server(NamedTuple):
    """Where mail is given to. way: smtp, smtps or sendmail.

    host: a name or address; with sendmail the program's path, or "" for where it usually is.
    """

    way: str
    host: str
    port: int = 0

    def __str__(self) -> str:
        if self.way == "sendmail":
            return self.host or "sendmail"
        return f"{self.way}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def _check_address(text: str) -> None:
    if not _ADDRESS.fullmatch(text):
        found = re.search(r"<([^<>]*)>", text)
        hint = f"; write {found[1]} alone" if found else ""
        raise ValueError(f"{shorten(text)} is not an address such as ops@example.org{hint}")


def _check_sender(text: str) -> None:
    if text:
        _check_address(text)


def _check_url(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9]+://[^\s\0-\x1f\x7f]+", text):
        # the text is not shown: it may hold a secret
        raise ValueError("one of the URLs is not written as SERVICE://…")


def server_of(text: str) -> Server:
    """Reads `mail.server`. Raises ValueError with what is wrong and what to write."""
    if text == "sendmail":
        return Server("sendmail", "")
    if text.startswith("/"):
        return Server("sendmail", text)
    match = _SERVER.fullmatch(text)
    if not match or int(match["port"] or 1) not in range(1, 65536):
        raise ValueError(
            f"{shorten(text)} is no mail server; write smtp://HOST, smtp://HOST:587,"
            " smtps://HOST or sendmail"
        )
    port = int(match["port"] or PORTS[match["way"]])
    return Server(match["way"], match["host"].strip("[]"), port)


@dataclass(frozen=True)
class Options:
    to: tuple[Annotated[str, Rule(_check_address)], ...] = option(
        (),
        "who gets the mail of each sweep; below [GROUP:vars], who gets in addition what concerns"
        " the nodes of that group",
    )
    sender: Annotated[str, Rule(_check_sender)] = option(
        "", "who it comes from; empty: clustercheck@ and this machine's name"
    )
    when: Literal["change", "fail", "always"] = option(
        "change",
        "change: when something is other than in the sweep before; fail: while something fails or"
        " could not be found out; always: after each sweep",
    )
    sign_of_life: Annotated[int, Ge(0), Le(366)] = option(
        7, "after so long without a mail one is sent all the same; 0: never", unit="days"
    )
    server: Annotated[str, Rule(server_of)] = option(
        "sendmail",
        "smtp://HOST:PORT (with STARTTLS where the server has it), smtps://HOST:PORT (TLS from the"
        " start), or sendmail, also with its path",
    )
    tls: Literal["auto", "always", "never"] = option(
        "auto",
        "STARTTLS with smtp://: auto: where the server offers it, but not with this machine"
        " itself; always: no mail without it; never",
    )
    ca: str = option("", "file of the certificates to trust, in place of the system's")
    login: str = option(
        "",
        "file with the user in its first line and the password in its second, which only its owner"
        " may read; or set CLUSTERCHECK_MAIL_USER and CLUSTERCHECK_MAIL_PASSWORD",
    )
    patience: Annotated[float, Ge(0), Le(3600)] = option(
        360,
        "for how long one sweep tries again where a server puts mail off; what is left then goes"
        " with the next sweep",
        unit="s",
    )
    page_mb: Annotated[float, Ge(0), Le(100)] = option(
        5, "a page larger than this is not attached; 0: never attached", unit="MB"
    )
    chat: tuple[Annotated[str, Rule(_check_url)], ...] = option(
        (),
        "URLs of Apprise for a short message in a chat (wants clustercheck[chat] installed); they"
        " hold secrets, so better in CLUSTERCHECK_CHAT, with blanks between",
    )
