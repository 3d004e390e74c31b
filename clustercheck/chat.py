"""A short message in a chat, by Apprise, which is loaded only where its URLs are set."""

import logging
import os
from collections.abc import Sequence

from clustercheck.mail_options import Options

VARIABLE = "CLUSTERCHECK_CHAT"
INSTALL = "pip install 'clustercheck[chat]'"


def urls(options: Options) -> tuple[str, ...]:
    """Of `mail.chat` and of the environment."""
    return (*options.chat, *os.environ.get(VARIABLE, "").split())


def send(where: Sequence[str], title: str, body: str) -> list[str]:
    """Send it to each; a line for each that did not take it, without its URL, which is secret."""
    try:
        import apprise
    except ImportError:
        return [f"no message in a chat: Apprise is not installed; {INSTALL}"]
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it would tell the URLs
    trouble = []
    for url in where:
        service = url.partition("://")[0]
        one = apprise.Apprise()
        if not one.add(url):
            trouble.append(f"no message by {service}: Apprise cannot read its URL")
        elif not one.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT):
            trouble.append(f"no message by {service}: it was not taken; look at its URL")
    return trouble
