"""The variables of an inventory that say how a node is reached: ours, and Ansible's."""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from clustercheck.errors import nearest
from clustercheck.node import Node
from clustercheck.nodeset import check_name, shorten
from clustercheck.options import WORDS

_HOSTNAME = re.compile(r"\{\{\s*inventory_hostname\s*\}\}")
_JUMP = re.compile(
    r"(?:[^\s,@-][^\s,@]*@)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s,@:\[\]-][^\s,@:\[\]]*)(?::[0-9]{1,5})?"
)


class SshArguments(NamedTuple):
    """What of ssh's arguments can be kept to. rest: the others, which are not applied."""

    jump: str
    rest: str


def _filled(text: str) -> str:
    """With something in place of the one template that is filled here, to look at the rest."""
    if "{{" in _HOSTNAME.sub("", text):
        raise ValueError(
            f"{shorten(text)} is a template, which only Ansible fills; write the value"
        )
    return _HOSTNAME.sub("x", text)


def _host(text: str) -> str:
    check_name(_filled(text))
    return text


def _user(text: str) -> str:
    bare = _filled(text)
    if not bare or bare.startswith("-") or not bare.isprintable() or " " in bare:
        raise ValueError(f"{shorten(text)} is not a user; write one word that begins with no dash")
    return text


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise ValueError(f"{shorten(text)} is not a port; write a number from 1 to 65535")
    return int(text)


def _key(text: str) -> str:
    _filled(text)
    if not text or text.startswith("-") or not text.isprintable():
        raise ValueError(f"{shorten(text)} is not the path of a key file")
    return os.path.expanduser(text)


def _jump(text: str) -> str:
    if text.lower() in ("", "none"):
        return ""
    hops = [hop.strip().removeprefix("ssh://") for hop in text.split(",")]
    if not all(_JUMP.fullmatch(hop) for hop in hops):
        raise ValueError(f"{shorten(text)} is not a jump host; write [user@]host[:port]")
    return ",".join(hops)


def _become(text: str) -> str:
    if text not in ("sudo", "no"):
        raise ValueError(
            f"{shorten(text)} is not a way to become root; write sudo or no"
            + nearest(text, ("sudo", "no"))
        )
    return "" if text == "no" else text


def _yes(text: str) -> bool:
    if text.lower() not in {**WORDS, "y": True, "n": False, "t": True, "f": False}:
        raise ValueError(f"{shorten(text)} is neither yes nor no; write yes or no")
    return text.lower() in ("yes", "true", "on", "1", "y", "t")


