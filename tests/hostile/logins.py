"""The login shells that were tried, with what comes of each: the table in docs/nodes.md.

It is kept true by test_logins.py, which logs in with each of them over a real sshd.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Login:
    """A kind of login.

    words: what it is, for the table.
    shell: the shell's path on the tests' host.
    link: what `shell` is a link to; "" where it is there.
    greeting: a start-up file of it that prints, from the home, and its text.
    code: of `access` where no script can be run, or "".
    """

    words: str
    shell: str
    link: str = ""
    greeting: tuple[str, str] = ("", "")
    code: str = ""


LOGINS = {
    "bash": Login(
        "bash, and a .bashrc that prints", "/bin/bash", greeting=(".bashrc", "echo hello")
    ),
    "dash": Login("dash", "/bin/dash"),
    "ash": Login("busybox ash", "/opt/logins/ash", "busybox"),
    "tcsh": Login(
        "tcsh, and a .tcshrc that prints", "/usr/bin/tcsh", greeting=(".tcshrc", "echo hello")
    ),
    "csh": Login(
        "csh, and a .cshrc that prints", "/opt/logins/csh", "tcsh", (".cshrc", "echo hello")
    ),
    "fish": Login(
        "fish, and a config.fish that prints",
        "/usr/bin/fish",
        greeting=(".config/fish/config.fish", "echo hello"),
    ),
    "rbash": Login("rbash, which may not exec", "/opt/logins/rbash", "bash", code="nologin"),
    "nologin": Login("nologin", "/usr/sbin/nologin", code="nologin"),
    "false": Login("false", "/bin/false", code="nologin"),
    "gone": Login("a shell that is not installed", "/opt/logins/zsh", code="login_refused"),
}


def table() -> str:
    """The table of docs/nodes.md."""
    rows = [("login shell", "what comes")]
    for login in LOGINS.values():
        rows.append((login.words, f"`access.{login.code}`" if login.code else "all checks"))
    width = max(len(first) for first, _ in rows)
    last = max(len(second) for _, second in rows)
    lines = [f"| {first:{width}} | {second:{last}} |" for first, second in rows]
    lines.insert(1, f"|{'-' * (width + 2)}|{'-' * (last + 2)}|")
    return "\n".join(lines)
