"""Monitoring plug-ins as checks, and other packages' checks by entry point, run for real."""

import json
from pathlib import Path

import pytest

from clustercheck import inventory, plugin, reach, registry
from clustercheck.check import AnyCheck, Facts, Quantity, Status
from clustercheck.errors import ConfigError, UsageError
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.report import Report
from clustercheck.run import Plan, Watch, run
from clustercheck.settings import Inventory
from clustercheck.transport.here import Here
from tests.command import clustercheck, ssh_words
from tests.host import Host
from tools.fetch import TOOLS, CannotFetch, fetch


def loaded(folder: Path, text: str, *overrides: str) -> tuple[Inventory, dict[str, AnyCheck]]:
    """An inventory of this machine with the text, and the checks made of its plug-ins."""
    path = folder / "inventory.ini"
    path.write_text("here\n" + text)
    read = inventory.load(path, registry.load(), overrides)
    checks = plugin.checks_of(read)
    return read.with_checks(checks), checks


def asked(read: Inventory, checks: dict[str, AnyCheck]) -> Report:
    """What this machine answers by its real sh."""
    plan = Plan(
        [Node("here", local=True)], checks, read.options, lambda node: Here(), Bounds(1, 100)
    )
    return run(plan, Watch())


def program(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def said(folder: Path, body: str, more: str = "") -> list[str]:
    """The findings of a plug-in that is a script with the body."""
    script = program(folder, "check_it", body)
    report = asked(*loaded(folder, f"[check:it]\ncommand = '{script}' -w 5\n{more}"))
    findings = report.nodes["here"].findings["it"]
    return [f"{f.status.value} {f.code}: {f.message}" for f in findings]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("echo DISK OK - 5 GB free", "pass ok: DISK OK - 5 GB free"),
        ("echo 'DISK LOW | free=5GB;8;4'; exit 1", "warn warning: DISK LOW"),
        ("echo DISK FULL; echo /var is the worst; exit 2", "fail critical: DISK FULL"),
        ("echo no such disk; exit 3", "unknown unknown: no such disk"),
        ("printf 'no end of line'; exit 2", "fail critical: no end of line"),
        ("echo given $1 $2", "pass ok: given -w 5"),
        ("echo noise >&2; echo OK", "pass ok: OK"),
        (":", "unknown no_output: no message was printed (exit status 0)"),
        ("echo '  | a=1'", "unknown no_output: no message was printed (exit status 0)"),
        (
            "echo no module named x >&2; exit 1",
            "unknown no_output: no message was printed (exit status 1): no module named x",
        ),
        ("echo fine; exit 4", "unknown bad_exit: exit status 4, should be 0 to 3"),
        ("printf 'OK \\377 no UTF-8\\n'", "pass ok: OK \\xff no UTF-8"),
        ("echo \"OK $(printf %400s | tr ' ' x)\"", f"pass ok: OK {'x' * 296}…"),
    ],
)
def test_the_exit_status_is_the_verdict(tmp_path: Path, body: str, expected: str) -> None:
    assert said(tmp_path, body) == [expected]


def test_a_plugin_cannot_forge_an_answer(tmp_path: Path) -> None:
    """It has neither the channel of the facts nor anything left of its files afterwards."""
    body = "(echo x >&3) 2>/dev/null && echo open || echo shut; echo status 0; exit 2"
    assert said(tmp_path, body) == ["fail critical: shut"]


def test_a_plugin_that_is_killed(tmp_path: Path) -> None:
    (finding,) = said(tmp_path, "echo OK; kill -9 $$")
    assert finding.startswith("unknown bad_exit: exit status 137 (signal 9), should be 0 to 3")


def test_a_plugin_that_floods_is_cut(tmp_path: Path) -> None:
    (finding,) = said(tmp_path, "yes")
    assert finding.startswith("unknown bad_exit: ")


def test_a_plugin_that_hangs_is_named(tmp_path: Path) -> None:
    (finding,) = said(tmp_path, "exec sleep 60", "limit = 1\n")
    assert finding.startswith("unknown limit: the probe did not end within 1 s; it waits on ")
    assert "sleep (process" in finding


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("check_none_such -w 5", "the command was not found (exit status 127): "),
        ("/etc/passwd", "the command cannot be run (exit status 126): "),
    ],
)
def test_a_plugin_that_is_not_there(tmp_path: Path, command: str, expected: str) -> None:
    report = asked(*loaded(tmp_path, f"[check:it]\ncommand = {command}\n"))
    (finding,) = report.nodes["here"].findings["it"]
    assert (finding.status, finding.code) == (Status.UNKNOWN, "not_run")
    assert finding.message.startswith(expected) and command.split()[0] in finding.message
    assert finding.remedy == plugin.INSTALL


