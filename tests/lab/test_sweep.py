"""Three nights of a cluster: well, two faults, one of them mended: each has its mail and page."""

import email
import email.policy
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host import Keys
from tests.lab.cluster import Lab
from tests.lab.spec import healthy

CHECKS = "ntp,tmp,login,fingerprint"


@pytest.fixture(scope="module")
def three(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("nights"), keys, healthy(3))
    yield made
    made.close()


class Nights:
    """Sweeps, with a sendmail that keeps what it is given."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.state = ["-i", str(folder / "lab.ini"), "--state", str(folder)]
        sendmail = folder / "sendmail"
        count = f"n=$(ls {folder}/*.eml 2>/dev/null | wc -l)"
        sendmail.write_text(f'#!/bin/sh\n{count}\ncat >"{folder}/$n.eml"\n')
        sendmail.chmod(0o755)
        (folder / "lab.ini").write_text(
            lab.inventory.read_text()
            + f"\n[sweep]\ncluster = hpc1\npage = {folder}/page.html\n"
            + f"mail.to = ops@example.org\nmail.server = {sendmail}\n"
        )

    def asked(self) -> "subprocess.CompletedProcess[str]":
        """A sweep."""
        words = ["sweep", *self.state, "-c", CHECKS]
        return self.clustercheck(*words, "-F", str(self.lab.ssh_config))

    def sweep(self) -> tuple[int, str, str]:
        """A sweep's exit status, and the subject and text of its mail."""
        done = self.asked()
        mails = sorted(self.folder.glob("*.eml"), key=lambda path: int(path.stem))
        message = email.message_from_bytes(mails[-1].read_bytes(), policy=email.policy.default)
        body = message.get_body(("plain",))
        assert body is not None
        return done.returncode, str(message["Subject"]), body.get_content()

    def clustercheck(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = self.lab.in_head([sys.executable, "-m", "clustercheck", *words])
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert "Traceback" not in done.stderr, done.stderr
        return done


def test_three_nights(three: Lab, tmp_path: Path) -> None:
    nights = Nights(three, tmp_path)
    status, subject, text = nights.sweep()
    assert (status, subject) == (0, "[hpc1] first sweep, 3/3 pass")
    assert "3 nodes: 3 pass; 4 checks" in text and "\n- " not in text

    three.run("node02", "chmod 0755 /tmp")
    three.run("node03", "kill $(cat /run/chrony/chronyd.pid)")
    status, subject, text = nights.sweep()
    assert (status, subject) == (2, "[hpc1] 2 new failures, 1/3 pass")
    assert parts(text) == {
        "NEW": ["FAIL ntp.no_daemon on node03", "FAIL tmp.mode on node02"],
    }
    assert "/tmp has mode drwxr-xr-x, should be drwxrwxrwt" in text
    assert "`chmod 1777 /tmp`" in text and "(field\n    notes §4.1.1)" in text

    three.run("node02", "chmod 1777 /tmp")
    status, subject, text = nights.sweep()
    assert (status, subject) == (2, "[hpc1] 1 recovered, 2/3 pass")
    (still,) = parts(text).pop("STILL THERE")
    assert re.fullmatch(r"FAIL ntp.no_daemon on node03, since \d+ \w{3} \d{4}", still)
    assert parts(text)["RECOVERED"] == ["tmp.mode on node02, was fail"]
    page = (tmp_path / "page.html").read_text()
    (of_node,) = re.findall(r"login.start</b>[^\n]*?starts in[^\n]*?</svg>([^<]*)", page)[:1]
    assert "in 3 runs" in of_node

    why = ["--until", "2999-01-01", "--why", "it goes to the repair"]
    nights.clustercheck("accept", "ntp.no_daemon", "-w", "node03", *why, *nights.state)
    done = nights.asked()
    (accepted,) = parts(done.stdout)["ACCEPTED"]
    assert done.returncode == 0
    assert accepted.startswith("FAIL ntp.no_daemon on node03, until 1 Jan 2999: it goes to the")

    told = nights.clustercheck("history", "node02", "tmp", *nights.state)
    assert told.stdout.splitlines()[0] == ".F.."
    told = nights.clustercheck("diff", "1", "4", *nights.state)
    assert (told.returncode, told.stdout) == (0, "no difference\n")


def parts(text: str) -> dict[str, list[str]]:
    """The first line of each entry, by the heading that it stands below."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.isupper():
            lines = found.setdefault(line, [])
        elif line.startswith("- "):
            lines.append(line[2:])
    return found
