"""Made-up processes in /proc, for the tests of the check processes."""

from tests.made_up import MadeUpNode

KERNEL_THREAD = 0x200000


def process(
    node: MadeUpNode,
    pid: int,
    command: str = "python3",
    *,
    parent: int = 1,
    state: str = "S",
    wait: str = "0",
    started: int = 100,
    flags: int = 0x400000,
    waiting: str = "0000000000000000",
    groups: str = "0::/init.scope",
) -> None:
    """One process; started is in hundredths of a second after the boot."""
    folder = f"/proc/{pid}"
    fields = [state, parent, 1, 1, 0, -1, flags, *[0] * 10, 1, 0, started, *[0] * 30]
    node.file(f"{folder}/stat", f"{pid} ({command}) {' '.join(map(str, fields))}\n")
    node.file(
        f"{folder}/status",
        f"Name:\t{command}\nState:\t{state} (some)\nSigPnd:\t0000000000000000\n"
        f"ShdPnd:\t{waiting}\nvoluntary_ctxt_switches:\t150\n"
        "nonvoluntary_ctxt_switches:\t545\n",
    )
    node.file(f"{folder}/comm", command + "\n")
    node.file(f"{folder}/wchan", wait)
    node.file(f"{folder}/cgroup", groups + "\n")


def owned(node: MadeUpNode, **uids: int) -> None:
    """An `ls -ldn` that tells owners, since only root may give files away: owned(p4711=1001)."""
    lines = "\n".join(
        f'*/{name[1:]}) echo "dr-xr-xr-x 9 {uid} {uid} 0 Nov 12 10:11 $path" ;;'
        for name, uid in uids.items()
    )
    node.command(
        "ls",
        'shift\nfor path in "$@"; do case $path in\n'
        f'{lines}\n*) echo "dr-xr-xr-x 9 0 0 0 Nov 12 10:11 $path" ;;\nesac; done',
    )


# what the hostile facts are made from
FULL = {
    "seen": "all",
    "counts": "total 812 waiting 60 dead 30 slurmd 1",
    "stuck": "41022 1001 rpc_wait_bit_killable 0000000000000000/0000000000000100 python3\n"
    "41023 - - - a b",
    "zombies": "600 500 bad server/worker\n601 1 systemd/sh",
    "strays": "5001 1001 90000 ,/user.slice/user-1001.slice/session-3.scope python3\n"
    "5002 1002 - - a b",
}