def _priority(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise ValueError(f"{shorten(text)} is not a whole number")
    return int(text)


def _text(text: str) -> str:
    return text


def ssh_arguments(text: str) -> SshArguments:
    """The jump host in `-J x`, `-o ProxyJump=x`, or a ProxyCommand that is `ssh -W %h:%p x`."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise ValueError(f"a quote is not closed in {shorten(text)}") from None
    jump, rest = "", []
    while words:
        word = words.pop(0)
        flag, value = word[:2], word[2:]
        if flag in ("-J", "-o") and not value and words:
            value = words.pop(0)
        name, *arguments = re.split(r"\s*=\s*|\s+", value.strip(), maxsplit=1)
        argument = "".join(arguments)
        found = None
        if flag == "-J":
            found = _jump(value)
        elif flag == "-o" and name.lower() == "proxyjump":
            found = _jump(argument)
        elif flag == "-o" and name.lower() == "proxycommand":
            found = _through_ssh(argument)
        if found is None:
            rest.append(f"{flag} {value}" if flag == "-o" else word)
        jump = jump or found or ""  # of two, ssh takes the first
    return SshArguments(jump, " ".join(rest))


def _through_ssh(command: str) -> str | None:
    """The jump host of `ssh -W %h:%p [-q] [-p PORT] [-l USER] [USER@]HOST`; None of others."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or os.path.basename(words.pop(0)) != "ssh":
        return None
    user = port = host = ""
    forwards = False
    while words:
        word = words.pop(0)
        flag, value = word[:2], word[2:]
        if flag in ("-W", "-p", "-l") and not value and words:
            value = words.pop(0)
        if flag == "-W":
            forwards = value in ("%h:%p", "[%h]:%p")
        elif flag == "-p":
            port = ":" + value
        elif flag == "-l":
            user = value + "@"
        elif not word.startswith("-") and not host:
            host = word
        elif word != "-q":
            return None
    whole = f"{'' if '@' in host else user}{host}{port}"
    return whole if forwards and _JUMP.fullmatch(whole) else None


OURS: Mapping[str, Callable[[str], object]] = {
    "host": _host,
    "port": _port,
    "user": _user,
    "key": _key,
    "jump": _jump,
    "become": _become,
}

ANSIBLE: Mapping[str, Callable[[str], object]] = {
    "ansible_host": _host,
    "ansible_ssh_host": _host,
    "ansible_port": _port,
    "ansible_ssh_port": _port,
    "ansible_user": _user,
    "ansible_ssh_user": _user,
    "ansible_private_key_file": _key,
    "ansible_ssh_private_key_file": _key,
    "ansible_ssh_common_args": ssh_arguments,
    "ansible_ssh_extra_args": ssh_arguments,
    "ansible_become": _yes,
    "ansible_become_method": _text,
    "ansible_become_user": _text,
    "ansible_connection": _text,
    "ansible_group_priority": _priority,
}

CONNECTIONS = ("ssh", "smart", "paramiko", "paramiko_ssh", "local")


def near_ours(name: str) -> str | None:
    """The variable of ours that `name` is one slip away from (`prot`, `usr`, `Port`, `keys`)."""
    low = name.lower()
    for ours in OURS:
        if (
            sorted(low) == sorted(ours)
            or _one_letter_more(low, ours)
            or _one_letter_more(ours, low)
        ):
            return ours
    return None


def _one_letter_more(longer: str, shorter: str) -> bool:
    return len(longer) == len(shorter) + 1 and any(
        longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer))
    )


def our_node(name: str, values: Mapping[str, object], groups: tuple[str, ...]) -> Node:
    """A node from our variables, each already read by OURS."""
    fields = {
        variable: _HOSTNAME.sub(name, value) if isinstance(value, str) else value
        for variable, value in values.items()
    }
    return Node(name=name, groups=groups, **fields)  # type: ignore[arg-type]


def ansible_note(variable: str, value: object) -> str:
    """What of the value of one of Ansible's variables is not kept to; "" if all is."""
    if isinstance(value, SshArguments) and value.rest:
        return f"{shorten(value.rest)} is not applied; ~/.ssh/config is"
    fitting = {"ansible_become_method": "sudo", "ansible_become_user": "root"}.get(variable)
    if fitting and value != fitting:
        return f"{shorten(str(value))} is not {fitting}: probes run as the login user"
    if variable == "ansible_connection" and value not in CONNECTIONS:
        return f"{shorten(str(value))} is not known here; ssh is used"
    return ""


def ansible_node(name: str, values: Mapping[str, object], groups: tuple[str, ...]) -> Node:
    """A node from Ansible's variables, each already read by ANSIBLE.

    Where an old name (`ansible_ssh_host`) and a new one are both set, the old one wins, as there.
    """

    def either(old: str, new: str) -> str:
        return _HOSTNAME.sub(name, str(values.get(old) or values.get(new) or ""))

    jumps = (
        arguments.jump
        for variable in ("ansible_ssh_common_args", "ansible_ssh_extra_args")
        if isinstance(arguments := values.get(variable), SshArguments)
    )
    to_root = (
        values.get("ansible_become", False)
        and values.get("ansible_become_method", "sudo") == "sudo"
        and values.get("ansible_become_user", "root") == "root"
    )
    return Node(
        name=name,
        host=either("ansible_ssh_host", "ansible_host"),
        port=int(either("ansible_ssh_port", "ansible_port") or 0),
        user=either("ansible_ssh_user", "ansible_user"),
        key=either("ansible_ssh_private_key_file", "ansible_private_key_file"),
        jump=next(filter(None, jumps), ""),
        become="sudo" if to_root else "",
        groups=groups,
        local=values.get("ansible_connection") == "local",
    )
