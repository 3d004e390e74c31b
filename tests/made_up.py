"""Made-up nodes and worded verdicts, for the tests of checks."""

import dataclasses
import os
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clustercheck import facts, registry, script, verdict
from clustercheck.check import Facts, Target
from tests.shells import SHELLS, sh_folder, shell_words

CHECKS = dict(registry.load())


def options_of(name: str, **changed: Any) -> Any:
    """The check's default options with some changed."""
    return dataclasses.replace(CHECKS[name].options, **changed)


def judged(name: str, told: Mapping[str, str], **changed: Any) -> list[str]:
    """The findings as "status code: message", with the remedies held to what the check declares."""
    check = CHECKS[name]
    told_whole = facts.Told(Facts(told), whole=True, status="0")
    findings = verdict.judge(check, told_whole, options_of(name, **changed), peers=["peer"])
    for finding in findings:
        declared = {**verdict.COMMON_CODES, **check.codes}
        assert finding.code in declared, f"{finding.code} is not among the codes of {name}"
        if finding.remedy:
            assert finding.remedy in declared[finding.code].remedies, finding
    return [f"{f.status.value} {f.code}: {f.message}" for f in findings]


class MadeUpNode:
    """A tree of files and a folder of commands in place of a real node.

    A probe sees the files below $ROOT, and the commands before the real ones.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.bin = folder / "bin"
        self.root.mkdir()
        self.bin.mkdir()
        self.system_path = script.PATH

    def file(self, path: str, content: str | bytes = "", mode: int = 0o644) -> Path:
        """Put a file at an absolute path of the node."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)
        return target

    def command(self, name: str, body: str) -> None:
        """A command as a sh script."""
        target = self.bin / name
        target.write_text(f"#!/bin/sh\n{body}\n")
        target.chmod(0o755)

    def says(self, name: str, stdout: str = "", stderr: str = "", status: int = 0) -> None:
        """A command that prints what was recorded."""
        for kind, text in (("out", stdout), ("err", stderr)):
            (self.bin / f".{name}.{kind}").write_text(text)
        self.command(
            name,
            f"cat {shlex.quote(str(self.bin / f'.{name}.out'))}\n"
            f"cat {shlex.quote(str(self.bin / f'.{name}.err'))} >&2\nexit {status}",
        )

    def hide(self, *names: str) -> None:
        """As if the commands were not installed, even where this machine has them."""
        folder = self.bin.with_name("system")
        if not folder.exists():
            folder.mkdir()
            for directory in reversed(script.PATH.split(":")):
                for command in Path(directory).glob("*"):
                    link = folder / command.name
                    link.unlink(missing_ok=True)
                    link.symlink_to(command)
            self.system_path = str(folder)
        for name in names:
            (folder / name).unlink(missing_ok=True)

    def told(
        self,
        name: str,
        *,
        shell: str = "sh",
        path: str | None = None,
        peers: Sequence[Target] = (),
        **changed: Any,
    ) -> facts.Told:
        """What the real probe tells: the script and its probes run in `shell`, one of SHELLS.

        path: the whole PATH; by default the made-up commands before the system's.
        """
        if path is None:
            path = f"{self.bin}:{self.system_path}"
            if shell in SHELLS:
                path = f"{sh_folder(shell)}:{path}"
        frame = script.Frame(root=str(self.root), path=path)
        asked = [script.Asked(name, CHECKS[name], options_of(name, **changed))]
        done = subprocess.run(
            [*(shell_words(shell) if shell in SHELLS else [shell]), "-s"],
            input=script.build(frame, asked, peers=peers).encode(),
            capture_output=True,
            timeout=60,
            env={"HOME": str(self.root), "PATH": os.environ["PATH"]},
            check=False,
        )
        reader = facts.Reader(frame.mark, time.time)
        reader.feed(done.stdout)
        assert reader.done, done.stderr.decode(errors="replace")
        return reader.told[name]

    def probe(self, name: str, *, shell: str = "sh", **changed: Any) -> dict[str, str]:
        """The facts that the probe reports; it must come to its own end."""
        told = self.told(name, shell=shell, **changed)
        assert told.whole, told
        return dict(told.facts)
