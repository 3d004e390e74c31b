"""The mail of a sweep: whether one is due, to whom, what it is made of, and that it is sent.

The steps, for the command that sweeps:

    wanted = mail.routes(main, of_node)
    found = mail.letters(night, wanted, folder, page=page, now=now)
    mail.preview(found, wanted)                        a dry run: what would be sent
    mail.post(found, main, folder, now=now, say=say)   sends them, or keeps them for later
"""

import hashlib
import json
import re
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage, MIMEPart
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path

from clustercheck import chat, exit_codes
from clustercheck.changes import Kind, Night
from clustercheck.check import Status
from clustercheck.deliver import Outgoing, Posted, deliver
from clustercheck.errors import UsageError
from clustercheck.mail_options import Options
from clustercheck.output import write_atomically
from clustercheck.render import mail as render
from clustercheck.render.escape import visible
from clustercheck.render.mail_content import content

NEWS = (Kind.NEW, Kind.WORSE, Kind.BETTER, Kind.GONE, Kind.FLAPPING)
LAST = "last.json"  # when each list of recipients was last written to

# Bytes that any server takes, whatever is said with 8BITMIME.
POLICY = SMTP.clone(cte_type="7bit")


@dataclass(frozen=True)
class Route:
    """Who is to be told of which nodes; nodes is None for all."""

    to: tuple[str, ...]
    options: Options
    nodes: frozenset[str] | None = None


@dataclass(frozen=True)
class Letter:
    """A mail, before it is sent. night: the part that it is about. short: its words for a chat.

    Its route has nobody in `to` where only a chat is to get it.
    """

    route: Route
    sender: str
    message: EmailMessage
    night: Night
    short: str


def routes(main: Options, of_node: Mapping[str, Options]) -> list[Route]:
    """First who gets all, then who gets what concerns some nodes.

    main: what is set for all nodes. of_node: as it stands for each node; where `to` differs from
    main's, those addresses that are not among main's get what concerns these nodes.
    """
    found = [Route(main.to, main)] if main.to or chat.urls(main) else []
    groups: dict[tuple[str, ...], list[str]] = {}
    for node, options in of_node.items():
        more = tuple(one for one in options.to if one not in main.to)
        if more and options.to != main.to:
            groups.setdefault(more, []).append(node)
    for to, nodes in groups.items():
        own = replace(main, to=to, when=of_node[nodes[0]].when)
        found.append(Route(to, own, frozenset(nodes)))
    return found


def letters(
    night: Night,
    wanted: Sequence[Route],
    folder: Path,
    *,
    page: Callable[[Night], bytes] | None = None,
    now: datetime,
) -> list[Letter]:
    """The mails that are due. page: makes the HTML page of a night, which is attached."""
    found = []
    last = _last(folder)
    for route in wanted:
        part = night if route.nodes is None else concerning(night, route.nodes)
        if not part.report.nodes and night.report.nodes:
            continue  # none of their nodes was asked
        why = due(part, route.options, last.get(_key(night.cluster, route)), now)
        if why is not None:
            found.append(_letter(part, route, why, page, now))
    return found


def concerning(night: Night, nodes: frozenset[str]) -> Night:
    """The night as if there were only these nodes."""
    report = night.report
    results = {name: result for name, result in report.nodes.items() if name in nodes}
    members = {
        group: [name for name in names if name in nodes] for group, names in report.members.items()
    }
    return replace(
        night,
        report=replace(report, nodes=results, members={g: m for g, m in members.items() if m}),
        changed=tuple(one for one in night.changed if one.node in nodes),
        accepted=tuple(pair for pair in night.accepted if pair[0].node in nodes),
        joined=tuple(name for name in night.joined if name in nodes),
        left=tuple(name for name in night.left if name in nodes),
        silent=tuple(name for name in night.silent if name in nodes),
        trends={name: trend for name, trend in night.trends.items() if name in nodes},
    )


def due(night: Night, options: Options, last: datetime | None, now: datetime) -> str | None:
    """Why a mail is to be sent; "" where its own first line says it, None where none is due."""
    if options.when == "always":
        return ""
    if night.report.stopped or night.report.nothing_checked or night.troubles:
        return ""  # what the sweep could not do is never kept silent
    changed = night.of(*NEWS) or night.joined or night.left or night.before is None
    if options.when == "change" and changed:
        return ""
    if options.when == "fail" and night.exit_code >= exit_codes.OF_STATUS[Status.FAIL]:
        return ""
    if last is None:
        return "The first mail to these addresses, to show that it gets there."
    days = options.sign_of_life
    # An hour less, for one night's sweep may be faster than another's.
    if days and now - last >= timedelta(days=days) - timedelta(hours=1):
        return f"Nothing to tell for {days} days: this mail shows that the sweep still runs."
    return None


def preview(found: Sequence[Letter], wanted: Sequence[Route]) -> str:
    """The mails as a person reads them, for a dry run; without any, why there is none."""
    if not wanted:
        return "Nobody gets a mail: set mail.to below [sweep] in the inventory.\n"
    if not found:
        when = ", ".join(sorted({route.options.when for route in wanted}))
        return f"No mail is due (mail.when is {when}). To see one: -o mail.when=always\n"
    return "\n".join(map(_preview, found))