@pytest.mark.parametrize(
    ("perfdata", "expected"),
    [
        ("time=0.0123s;1;2;0 size=12B", Quantity(0.0123, "s")),
        ("'free / space'=93%;10;5", Quantity(93.0, "%")),
        ("'it''s = odd'=1.5", Quantity(1.5, "")),
        ("load1=-1e-3", Quantity(-0.001, "")),
        ("temp=U;1;2 other=3", None),
        ("nothing of the kind", None),
        ("", None),
        ("x=", None),
        ("x=1e999", None),
    ],
)
def test_the_first_value_is_kept(perfdata: str, expected: Quantity | None) -> None:
    facts = Facts({"status": "0", "output": f"OK | {perfdata}\nmore | y=9", "stderr": ""})
    (finding,) = plugin.judge(facts, plugin.Options("x"))
    assert (finding.message, finding.value) == ("OK", expected)


def test_the_remedy_is_the_sites_own(tmp_path: Path) -> None:
    text = "[check:raid]\ncommand = echo bad; exit 2\nremedy = Call Ann.\nsee = §5.5\n"
    read, checks = loaded(tmp_path, text)
    (finding,) = asked(read, checks).nodes["here"].findings["raid"]
    assert finding.remedy == ("Call Ann.", "§5.5", False)
    assert finding.remedy in checks["raid"].codes["critical"].remedies


def test_a_command_of_a_group_counts_for_its_nodes(tmp_path: Path) -> None:
    text = "[check:it]\ncommand = echo far\n[gpu]\nhere\n[gpu:vars]\nit.command = echo 'near by'\n"
    (finding,) = asked(*loaded(tmp_path, text)).nodes["here"].findings["it"]
    assert finding.message == "near by"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[check:it]\ncommand = x\nlimt = 5\n", ":4: check it has no option 'limt'; did you mean"),
        ("[check:it]\ncommand = x\nlimit = 0\n", ":4: it.limit: '0' should be greater"),
        ("[check:it]\ncommand = x\nneeds_root = so\n", ":4: it.needs_root: 'so' is neither yes"),
        ("[check:it]\ncommand =\n", ":3: command is empty; write the plug-in"),
        ("[check:it]\ncommand = echo 'x\n", ":3: command: a quote is not closed"),
        ("[check:My-Raid]\ncommand = x\n", ":3: 'My-Raid' cannot be a check's name; write small"),
        (
            f"[check:{reach.NAME}]\ncommand = x\n",
            f":3: {reach.NAME!r} stands for the way to a node",
        ),
        (
            "[check:it]\ncommand = x\n[all:vars]\nit.limit = 3\n",
            ":5: it.limit is the same for all nodes; write it below [check:it]",
        ),
    ],
)
def test_a_fault_is_one_line_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text)
    assert len(raised.value.problems) == 1
    assert raised.value.problems[0].startswith(f"{tmp_path}/inventory.ini{expected}")


def test_options_of_the_command_line(tmp_path: Path) -> None:
    text = "[check:it]\ncommand = echo hallo\n"
    _, checks = loaded(tmp_path, text, "it.limit=3", "it.needs_root=yes")
    assert (checks["it"].limit, checks["it"].needs_root) == (3, True)
    with pytest.raises(UsageError, match="it.limit: 'x' is not a whole number"):
        loaded(tmp_path, text, "it.limit=x")


@pytest.mark.parametrize(
    ("user", "expected"),
    [("ernie", "pass ok: uid 0"), ("paula", "skip needs_root: not looked at: needs root")],
)
def test_a_plugin_as_root_over_ssh(tmp_path: Path, host: Host, user: str, expected: str) -> None:
    """Ernie may use sudo without a password; what paula may not is UNKNOWN, once for the node."""
    text = (
        f"[all:vars]\nbecome = sudo\nuser = {user}\nport = {host.port}\nkey = {host.keys.plain}\n"
        "[check:it]\ncommand = echo uid $(id -u)\nneeds_root = yes\n"
    )
    file = tmp_path / "inventory.ini"
    file.write_text(f"there host=127.0.0.1\n{text}")
    done = clustercheck("run", "-i", file, *ssh_words(host), "-c", "it", "--format", "json")
    node = json.loads(done.out)["nodes"]["there"]["checks"]
    (finding,) = node["it"]["findings"]
    code = finding["code"].removeprefix("it.")
    assert f"{finding['status']} {code}: {finding['message']}" == expected
    assert done.status == (0 if user == "ernie" else 3), done


