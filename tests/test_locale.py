"""Nodes whose users speak other languages are judged as those that speak none."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.command import clustercheck, ssh_words
from tests.host import Host, Keys
from tests.transport.shared import node, run, ssh
from tools.fetch import TOOLS, CannotFetch, fetch, program

# Locale, and words in which the node's own tools then say that there is no such file, and head df's
# table with.
LANGUAGES = {
    "de_DE": ("Datei oder Verzeichnis nicht gefunden", "Dateisystem"),
    "fr_FR": ("Aucun fichier ou dossier de ce type", "Sys. de fichiers"),
    "pt_BR": ("Arquivo ou diretório inexistente", "Sist. Arq."),
    "zh_CN": ("没有那个文件或目录", "文件系统"),
}

SETTINGS = """
[check:tmp]
paths = /nonexistent, /root/secret, /etc/hostname
[check:says]
command = ls /nonexistent 2>&1; df / | head -n 1; date -d @0 +%A; printf %.1f 1.5; exit 1
"""


def make_languages() -> None:
    """Bring about .tools/languages, a layer; that takes its time, so it is kept."""
    fetch("locales")
    command = program("localedef") or TOOLS / "locales/usr/bin/localedef"
    folder = TOOLS / "languages/usr/lib/locale"
    folder.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        if (folder / f"{language}.utf8").exists():
            continue
        with tempfile.TemporaryDirectory(dir=TOOLS) as new:
            subprocess.run(
                [command, "--no-archive", "-i", language, "-f", "UTF-8", f"{new}/made"],
                env={**os.environ, "I18NPATH": str(TOOLS / "locales/usr/share/i18n")},
                check=True,
                capture_output=True,
            )
            if not (folder / f"{language}.utf8").exists():
                shutil.move(f"{new}/made", folder / f"{language}.utf8")


def user_of(language: str) -> str:
    """Users' names are in small letters; the shell of each is a script that sets the language."""
    return f"user-{language.lower()}"


@pytest.fixture(scope="module")
def host(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host with a user for each language."""
    try:
        make_languages()
    except CannotFetch as why:
        pytest.skip(str(why))
    host = Host(tmp_path_factory.mktemp("host"), keys, layers=("locales", "languages"))
    try:
        host.need_own_root()
        for number, language in enumerate(["C", *LANGUAGES], 3001):
            user, shell = user_of(language), f"/usr/local/bin/shell-{language}"
            words = f"LANG={language}.UTF-8 LC_ALL={language}.UTF-8 LANGUAGE={language}"
            host.run(
                f"echo '{user}:x:{number}:{number}::/tmp:{shell}' >>/etc/passwd\n"
                f"echo '{user}:*:19000::::::' >>/etc/shadow\n"
                f"printf '#!/bin/sh\\nexport %s\\nexec bash \"$@\"\\n' '{words}' >{shell}\n"
                f"chmod 755 {shell}\n"
            )
        host.run("mkdir -p /root/secret; chmod 700 /root")
        yield host
    finally:
        host.close()


@pytest.fixture(scope="module")
def found(host: Host, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """By language and check, "status code: message", all figures made equal."""
    lines = [f"{x} host=127.0.0.{i} user={user_of(x)}" for i, x in enumerate(["C", *LANGUAGES], 1)]
    path = tmp_path_factory.mktemp("languages") / "inventory.ini"
    common = [f"port={host.port}", f"key={host.keys.plain}"]
    path.write_text("\n".join(["[all]", *lines, "[all:vars]", *common, SETTINGS]))
    done = clustercheck("run", "-i", path, *ssh_words(host), "--format", "json")
    assert done.status == 2, done
    nodes: dict[str, Any] = json.loads(done.out)["nodes"]
    return {
        name: {
            check: sorted(
                alike(name, f"{f['status']} {f['code']}: {f['message']}")
                for f in judged["findings"]
            )
            for check, judged in said["checks"].items()
        }
        for name, said in nodes.items()
    }


def alike(language: str, text: str) -> str:
    """The text without what differs from user to user and from moment to moment."""
    text = re.sub(rf"(?i)-{language}\b", "", text).replace("behind", "ahead of")
    text = re.sub(r"in one number \w+", "in one number", text)  # the login's own is in it
    text = re.sub(r"\d[\d.,]*( [KMG]iB)?", "0", text)
    # what is used most stands first, and all use what they share
    return " ".join(sorted(re.split(r"[,;:]? ", text)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_nodes_tools_do_speak_the_language(host: Host, language: str) -> None:
    transport = ssh(host)
    script = "ls /nonexistent 2>&1; df / | head -n 1; date -d @0 +%A; ps -fp 1 | head -n 1"
    output, _ = run(transport, node(host, user=user_of(language)), script)
    no_file, file_system = LANGUAGES[language]
    assert no_file in output and file_system in output
    assert "Thursday" not in output
    transport.close()


def test_the_script_speaks_none(found: dict[str, dict[str, list[str]]]) -> None:
    (said,) = found["C"]["says"]
    assert {"No", "such", "directory"} <= set(said.split())
    assert len(found["C"]) > 8, "few checks were run"
    assert any("/nonexistent" in line and "tmp.missing" in line for line in found["C"]["tmp"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_result_is_the_same(found: dict[str, dict[str, list[str]]], language: str) -> None:
    for check, said in found[language].items():
        assert said == found["C"][check]
    assert found[language].keys() == found["C"].keys()
