"""Reading a known_hosts file and finding each of its hosts in it once.

    python -m benchmarks.known_hosts [LINES]

Every host has a key of its own, the worst case for hashed names; and all have one, as nodes of one
image do.
"""

import base64
import hmac
import os
import sys
import tempfile
import time
from pathlib import Path

from clustercheck.known_hosts import HostKey, KnownHosts, Trust

KIND = "ssh-ed25519"


def key(seed: int) -> HostKey:
    blob = b"".join(
        len(part).to_bytes(4, "big") + part for part in (KIND.encode(), seed.to_bytes(32, "big"))
    )
    return HostKey(KIND, blob)


def hashed(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    names = [f"node{i:05}" for i in range(lines)]
    print(f"{lines} lines\n\n| names | keys | read, CPU s | all hosts found, CPU s |")
    print("|---|---|---|---|")
    for form in ("plain", "hashed"):
        for kind in ("each its own", "one for all"):
            keys = [key(i if kind == "each its own" else 7) for i in range(lines)]
            with tempfile.NamedTemporaryFile("w", suffix="-known_hosts") as file:
                for name, one in zip(names, keys, strict=True):
                    shown = hashed(name) if form == "hashed" else name
                    file.write(f"{shown} {KIND} {base64.b64encode(one.blob).decode()}\n")
                file.flush()
                began = time.process_time()
                known = KnownHosts((Path(file.name),))
                read = time.process_time()
                for name, one in zip(names, keys, strict=True):
                    known.kinds(name)
                    assert known.judge(name, one).trust is Trust.KNOWN
                found = time.process_time()
            print(f"| {form} | {kind} | {read - began:.3f} | {found - read:.3f} |")


if __name__ == "__main__":
    main()