def test_a_real_plugin_of_the_distribution(tmp_path: Path) -> None:
    try:
        fetch()
    except CannotFetch as why:
        pytest.skip(str(why))
    own, machines = (Path(top, "usr/lib/nagios/plugins") for top in (TOOLS / "plugins", "/"))
    folder = own if own.exists() else machines
    text = (
        f"[check:space]\ncommand = {folder}/check_disk -w 1 -c 0 -p /\n"
        f"[check:load]\ncommand = {folder}/check_load -w 0,0,0 -c 9999,9999,9999\n"
        f"[check:procs]\ncommand = {folder}/check_procs -c 1:1 -C no-such-process\n"
    )
    found = asked(*loaded(tmp_path, text)).nodes["here"].findings
    assert {name: findings[0].code for name, findings in found.items()} == {
        "space": "ok",
        "load": "warning",
        "procs": "critical",
    }
    assert found["space"][0].message.startswith("DISK OK - free space: / ")
    assert found["load"][0].value is not None


PACKAGE = {
    "good_one": '"""Looks at nothing and is content."""\n'
    "from clustercheck.check import Check, Code, NoOptions, ok\n"
    "CHECK = Check(title='A good one', options=NoOptions(), probe='fact a b',\n"
    "    judge=lambda facts, options: [ok('fine', facts['a'])], codes={'fine': Code('Fine.')})\n",
    "raises": "raise RuntimeError('no licence')\n",
    "prints": "print('from its import'); raise BaseException('odd')\n",
    "leaves": "import sys\nsys.exit('no licence')\n",
    "no_check": "CHEK = 1\n",
    "bad_options": "from clustercheck.check import Check\n"
    "CHECK = Check(title='x', options=3, judge=print, codes={})\n",
}


@pytest.fixture
def other_package(tmp_path: Path) -> Path:
    """A second package as pip would lay it out."""
    site = tmp_path / "site"
    made = site / "site_checks"
    made.mkdir(parents=True)
    for name, text in PACKAGE.items():
        (made / f"{name}.py").write_text(text)
    (made / "__init__.py").touch()
    info = site / "Site.Checks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Site.Checks\nVersion: 1.0\n")
    points = [*(f"{name} = site_checks.{name}" for name in PACKAGE)]
    points += ["value = site_checks.good_one:CHECK", "gone = site_checks.gone"]
    taken = next(iter(registry.own()))
    points += [f"{name} = site_checks.good_one" for name in (taken, reach.NAME, "No-Word")]
    text = "\n".join(points)
    (info / "entry_points.txt").write_text(f"[clustercheck.checks]\n{text}\n")
    return site


def test_other_packages_checks(
    other_package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(other_package))
    own, checks = registry.own(), registry.load()
    taken = next(iter(own))
    assert capsys.readouterr() == ("", ""), "what nobody asked for was loaded"
    added = {name: check for name, check in checks.items() if name not in own}
    assert capsys.readouterr() == ("", "from its import\n")
    read = inventory.empty(checks)
    found = asked(read, added).nodes["here"].findings
    words = {name: f"{fs[0].status.value} {fs[0].message}" for name, fs in found.items()}
    broken = "unknown the check could not be loaded: "
    assert words == {
        "good_one": "pass b",
        "value": "pass b",
        "raises": f"{broken}RuntimeError: no licence",
        "prints": f"{broken}BaseException: odd",
        "leaves": f"{broken}SystemExit: no licence",
        "no_check": f"{broken}it has no CHECK of type Check, but module",
        "bad_options": f"{broken}its options are no dataclass, but int",
        "gone": f"{broken}ModuleNotFoundError: No module named 'site_checks.gone'",
        f"site_checks_{taken}": f"{broken}{taken!r} of the package Site.Checks is the name of "
        "another check",
        f"site_checks_{reach.NAME}": f"{broken}{reach.NAME!r} of the package Site.Checks is the "
        "name of another check",
        "site_checks_no_word": f"{broken}'No-Word' of the package Site.Checks is no plain word "
        "(small letters, digits and _)",
    }
    assert checks[taken].title == own[taken].title, "another package took the name of a check"
    assert registry.docs("good_one") == "Looks at nothing and is content."
    assert registry.docs("value") == "Looks at nothing and is content."
    assert registry.docs("raises") == "" and registry.docs("none_such") == ""
    assert registry.docs(taken)
