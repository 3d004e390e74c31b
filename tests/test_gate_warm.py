"""A gate that was answered a moment ago: nobody is asked, and little is loaded."""

import json
import subprocess
import sys
from pathlib import Path

HEAVY = {
    *("paramiko", "fabric", "rich", "wcwidth", "urllib.request", "clustercheck.planning"),
    *("clustercheck.execute", "clustercheck.run", "clustercheck.judging", "clustercheck.registry"),
    *("clustercheck.inventory", "clustercheck.checks", "clustercheck.transport"),
}
TRY = f"""
import sys
from clustercheck.cli import main
try:
    main()
finally:
    print("loaded:", *sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)
"""


def test_a_warm_gate_loads_nothing_that_asking_needs(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text("node01 ansible_connection=local\n[check:own]\ncommand = /bin/echo fine\n")
    words = ["gate", "-i", str(inventory), "-c", "own", "--format", "json"]
    command = [sys.executable, "-c", TRY, *words, "--cache", str(tmp_path / "cache")]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")  # and no Slurm
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    cold, warm = (
        subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
        for _ in range(2)
    )
    assert "clustercheck.planning" in cold.stderr.splitlines()[-1]
    assert warm.stderr.splitlines()[-1] == "loaded:", warm.stderr
    before, now = json.loads(cold.stdout), json.loads(warm.stdout)
    assert (before["from_cache"], now["from_cache"]) == (False, True)
    assert before["healthy"] == now["healthy"] and now["healthy"]["count"] == 1
    assert cold.returncode == warm.returncode == 0
