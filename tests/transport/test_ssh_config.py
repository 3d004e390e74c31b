"""Configuration files mean what they mean to ssh itself."""

import getpass
import logging
import subprocess
import time
from pathlib import Path

import pytest

from clustercheck.errors import ConfigError
from clustercheck.ssh_config import SshConfig
from tools.fetch import program

CONFIGS = {
    "first value wins": "Host node01\n  Port 2201\nHost *\n  Port 2222\n  User everybody\n",
    "before any block": "Port 2200\nHost node01\nPort 2201\n",
    "negation": "Host node* !node01\n  User others\nHost node0?\n  User few\n",
    "equals and quotes": 'Host "node01"\n  User = "somebody"\n\tPort=2201\n  hostname="10.0.0.1"\n',
    "a comment behind": "Host node01 # the first\n  User somebody # ours\n",
    "several names": "Host login node01 node02\n  HostName %h.cluster.test\n",
    "proxy command": 'Host *\n  ProxyCommand nc -X "connect" %h %p # not a comment\n',
    "match host sees HostName": (
        "Host node01\n  HostName 10.0.0.1\nMatch host 10.0.*\n  User inside\nMatch host node01\n"
        "  Port 9\n"
    ),
    "match originalhost": (
        "Host node01\n  HostName 10.0.0.1\nMatch originalhost node01,node02\n  User inside\n"
    ),
    "match user": "Match user root\n  Port 2201\nMatch !user root\n  Port 2202\n",
    "match localuser": f"Match localuser {getpass.getuser()}\n  Port 2201\n",
    "match exec": 'Match exec "test %h = node01"\n  Port 2201\nMatch all\n  Port 2202\n',
    "match with two": "Match host node01 user nobody\n  Port 2201\n",
    "match final": "Match final host *.test\n  Port 2201\nHost node01\n  HostName node01.test\n",
    "match all": "Match all\n  User somebody\nHost node01\n  User late\n",
    "include": "Include more.conf\nHost *\n  User late\n",
    "include by pattern": "Include conf.d/*.conf\n",
    "include in a block": "Host node02\n  Include more.conf\nHost *\n  User late\n",
    "include, and on in the block": "Host node01\n  Include more.conf\n  Port 2299\n",
    "no such include": "Include absent.conf\nPort 2201\n",
    "identities": "IdentityFile /a\nHost node01\n  IdentityFile /b\n  IdentityFile /a\n",
    "known hosts": "UserKnownHostsFile /a /b\nHost node01\n  UserKnownHostsFile /c\n",
}
MORE = "User included\nHost node01\n  Port 2201\nHost *\n  ConnectTimeout 7\n"
COMPARED = ("hostname", "port", "user", "proxycommand", "connecttimeout", "userknownhostsfile")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".ssh"
    (folder / "conf.d").mkdir(parents=True)
    (folder / "more.conf").write_text(MORE)
    (folder / "conf.d/10.conf").write_text("Port 2210\n")
    (folder / "conf.d/20.conf").write_text("Port 2220\nUser twenty\n")
    return tmp_path


def ours(home: Path, name: str, user: str = "") -> dict[str, str]:
    config = SshConfig((home / ".ssh/config",), home)
    return {k: " ".join(v) for k, v in config.lookup(name, user).items()}


def theirs(config: Path, name: str, user: str = "") -> dict[str, str]:
    """What `ssh -G` says."""
    ssh = str(program("ssh"))
    command = [ssh, "-G", "-F", str(config), *(["-l", user] if user else []), name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if " " in line]
    return {line[0]: line[1] for line in lines}


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("user", ["", "root", "nobody"])
@pytest.mark.parametrize("name", ["node01", "node02"])
@pytest.mark.parametrize("case", CONFIGS)
def test_as_ssh_understands_it(home: Path, case: str, name: str, user: str) -> None:
    config = home / ".ssh/config"
    # ssh finds relative names of Include below the passwd entry's home only.
    text = CONFIGS[case]
    config.write_text(text)
    for_ssh = home / "for_ssh"
    for_ssh.write_text(text.replace("Include ", f"Include {home}/.ssh/"))
    found, right = ours(home, name, user), theirs(for_ssh, name, user)
    plain = theirs(Path("/dev/null"), name, user)
    for keyword in COMPARED:
        value = found.get(keyword, plain.get(keyword, ""))
        value = value.replace("%h", name) if keyword == "hostname" else value
        if keyword == "user" and user:
            continue  # what is asked for wins over what is configured, in the route
        if keyword == "connecttimeout":
            value = value.replace("none", "0")
            right[keyword] = right.get(keyword, "0").replace("none", "0")
        assert value == right.get(keyword, ""), keyword


def test_all_identity_files_count_in_order(home: Path) -> None:
    (home / ".ssh/config").write_text(CONFIGS["identities"])
    config = SshConfig((home / ".ssh/config",), home)
    assert config.lookup("node01")["identityfile"] == ("/a", "/b")


def test_the_users_file_counts_before_the_systems(home: Path) -> None:
    mine, systems = home / "mine", home / "system"
    mine.write_text("Host node*\n  User me\n")
    systems.write_text("User them\nPort 2222\n")
    found = SshConfig((mine, systems), home).lookup("node01")
    assert (found["user"], found["port"]) == (("me",), ("2222",))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Host *\n  Port\n", "config:2: a keyword of ssh_config and its value should be here"),
        ("Port many\n", "config:1: Port is 'many', should be a number from 1 to 65535"),
        ("\nConnectTimeout soon\n", "config:2: ConnectTimeout is 'soon', should be seconds"),
        ('User "half\n', "config:1: a quotation mark is not closed"),
        ("Match moon full\n", "config:1: Match does not know 'moon'"),
        ("Match host\n", "config:1: Match host needs a value"),
        ("User # nobody\n", "config:1: a value should be here, not only a comment"),
        ("Include config\n", "config:1: files are included more than 16 deep"),
    ],
)
def test_a_fault_is_named_with_its_place(home: Path, text: str, told: str) -> None:
    (home / ".ssh/config").write_text(text)
    with pytest.raises(ConfigError) as fault:
        ours(home, "node01")
    assert str(fault.value) == f"{home}/.ssh/{told}"


def test_a_file_that_cannot_be_read_is_named(home: Path) -> None:
    (home / ".ssh/config").mkdir()
    with pytest.raises(ConfigError, match=r"config: cannot be read: Is a directory"):
        ours(home, "node01")


def test_a_criterion_that_cannot_be_told_is_said_and_does_not_hold(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (home / ".ssh/config").write_text("Match localnetwork 10.0.0.0/8\n  Port 2201\n")
    with caplog.at_level(logging.WARNING):
        assert ours(home, "node01") == {}
    assert "config:1: Match localnetwork is not supported" in caplog.text


def test_a_block_for_each_of_many_nodes_is_found_by_name(home: Path) -> None:
    names = [f"node{i:05}" for i in range(10_000)]
    (home / ".ssh/config").write_text(
        "".join(f"Host {name}\n  HostName {name}.cluster.test\n" for name in names)
        + "Host *\n  User admin\n"
    )
    config = SshConfig((home / ".ssh/config",), home)
    began = time.process_time()
    found = [config.lookup(name) for name in names]
    # Walking all blocks for each node would be 100 million comparisons: a minute and more.
    assert time.process_time() - began < 5
    assert found[7] == {"hostname": ("node00007.cluster.test",), "user": ("admin",)}
