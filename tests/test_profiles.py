"""Profiles: what they choose, how strictly they judge, and the number that tells them apart."""

import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from clustercheck import explain, inventory, planning, profile
from clustercheck.check import Remedy, Status, ok, unknown, warn
from clustercheck.errors import ConfigError, UsageError
from clustercheck.options import as_text
from clustercheck.report import NodeResult, Report
from clustercheck.settings import Inventory
from tests.made_up import CHECKS

DOCS = Path(__file__).parent.parent / "docs"
NODES = "n[1-3]\n[fast]\nn1\n"


def read(folder: Path, text: str, name: str = "benchmark", *overrides: str) -> Inventory:
    """The inventory with a profile in use."""
    file = folder / "inventory.ini"
    file.write_text(NODES + text)
    return inventory.load(file, CHECKS, overrides).with_profile(name)


def value(found: Inventory, name: str, node: str = "n1") -> str:
    """An option as it stands for a node, and who set it."""
    (row,) = (row for row in found.effective(node) if f"{row.check}.{row.option}" == name)
    return f"{row.value} by {row.where.rpartition('/')[2]}"


def test_the_shipped_profile_fits_the_checks() -> None:
    (made,) = profile.shipped().values()
    assert set(made.checks) <= set(CHECKS)
    assert [word for word in made.fail_on if profile.unfitting(word, CHECKS, ())] == []
    found = inventory.empty(CHECKS).with_profile("benchmark")
    assert value(found, "cpu.busy_percent") == "10 by profile benchmark"
    assert value(found, "nfs.throughput") == "yes by profile benchmark"
    # the rate stays the check's own
    nfs = found.options("nfs", "n1")
    default = CHECKS["nfs"].options
    assert nfs.size_mb / nfs.max_seconds == pytest.approx(default.size_mb / default.max_seconds)


@pytest.mark.parametrize(
    ("text", "overrides", "expected"),
    [
        ("", (), "10 by profile benchmark"),
        ("[check:cpu]\nbusy_percent=20\n", (), "20 by inventory.ini:5 [check:cpu]"),
        ("[fast:vars]\ncpu.busy_percent=30\n", (), "30 by inventory.ini:5 [fast:vars]"),
        (
            "[fast:vars]\ncpu.busy_percent=30\n[profile:benchmark]\ncpu.busy_percent=40\n",
            (),
            "40 by inventory.ini:7 [profile:benchmark]",
        ),
        ("[profile:benchmark]\ncpu.busy_percent=40\n", ("cpu.busy_percent=50",), "50 by -o"),
        # another profile is not in use
        ("[profile:other]\ncpu.busy_percent=40\n", (), "10 by profile benchmark"),
    ],
)
def test_which_setting_counts(
    tmp_path: Path, text: str, overrides: tuple[str, ...], expected: str
) -> None:
    found = read(tmp_path, text, "benchmark", *overrides)
    assert value(found, "cpu.busy_percent") == expected


def test_without_a_profile_none_of_it_counts(tmp_path: Path) -> None:
    found = read(tmp_path, "[profile:benchmark]\ncpu.busy_percent=40\n", "")
    assert value(found, "cpu.busy_percent") == "150 by default"


def test_what_the_site_sets_and_what_is_shipped_may_contradict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = {"tmp": {"warn_percent": "95", "fail_percent": "99"}}
    monkeypatch.setattr(profile, "BENCHMARK_OPTIONS", strict)
    found = read(tmp_path, "[check:tmp]\nfail_percent=90\n")
    assert value(found, "tmp.fail_percent") == "90 by inventory.ini:5 [check:tmp]"
    assert value(found, "tmp.warn_percent") == "80 by default"


def test_a_profile_chooses_the_checks(tmp_path: Path) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text(
        f"{NODES}[profile:small]\nchecks = tmp, selinux\n[profile:light]\nskip = nfs gpu\n"
        "[profile:benchmark]\nskip = mtu\n"
    )

    def chosen(**wanted: str) -> list[str]:
        return list(planning.choose_all(planning.Wanted(file, **wanted)).checks)

    assert chosen(profile="small") == ["selinux", "tmp"]
    assert chosen(profile="small", checks="ntp") == ["ntp"]
    assert chosen(profile="small", skip="tmp") == ["selinux"]
    assert set(CHECKS) - set(chosen(profile="light")) == {"nfs", "gpu"}
    assert chosen(profile="benchmark") == sorted({*profile.BENCHMARK_CHECKS} - {"mtu"})
    with pytest.raises(UsageError, match="no check is left"):
        chosen(profile="small", skip="tmp,selinux")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("checks = tmp, ntpp", "no check is called 'ntpp'; did you mean 'ntp'?"),
        ("skip = foo", "no check is called 'foo'"),
        ("ntpp.x = 1", "no check is called 'ntpp'; did you mean 'ntp'?"),
        ("tmp.warn_perc = 1", "check tmp has no option 'warn_perc'; did you mean 'warn_percent'?"),
        (
            "tmp.warn_percent = much",
            "tmp.warn_percent: 'much' is not a whole number of %; write one such as 80",
        ),
        (
            "fail_on = ntp.ofset",
            "fail_on: no finding is called 'ntp.ofset'; did you mean 'ntp.offset'?",
        ),
        ("fail_on = ntp", "fail_on: no finding is called 'ntp'; write such as ntp.offset or mtu.*"),
        ("check = tmp", "a profile has no 'check'; did you mean 'checks'?"),
        ("user = root", "a profile has no 'user'; write checks, skip, fail_on or CHECK.OPTION"),
        ("tmp", "'tmp' is not NAME = VALUE"),
    ],
)
def test_a_fault_is_told_whether_the_profile_is_used_or_not(
    tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, f"[profile:night]\n{text}\n", "")
    assert [line.rpartition("inventory.ini:")[2] for line in raised.value.problems] == [
        f"5: {expected}"
    ]


