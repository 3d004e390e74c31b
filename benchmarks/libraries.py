"""Peers that are libraries, each as a short program of its best known form.

    libraries.py NAME HOSTS PORT USER KEY KNOWN_HOSTS SCRIPT WINDOW

Run by the Python of .tools/bench. Host keys are verified where the library can: parallel-ssh does
not unless told to one by one, fabric accepts any by default.
"""

import asyncio
import base64
import shlex
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

NAME, HOSTS_FILE, PORT_TEXT, USER, KEY, KNOWN_HOSTS, SCRIPT_FILE, WINDOW_TEXT = sys.argv[1:]
HOSTS = Path(HOSTS_FILE).read_text().split()
PORT, WINDOW = int(PORT_TEXT), int(WINDOW_TEXT)
SCRIPT = Path(SCRIPT_FILE).read_text()
OUTPUT = threading.Lock()


def show(host: str, text: str) -> None:
    with OUTPUT:
        sys.stdout.write(f"== {host}\n{text}\n")


def in_a_pool(ask: Callable[[str], str]) -> None:
    def one(host: str) -> None:
        try:
            show(host, ask(host))
        except Exception as error:
            print(host, type(error).__name__, error, file=sys.stderr)

    with ThreadPoolExecutor(WINDOW) as pool:
        list(pool.map(one, HOSTS))


def known_keys() -> dict[str, tuple[str, str]]:
    lines = [line.split() for line in Path(KNOWN_HOSTS).read_text().splitlines()]
    return {name: (kind, key) for name, kind, key in lines}


def by_asyncssh() -> None:
    import asyncssh  # type: ignore[import-not-found]
    import uvloop  # type: ignore[import-not-found]

    known = known_keys()
    parsed: dict[tuple[str, str], Any] = {}

    def host_key(host: str) -> tuple[list[Any], list[Any], list[Any]]:
        line = known[f"[{host}]:{PORT}"]
        if line not in parsed:
            parsed[line] = asyncssh.import_public_key(" ".join(line))
        return [parsed[line]], [], []

    async def everybody() -> None:
        key = asyncssh.read_private_key(KEY)
        turns = asyncio.Semaphore(WINDOW)
        options = asyncssh.SSHClientConnectionOptions(
            username=USER,
            client_keys=[key],
            config=None,
            agent_path=None,
            gss_host=None,
            x509_trusted_certs=None,
            kex_algs=["curve25519-sha256"],
            encryption_algs=["aes128-gcm@openssh.com"],
            server_host_key_algs=["ssh-ed25519"],
            compression_algs=["none"],
            preferred_auth="publickey",
        )

        async def one(host: str) -> None:
            async with turns:
                try:
                    async with asyncssh.connect(
                        host, PORT, options=options, known_hosts=host_key(host)
                    ) as connection:
                        done = await connection.run("exec sh -s", input=SCRIPT)
                        show(host, done.stdout)
                except Exception as error:
                    print(host, type(error).__name__, error, file=sys.stderr)

        await asyncio.gather(*map(one, HOSTS))

    uvloop.run(everybody())


def by_parallel_ssh() -> None:
    from pssh.clients import ParallelSSHClient  # type: ignore[import-not-found]

    client = ParallelSSHClient(
        HOSTS,
        user=USER,
        port=PORT,
        pkey=KEY,
        pool_size=WINDOW,
        allow_agent=False,
        num_retries=1,
        timeout=120,
    )
    command = SCRIPT.replace("'", "'\\''")
    for answer in client.run_command(command, shell="sh -c", stop_on_errors=False):
        if answer.exception:
            print(answer.host, answer.exception, file=sys.stderr)
        else:
            show(answer.host, "\n".join(answer.stdout))


def by_fabric() -> None:
    import fabric  # type: ignore[import-untyped]

    command = f"sh -c {shlex.quote(SCRIPT)}"

    def ask(host: str) -> str:
        keys = {"key_filename": KEY, "allow_agent": False, "look_for_keys": False}
        with fabric.Connection(host, user=USER, port=PORT, connect_kwargs=keys) as connection:
            return str(connection.run(command, hide=True, in_stream=False).stdout)

    in_a_pool(ask)


def by_paramiko() -> None:
    """The host key and the private key are parsed once, not for each node as in the manual."""
    import paramiko
    from paramiko.hostkeys import HostKeyEntry

    known = known_keys()
    private = paramiko.Ed25519Key.from_private_key_file(KEY)
    keys = {
        line: paramiko.Ed25519Key(data=base64.b64decode(line[1])) for line in set(known.values())
    }

    def ask(host: str) -> str:
        client = paramiko.SSHClient()
        name = f"[{host}]:{PORT}"
        client.get_host_keys()._entries.append(HostKeyEntry([name], keys[known[name]]))  # type: ignore[attr-defined]
        client.connect(host, PORT, USER, pkey=private, allow_agent=False, look_for_keys=False)
        stdin, stdout, stderr = client.exec_command("exec sh -s")
        stdin.write(SCRIPT)
        stdin.channel.shutdown_write()
        text = stdout.read().decode()
        stderr.read()
        client.close()
        return text

    in_a_pool(ask)


BY_NAME = {
    "asyncssh + uvloop": by_asyncssh,
    "parallel-ssh": by_parallel_ssh,
    "fabric": by_fabric,
    "paramiko SSHClient": by_paramiko,
}

BY_NAME[NAME]()
sys.stdout.flush()
