"""The command sweep and a real mail server: who gets what, and what is told where nobody does."""

from pathlib import Path

from tests.command import Done, clustercheck
from tests.mail_servers import ELSEWHERE, Keeper, make_trust, secret_file, server

INVENTORY = """\
[gpu]
gpu01 ansible_connection=local
[cpu]
cpu01 ansible_connection=local
[check:disk_rate]
command = /bin/sh -c 'echo "the disk is slow"; exit 2'
[sweep]
cluster = hpc1
mail.to = ops@example.org
mail.sender = clustercheck@example.org
mail.server = smtp://{host}:{port}
mail.ca = {ca}
mail.login = {login}
mail.patience = 0
[gpu:vars]
mail.to = gpu-team@example.org
"""


def sweep(folder: Path, *words: str) -> Done:
    state = ("--state", str(folder / "state"))
    return clustercheck("sweep", "-i", folder / "hpc.ini", "-c", "disk_rate", *state, *words)


def test_who_gets_what(tmp_path: Path) -> None:
    trust, login = make_trust(tmp_path / "trust"), secret_file(tmp_path)
    keeper = Keeper()
    with server(keeper, trust=trust, login=True) as port:
        text = INVENTORY.format(host=ELSEWHERE, port=port, ca=trust.authority, login=login)
        (tmp_path / "hpc.ini").write_text(text)
        shown = sweep(tmp_path, "--print-mail")
        assert keeper.got == []
        done = sweep(tmp_path)
    assert (done.status, done.err) == (2, "")
    everybody, team = keeper.got
    assert (everybody.to, team.to) == (["ops@example.org"], ["gpu-team@example.org"])
    assert everybody.message["Subject"] == "[hpc1] 1 new failure on 2 nodes, 0/2 pass"
    assert team.message["Subject"] == "[hpc1] 1 new failure, 0/1 pass"
    for subject in (everybody.message["Subject"], team.message["Subject"]):
        assert f"\nSubject: {subject}\n" in shown.out
    for got, nodes in ((everybody, ["cpu01", "gpu01"]), (team, ["gpu01"])):
        (page,) = got.message.iter_attachments()
        whole = page.get_content()
        assert [node for node in ("cpu01", "gpu01") if node in whole] == nodes
        assert got.secret


def test_where_nobody_takes_it_the_exit_code_says_so(tmp_path: Path) -> None:
    (tmp_path / "hpc.ini").write_text(
        INVENTORY.format(host="localhost", port=9, ca="", login="/no/such/file")
    )
    done = sweep(tmp_path)
    assert done.status == 69
    assert done.out.startswith("[hpc1] 1 new failure on 2 nodes, 0/2 pass\n")
    assert done.err == (
        "clustercheck: mail to ops@example.org, gpu-team@example.org was not sent: mail.login:"
        " /no/such/file cannot be read: No such file or directory; 2 mails wait in"
        f" {tmp_path}/state/hpc1.mail for the next sweep. Write the file, with the user in its"
        " first line and the password in its second.\n"
    )