def test_values_that_are_wrong_together_are_told_when_it_is_used(tmp_path: Path) -> None:
    text = "[profile:night]\ntmp.warn_percent = 95\n"
    assert read(tmp_path, text, "").profile is None
    with pytest.raises(ConfigError, match=r"inventory\.ini:5: tmp: "):
        read(tmp_path, text, "night")


def test_names_of_profiles(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="4: 'tmp' is a check; give the profile another name"):
        read(tmp_path, "[profile:tmp]\n", "")
    with pytest.raises(UsageError) as raised:
        read(tmp_path, "[profile:night]\n", "nihgt")
    assert str(raised.value) == ("--profile: no profile is called 'nihgt'; did you mean 'night'?")
    with pytest.raises(UsageError, match="'x'; the profiles are benchmark$"):
        inventory.empty(CHECKS).with_profile("x")


def test_a_plugin_may_be_in_a_profile(tmp_path: Path) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text(
        "n1\n[check:raid]\ncommand = check_raid\n"
        "[profile:night]\nchecks = raid\nfail_on = raid.warning\nraid.limit = 5\n"
    )
    chosen = planning.choose_all(planning.Wanted(file, profile="night"))
    assert list(chosen.checks) == ["raid"]
    assert chosen.inventory.options("raid", "n1").limit == 5


REMEDY = Remedy("Do it.")


def test_warnings_that_count_as_failures() -> None:
    found = {
        "cpu": [warn("busy", "busy", REMEDY), warn("governor", "slow", REMEDY)],
        "ntp": [unknown("offset", "not told"), ok("synchronised", "well")],
    }
    report = Report(
        started=datetime.now(timezone.utc),
        seconds=1,
        checks=["cpu", "ntp"],
        nodes={"n1": NodeResult("n1", found)},
    )
    assert report.nodes["n1"].status is Status.UNKNOWN
    strict = profile.strict_report(report, ("cpu.b*", "ntp.*"))
    statuses = [f.status.value for of in strict.nodes["n1"].findings.values() for f in of]
    assert statuses == ["fail", "warn", "unknown", "pass"]
    assert strict.exit_code == 2


def number(found: Inventory, *nodes: str, checks: tuple[str, ...] = ("tmp", "ntp")) -> str:
    return profile.digest(checks, nodes or ("n1", "n2"), found.options, found.fail_on)


def test_the_number_of_a_profile_is_of_what_is_in_it(tmp_path: Path) -> None:
    text = "checks = tmp, ntp\nfail_on = ntp.offset\ntmp.warn_percent = 70\n"
    night = number(read(tmp_path, f"[profile:night]\n{text}", "night"))
    assert night.startswith("sha256:") and len(night) == 71
    # neither its name nor where a value comes from
    assert number(read(tmp_path, f"[profile:day]\n{text}", "day")) == night
    elsewhere = "[profile:day]\nfail_on = ntp.offset\n[check:tmp]\nwarn_percent = 70 %\n"
    assert number(read(tmp_path, elsewhere, "day")) == night
    assert number(read(tmp_path, elsewhere, "day"), checks=("ntp", "tmp")) == night
    # but every value
    others = [
        number(read(tmp_path, f"[profile:night]\n{text.replace('70', '71')}", "night")),
        number(read(tmp_path, f"[profile:night]\n{text.replace('.offset', '.*')}", "night")),
        number(read(tmp_path, f"[profile:night]\n{text}", "night"), checks=("tmp",)),
        number(read(tmp_path, f"[profile:night]\n{text}", "night", "ntp.warn_offset=0.1")),
    ]
    assert len({night, *others}) == 5


def test_the_number_is_of_all_nodes(tmp_path: Path) -> None:
    found = read(tmp_path, "[fast:vars]\ntmp.warn_percent = 70\n", "")
    assert number(found, "n2") == number(found, "n3", "n2")
    assert len({number(found, "n1"), number(found, "n2"), number(found, "n1", "n2")}) == 3


def test_the_page_of_a_profile(tmp_path: Path) -> None:
    found = read(tmp_path, "[profile:benchmark]\nskip = nfs\ncpu.busy_percent = 40\n", "")
    page = explain.page("benchmark", CHECKS, found.profiles)
    assert "benchmark: a profile, which commands take with --profile benchmark" in page
    assert "nfs," not in page.partition("Checks")[2].partition("Warnings")[0]
    assert "cpu.*, gpu.memory," in page
    assert "inventory.ini:6 [profile:benchmark])" in " ".join(page.split())
    assert "nfs.throughput = yes\n" in page
    with pytest.raises(UsageError, match="did you mean 'benchmark'"):
        explain.page("benchmrak", CHECKS, found.profiles)


def test_the_page_for_users_is_true(tmp_path: Path) -> None:
    (example,) = re.findall(r"```ini\n(.*?)```", (DOCS / "gate.md").read_text(), re.DOTALL)
    found = read(tmp_path, example, "night")
    assert found.profile and found.profile.fail_on == ("ntp.offset", "nfs.*")
    assert value(found, "ntp.warn_offset").startswith("0.05 by inventory.ini")
    benchmark = found.profiles["benchmark"]
    assert (benchmark.skip, benchmark.checks) == (("mtu",), profile.BENCHMARK_CHECKS)


def test_as_text_of_shipped_options_is_what_they_are() -> None:
    found = inventory.empty(CHECKS).with_profile("benchmark")
    for check, options in profile.BENCHMARK_OPTIONS.items():
        for option, text in options.items():
            assert as_text(getattr(found.options(check, "n1"), option)) == text
