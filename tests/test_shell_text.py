"""The rules for a probe's text find what they are there for, and nothing else."""

import pytest

from tests.shell_text import faults


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cat <<EOF\na\nEOF", "a here-document"),
        ("exit 1", "exit"),
        ("[ -n a ] && exit 3", "exit"),
        ("if true; then exit; fi", "exit"),
        ("sudo ls", "sudo"),
        ("x=$(sudo -n ls)", "sudo"),
        ("rm -f x", "a command that changes"),
        ("true; mkdir x", "a command that changes"),
        ("echo a >/tmp/x", "it writes to /tmp/x"),
        ("echo a >>$ROOT/x", "it writes to $ROOT/x"),
        ("cat /etc/passwd", "it reads /etc/passwd"),
        ('cat "/proc/1/x"', "it reads /proc/1/x"),
        ("read -r x </proc/uptime", "it reads /proc/uptime"),
        ("for f in /etc/a; do cat $f; done", "it reads /etc/a"),
    ],
)
def test_a_fault_is_found(text: str, fault: str) -> None:
    assert [found for found in faults(text) if found.startswith(fault)]


@pytest.mark.parametrize(
    "text",
    [
        'awk \'{ print > "x"; exit }\' "$ROOT/etc/passwd" # exit 1 and rm -rf /',
        'cat "$ROOT"/etc/x 2>/dev/null >&2',
        'for f in /etc/a /etc/b; do cat "$ROOT$f"; done',
        'fact x "it\'s here"',
        "[ $((1 + 2)) -gt 2 ] && return",
        "printf 'no; exit\\n' | lines sudo_said",
    ],
)
def test_what_is_right_is_let_through(text: str) -> None:
    assert faults(text) == []