def _preview(letter: Letter) -> str:
    message = letter.message
    lines = [f"{name}: {message[name]}" for name in ("From", "To", "Subject", "Date")]
    body = message.get_body(("plain",))
    parts = [f"{part.get_filename()} ({_size(part)})" for part in message.iter_attachments()]
    lines += ["", body.get_content().rstrip("\n") if body else ""]
    html = message.get_body(("html",))
    lines += ["", f"[The same as HTML ({_size(html)})" + ("".join(f"; {p}" for p in parts)) + "]"]
    if letter.route.nodes is None and (where := chat.urls(letter.route.options)):
        services = ", ".join(url.partition("://")[0] for url in where)
        lines += ["", f"In the chat ({services}):", letter.short]
    return "\n".join(lines) + "\n"


def _size(part: MIMEPart | None) -> str:
    data = part.get_payload(decode=True) if part else b""
    assert isinstance(data, bytes)
    return f"{len(data) / 1e6:.1f} MB" if len(data) > 1e5 else f"{len(data) / 1e3:.1f} kB"


def post(
    found: Sequence[Letter],
    main: Options,
    folder: Path,
    *,
    now: datetime,
    say: Callable[[str], None] = lambda line: None,
) -> Posted:
    """Send these, and what waits in `folder` from before; what cannot be sent yet waits there.

    say: is told when it is tried again, for who watches. Without a letter, and with nothing
    waiting, it does nothing.
    """
    mails = [
        Outgoing(one.sender, one.route.to, one.message.as_bytes(policy=POLICY))
        for one in found
        if one.route.to
    ]
    posted = deliver(mails, main, folder, now=now, say=say)
    if not found:
        return posted
    for letter in found:
        if letter.route.nodes is None and (where := chat.urls(main)):
            trouble = chat.send(where, str(letter.message["Subject"]), letter.short)
            posted = Posted((*posted.lines, *trouble), posted.complete and not trouble)
    last = _last(folder) | {_key(one.night.cluster, one.route): now for one in found}
    try:
        told = {key: when.isoformat() for key, when in last.items()}
        write_atomically(folder / LAST, json.dumps(told, indent=1) + "\n")
    except UsageError:
        pass  # then the next sign of life comes early; a full disk is told of elsewhere
    return posted


def _last(folder: Path) -> dict[str, datetime]:
    """When each list of recipients was last written to; nothing where that is not known."""
    try:
        told = json.loads((folder / LAST).read_text("utf-8"))
        return {str(key): datetime.fromisoformat(when) for key, when in told.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _key(cluster: str, route: Route) -> str:
    return " ".join((cluster, *sorted(route.to)))


def _letter(
    night: Night,
    route: Route,
    reason: str,
    page: Callable[[Night], bytes] | None,
    now: datetime,
) -> Letter:
    here = re.sub(r"[^A-Za-z0-9.-]+", "-", socket.getfqdn()).strip(".-") or "localhost"
    sender = route.options.sender or f"clustercheck@{here}"
    domain = sender.partition("@")[2] or "localhost"
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", night.cluster).strip("-")[:40] or "cluster"
    name = f"{word}-{night.report.started:%Y-%m-%d}.html"
    attached, data = _page(night, route, page, name)
    only = () if route.nodes is None else tuple(night.report.nodes)
    shown = content(night, reason=reason, attached=attached, only=only)
    message = EmailMessage(policy=POLICY)
    message["Subject"] = shown.subject
    message["From"] = _address(sender, visible(f"clustercheck {night.cluster}"))
    message["To"] = [_address(one) for one in route.to]
    message["Date"] = format_datetime(now)
    # All mails of a cluster to these addresses refer to one that never was: so they are a thread.
    thread = hashlib.sha256(_key(night.cluster, route).encode("utf-8", "replace")).hexdigest()[:24]
    message["Message-ID"] = f"<{now:%Y%m%d%H%M%S}.{secrets.token_hex(8)}@{domain}>"
    message["In-Reply-To"] = message["References"] = f"<clustercheck.{thread}@{domain}>"
    message["List-Id"] = f"clustercheck {word} <{word}.clustercheck.{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"  # Exchange's word for the same
    message.set_content(render.text(shown))
    message.add_alternative(render.html(shown), subtype="html")
    if data is not None:
        message.add_attachment(data, maintype="text", subtype="html", filename=name)
    return Letter(route, sender, message, night, render.short(shown))


def _address(text: str, name: str = "") -> Address:
    local, _, domain = text.partition("@")  # "root" alone is one of this machine's
    return Address(name, local, domain)


def _page(
    night: Night, route: Route, page: Callable[[Night], bytes] | None, name: str
) -> tuple[str, bytes | None]:
    """A sentence on the page, and the page where it is to be attached."""
    largest = route.options.page_mb
    if page is None or not largest:
        return "", None
    data = page(night)
    if len(data) > largest * 1e6:
        return (
            f"The page has {len(data) / 1e6:.1f} MB, more than the {largest:g} MB attached.",
            None,
        )
    return f"Node by node: {name}, attached.", data
