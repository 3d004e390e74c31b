"""Logins by every kind of shell, over a real sshd, and what every sh can run."""

import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from clustercheck.script import Step, probe_of
from tests.command import clustercheck, ssh_words
from tests.host import Host, Keys
from tests.hostile.logins import LOGINS, table
from tests.made_up import CHECKS
from tests.shell_text import code_of


@pytest.fixture(scope="module")
def found(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What is found with each login, by check."""
    host = Host(tmp_path_factory.mktemp("host"), keys)
    try:
        host.need_own_root()
        host.run("mkdir -p /opt/logins")
        for number, (name, login) in enumerate(LOGINS.items(), 3001):
            file, text = login.greeting
            host.run(
                f"echo 'user-{name}:x:{number}:{number}::/home/user-{name}:{login.shell}'"
                " >>/etc/passwd\n"
                f"echo 'user-{name}:*:19000::::::' >>/etc/shadow\n"
                f"mkdir -p /home/user-{name}/$(dirname '{file or '.'}')\n"
                f"[ -z '{file}' ] || echo '{text}' >/home/user-{name}/{file}\n"
                f"chown -R {number}:{number} /home/user-{name}\n"
                f"[ -z '{login.link}' ] || ln -s $(command -v {login.link} x) {login.shell}\n"
            )
        lines = [f"{n} user=user-{n} host=127.0.0.{i}" for i, n in enumerate(LOGINS, 1)]
        path = tmp_path_factory.mktemp("logins") / "inventory.ini"
        rest = "[check:fine]\ncommand = echo fine"
        common = [f"port={host.port}", f"key={host.keys.plain}"]
        path.write_text("\n".join(["[all]", *lines, "[all:vars]", *common, rest]))
        words = ("-c", "fine,tmp,selinux", "--format", "json")
        done = clustercheck("run", "-i", path, *ssh_words(host), *words)
        assert not done.err, done
        yield json.loads(done.out)["nodes"]
    finally:
        host.close()


@pytest.mark.parametrize("name", LOGINS)
def test_what_comes_of_a_login(found: dict[str, Any], name: str) -> None:
    checks = found[name]["checks"]
    code = LOGINS[name].code
    if code:
        assert list(checks) == ["access"]
        (finding,) = checks["access"]["findings"]
        assert finding["code"] == f"access.{code}", finding
        assert finding["remedy"]["text"]
    else:
        (finding,) = checks["fine"]["findings"]
        assert (finding["code"], finding["message"]) == ("fine.ok", "fine")
        for check in ("tmp", "selinux"):
            codes = {f["code"].partition(".")[2] for f in checks[check]["findings"]}
            assert not codes & {"not_answered", "limit", "crashed"}, checks[check]


def test_the_table_of_the_guide_is_what_was_tried() -> None:
    guide = (Path(__file__).parents[2] / "docs/nodes.md").read_text()
    assert table() in guide


# What dash, busybox and old bash (3.2) do not know, or know otherwise.
NOT_IN_EVERY_SH = {
    "process substitution": r"[<>]\(",
    "[[ ]]": r"(?<!\S)\[\[\s",
    "(( ))": r"(?m)(^|[;&|]|\b(then|do|else|if|while))\s*\(\(",
    "here-strings": "<<<",
    "&> and |&": r"&>|\|&",
    "arrays": r"\w=\(|\$\{\w+\[",
    "substitution in variables": r"\$\{\w+(/|\^|,|:\d|:\s|@)",
    "indirection": r"\$\{!",
    "$'…'": r"\$'",
    "local and declare": r"(?m)(^|[;&|{]|\b(then|do|else))\s*"
    r"(local|declare|typeset|let|source)\s+[\w-]",
    "function": r"(?m)^\s*function\b",
    "echo with options": r"\becho\s+-[neE]",
    "options of read": r"\bread\s+-[^r\s]",
    "==": r"\[ [^]]*==",
    "braces": r"\{\w+\.\.\w+\}",
    # bash before 4 takes the ) of a pattern without its ( for the end of $( )
    "case in $( )": r"\$\([^()]*\bcase\b[^()]*\bin\s+[^(\s]",
}
STEPS: tuple[Step, ...] = ("light", "heavy", "follow")
TEXTS = {
    **{
        f"{name}-{step}": probe_of(check, step)
        for name, check in CHECKS.items()
        for step in STEPS
        if probe_of(check, step)
    },
    **{
        name: resources.files("clustercheck").joinpath(name).read_text()
        for name in ("prelude.sh", "main.sh")
    },
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_probe_holds_nothing_that_some_sh_has_not(name: str) -> None:
    code = code_of(TEXTS[name])
    for what, pattern in NOT_IN_EVERY_SH.items():
        seen = re.search(pattern, code)
        assert not seen, f"{what}: {code[max(0, seen.start() - 40) : seen.end() + 40]!r}"


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("process substitution", "while read -r x; do :; done < <(ls)"),
        ("[[ ]]", "if [[ -f x ]]; then :; fi"),
        ("(( ))", "if ((x > 1)); then :; fi"),
        ("here-strings", "read -r x <<<abc"),
        ("&> and |&", "ls &>/dev/null"),
        ("arrays", "x=(a b)"),
        ("substitution in variables", 'fact x "${x//a/b}"'),
        ("indirection", "fact x ${!y}"),
        ("$'…'", "IFS=$'\\n'"),
        ("local and declare", "f() {\n local x\n}"),
        ("function", "function f { :; }"),
        ("echo with options", "echo -n x"),
        ("options of read", "read -t 1 x"),
        ("==", '[ "$a" == b ]'),
        ("braces", "for i in {1..3}; do :; done"),
        ("case in $( )", "x=$(case $y in a) echo b ;; esac)"),
    ],
)
def test_what_some_sh_has_not_is_seen(what: str, text: str) -> None:
    assert re.search(NOT_IN_EVERY_SH[what], code_of(text))
