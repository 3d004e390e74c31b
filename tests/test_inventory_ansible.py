"""An existing inventory of Ansible's is read as it stands."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from clustercheck.check import Check, option
from clustercheck.inventory import Inventory, load
from clustercheck.node import Node


@dataclass(frozen=True)
class Options:
    warn: float = option(0.5, "offset from which there is a warning", unit="s")


NTP = Check(title="", options=Options(), judge=lambda facts, options: [], codes={})


def loaded(tmp_path: Path, text: str) -> Inventory:
    path = tmp_path / "hosts"
    path.write_text(text)
    return load(path, {"ntp": NTP})


WHOLE = """\
# It is the example in the /etc/ansible/hosts of many a site.
mail.example.com
localhost ansible_connection=local ansible_python_interpreter="/usr/bin/env python3"

[webservers]
foo.example.com ansible_port=5555 ansible_host=192.0.2.50 port=8080
bar.example.com:5309
www[01:03].example.com ansible_user=web motd='a = "b"' # three of them

[dbservers]
db-[a:b].example.com http_port=80 maxRequestsPerChild=808
one.example.com

[dbservers:vars]
ansible_user = "{{ db }}"
ansible_user = dba
ntp_server=ntp.atlanta.example.com
proxy=proxy.example.com # a comment
escape='#no comment'
ansible_ssh_common_args='-o ProxyCommand="ssh -W %h:%p -q jump@bastion" -o ControlPersist=60s'

[atlanta]
one.example.com
foo.example.com

[southeast:children]
atlanta
webservers

[usa:children]
southeast
dbservers

[usa:vars]
ansible_become=true
ansible_user=everybody
ntp.warn = 0.25

