"""What the inventory says of the sweep and its mail, and what it says wrong."""

import re
from pathlib import Path

import pytest

from clustercheck import example, inventory, registry
from clustercheck.errors import ConfigError, UsageError
from clustercheck.parts import PARTS
from clustercheck.settings import NOBODY, Inventory

NODES = "[gpu]\ngpu[01-02]\n[cpu]\ncpu01\n"


def read(folder: Path, text: str, *overrides: str) -> Inventory:
    path = folder / "inventory.ini"
    path.write_text(text)
    return inventory.load(path, registry.own(), overrides)


def faults(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises((ConfigError, UsageError)) as caught:
        read(folder, text, *overrides)
    return str(caught.value).replace(f"{folder}/inventory.ini", "line ").splitlines()


def test_nothing_said_is_the_default(tmp_path: Path) -> None:
    found = read(tmp_path, NODES)
    assert found.options("mail", NOBODY) == PARTS["mail"].options
    assert found.options("sweep", NOBODY).keep == 90


def test_for_all_for_a_group_and_for_a_node(tmp_path: Path) -> None:
    text = (
        NODES
        + "gpu03 mail.to=anna@example.org\n[sweep]\ncluster = hpc1  # ours\nkeep = 30 days\n"
        + "mail.to = ops@example.org, root\nmail.server = smtps://[::1]\n"
        + "[gpu:vars]\nmail.to = gpu-team@example.org\nmail.when = always\n"
    )
    found = read(tmp_path, text)
    sweep, mail = found.options("sweep", NOBODY), found.options("mail", NOBODY)
    assert (sweep.cluster, sweep.keep) == ("hpc1", 30)
    assert (mail.to, mail.server) == (("ops@example.org", "root"), "smtps://[::1]")
    assert found.options("mail", "gpu01").to == ("gpu-team@example.org",)
    assert found.options("mail", "gpu01").when == "always"
    assert found.options("mail", "cpu01").to == mail.to
    assert found.options("mail", "gpu03").to == ("anna@example.org",)
    assert list(found.groups) == ["all", "gpu", "cpu"]


def test_the_command_line_is_nearest(tmp_path: Path) -> None:
    text = NODES + "[gpu:vars]\nmail.to=gpu-team@example.org\n"
    found = read(tmp_path, text, "mail.to=me@example.org")
    assert found.options("mail", "gpu01").to == ("me@example.org",)


def test_a_group_called_sweep_stays_one(tmp_path: Path) -> None:
    found = read(tmp_path, "[sweep]\nsweep01 port=22\n")
    assert found.groups["sweep"] == ("sweep01",)


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    text = """\
[gpu]
gpu01
[sweep]
kep = 30
keep = 0
mail.to = Anna <anna@example.org>
mail.server = mail.example.org:25
mail.sender = "a b"
mail.when = changed
mails.to = x
ntp.warn_offset = 3
mail.chat = x:secret
[gpu:vars]
mail.server = sendmail
sweep.keep = 3
[check:mail]
command = check_mailq
"""
    assert faults(tmp_path, text) == [
        "line :4: sweep has no option 'kep'; did you mean 'keep'?",
        "line :5: sweep.keep: '0' should be greater than or equal to 1; write one such as 90",
        "line :6: mail.to: 'Anna <anna@example.org>' is not an address such as ops@example.org;"
        " write anna@example.org alone",
        "line :7: mail.server: 'mail.example.org:25' is no mail server; write smtp://HOST,"
        " smtp://HOST:587, smtps://HOST or sendmail",
        "line :8: mail.sender: 'a b' is not an address such as ops@example.org",
        "line :9: mail.when: 'changed' is not one of change, fail, always; did you mean 'change'?",
        "line :10: nothing is called 'mails' here; did you mean 'mail'?",
        "line :11: warn_offset of a check stands below [check:ntp]",
        "line :12: mail.chat: one of the URLs is not written as SERVICE://…",
        "line :14: mail.server is the same for all nodes; write it below [sweep]",
        "line :15: sweep.keep is the same for all nodes; write it below [sweep]",
        "line :16: 'mail' is set below [sweep]; give the check another name",
    ]


@pytest.mark.parametrize(
    "address",
    [
        "me@x\r\nBcc: you@x",
        "-oQ/tmp@x",
        '"a b"@x',
        "a@b@c",
        "jürgen@example.org",
        "a@",
        "<a@b>",
        "a@b c",
    ],
)
def test_nothing_but_an_address_is_one(tmp_path: Path, address: str) -> None:
    (fault,) = faults(tmp_path, NODES, f"mail.to={address}")
    assert fault.startswith("-o: mail.to: ")
    assert "is not an address such as ops@example.org" in fault


def test_the_example_has_each_setting_and_can_be_read(tmp_path: Path) -> None:
    text = example.text(registry.own())
    section = text[text.index("#[sweep]") :]
    names = {f"mail.{field.name}" for field in PARTS["mail"].option_fields()}
    names |= {field.name for field in PARTS["sweep"].option_fields()}
    assert set(re.findall(r"(?m)^#([a-z_.]+) =", section)) == names
    found = read(tmp_path, "gpu01\n" + re.sub(r"(?m)^#(?=[^\s#])", "", section))
    assert found.options("sweep", NOBODY).cluster == "hpc1"
    assert found.options("mail", NOBODY).to == ("hpc-ops@example.org", "root")
    assert found.options("mail", NOBODY).chat == ("slack://TOKEN-A/TOKEN-B/TOKEN-C/#hpc",)