[all:vars]
ansible_ssh_private_key_file=/etc/keys/ansible
""".replace('ansible_user = "{{ db }}"\n', "")


def test_a_whole_inventory(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, WHOLE)
    key = "/etc/keys/ansible"
    web, db = ("webservers", "southeast", "usa"), ("dbservers", "usa")
    nodes = {
        "mail.example.com": Node("mail.example.com", key=key),
        "localhost": Node("localhost", key=key, local=True),
        "foo.example.com": Node(
            "foo.example.com", host="192.0.2.50", port=5555, user="everybody", key=key,
            become="sudo", groups=("webservers", "atlanta", "southeast", "usa"),
        ),
        "bar.example.com": Node(
            "bar.example.com", port=5309, user="everybody", key=key, become="sudo", groups=web
        ),
    } | {
        name: Node(name, user="web", key=key, become="sudo", groups=web)
        for name in ("www01.example.com", "www02.example.com", "www03.example.com")
    } | {
        name: Node(name, user="dba", key=key, jump="jump@bastion", become="sudo", groups=db)
        for name in ("db-a.example.com", "db-b.example.com")
    } | {
        "one.example.com": Node(
            "one.example.com", user="dba", key=key, jump="jump@bastion", become="sudo",
            groups=("atlanta", "southeast", "dbservers", "usa"),
        ),
    }  # fmt: skip
    assert inventory.nodes == nodes
    assert inventory.options("ntp", "one.example.com").warn == 0.25
    assert [note.removeprefix(f"{tmp_path}/") for note in inventory.notes] == [
        "hosts:16: ntp_server: not a variable of clustercheck; left aside",
        "hosts:17: proxy: not a variable of clustercheck; left aside",
        "hosts:18: escape: not a variable of clustercheck; left aside",
        "hosts:19: ansible_ssh_common_args: '-o ControlPersist=60s' is not applied; "
        "~/.ssh/config is",
        "hosts:3: ansible_python_interpreter: not a variable of clustercheck; left aside",
        "hosts:6: port: not a variable of clustercheck; left aside",
        "hosts:8: motd: not a variable of clustercheck; left aside",
        "hosts:11: http_port: not a variable of clustercheck; left aside",
        "hosts:11: maxRequestsPerChild: not a variable of clustercheck; left aside",
    ]


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("n1 ansible_ssh_host=h ansible_ssh_user=u ansible_ssh_port=9", Node("n1", "h", 9, "u")),
        ("n1 ansible_ssh_port=9 ansible_port=8", Node("n1", port=9)),
        ("n1:2222 ansible_user=u", Node("n1", port=2222, user="u")),
        ("n1 ansible_private_key_file=/k", Node("n1", key="/k")),
        ("n1 ansible_host='{{ inventory_hostname }}.lan'", Node("n1", host="n1.lan")),
        ("n1 ansible_host=2001:db8::1", Node("n1", host="2001:db8::1")),
        ("n1 ansible_become=yes", Node("n1", become="sudo")),
        ("n1 ansible_become=True", Node("n1", become="sudo")),
        ("n1 ansible_become=1 ansible_become_method=sudo", Node("n1", become="sudo")),
        ("n1 ansible_become=no", Node("n1")),
        ("n1 ansible_become=yes ansible_become_method=su", Node("n1")),
        ("n1 ansible_become=yes ansible_become_user=dba", Node("n1")),
        ("n1 ansible_connection=ssh", Node("n1")),
        ("n1 ansible_connection=local", Node("n1", local=True)),
        ("n1 ansible_port=8 jump=elsewhere prot=4 user=bob", Node("n1", port=8)),
        ("n1 ansible_port=8\nn1 ansible_port=9", Node("n1", port=9)),
    ],
)
def test_variables(tmp_path: Path, line: str, node: Node) -> None:
    assert list(loaded(tmp_path, line + "\n").nodes.values()) == [node]


def test_an_address_in_brackets(tmp_path: Path) -> None:
    text = "[2001:db8::1]:2222 ansible_user=u\n[2001:db8::2]\n"
    assert list(loaded(tmp_path, text).nodes.values()) == [
        Node("2001:db8::1", port=2222, user="u"),
        Node("2001:db8::2"),
    ]


@pytest.mark.parametrize(
    ("arguments", "jump"),
    [
        ("-o ProxyJump=bastion", "bastion"),
        ("-oProxyJump=me@bastion:2222 -o X=y", "me@bastion:2222"),
        ("-o 'ProxyJump bastion'", "bastion"),
        ("-J a,b@c", "a,b@c"),
        ("-Ja", "a"),
        ("-o proxyjump=none", ""),
        ("-C -o ProxyJump=first -J second", "first"),
        ("-o ProxyCommand='ssh -W %h:%p bastion'", "bastion"),
        ("-o ProxyCommand='ssh -p 2222 -l me -q bastion -W [%h]:%p'", "me@bastion:2222"),
        ("-o ProxyCommand='nc -X 5 %h %p'", ""),
        ("-o ProxyCommand='ssh -i /key -W %h:%p bastion'", ""),
        ("-o StrictHostKeyChecking=no", ""),
        ("", ""),
    ],
)
@pytest.mark.parametrize("variable", ["ansible_ssh_common_args", "ansible_ssh_extra_args"])
def test_jump_host(tmp_path: Path, variable: str, arguments: str, jump: str) -> None:
    inventory = loaded(tmp_path, f"n1\n[all:vars]\n{variable} = {arguments}\n")
    assert inventory.nodes["n1"].jump == jump
    quoted = loaded(tmp_path, f'n1 {variable}="{arguments}"\n')
    assert quoted.nodes["n1"].jump == jump


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "ansible_ssh_common_args='-o ProxyCommand=\"nc %h %p\"'",
            "ansible_ssh_common_args: '-o ProxyCommand=nc %h %p' is not applied; ~/.ssh/config is",
        ),
        (
            "ansible_become_method=doas",
            "ansible_become_method: 'doas' is not sudo: probes run as the login user",
        ),
        ("ansible_connection=winrm", "ansible_connection: 'winrm' is not known here; ssh is used"),
        ("ansible_become_password=x", "ansible_become_password: not a variable of clustercheck; "
         "left aside"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_to_is_noted(tmp_path: Path, line: str, note: str) -> None:
    assert loaded(tmp_path, f"n1 {line}\n").notes == (f"{tmp_path}/hosts:1: {note}",)


@pytest.mark.parametrize(
    ("text", "user"),
    [
        # host before child before parent before all
        ("n1 ansible_user=host\n[g]\nn1\n[g:vars]\nansible_user=g\n", "host"),
        ("[p:children]\nc\n[c]\nn1\n[c:vars]\nansible_user=c\n[p:vars]\nansible_user=p\n", "c"),
        ("[g]\nn1\n[g:vars]\nansible_user=g\n[all:vars]\nansible_user=all\n", "g"),
        # of two at one depth, the last by name, wherever it stands
        ("[b]\nn1\n[a]\nn1\n[a:vars]\nansible_user=a\n[b:vars]\nansible_user=b\n", "b"),
        # unless a priority is set
        (
            "[b]\nn1\n[a]\nn1\n[a:vars]\nansible_user=a\nansible_group_priority=9\n"
            "[b:vars]\nansible_user=b\n",
            "a",
        ),
        # the deeper of two that have nothing to do with one another
        ("[z]\nn1\n[p:children]\na\n[a]\nn1\n[a:vars]\nansible_user=a\n[z:vars]\nansible_user=z\n",
         "a"),
        # an old name before the new one, however far
        ("n1 ansible_user=new\n[all:vars]\nansible_ssh_user=old\n", "old"),
        ("n1\n[ungrouped:vars]\nansible_user=u\n[all:vars]\nansible_user=all\n", "u"),
    ],
)  # fmt: skip
def test_precedence(tmp_path: Path, text: str, user: str) -> None:
    assert loaded(tmp_path, text).nodes["n1"].user == user


def test_plain_variables_are_ours_where_none_is_ansibles(tmp_path: Path) -> None:
    assert loaded(tmp_path, "n1 port=8080\n").nodes["n1"].port == 8080
    assert loaded(tmp_path, "n1 port=8080\nn2 ansible_user=u\n").nodes["n1"].port == 0
