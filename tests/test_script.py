"""The script and its answers: run for real by each kind of sh, and read."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clustercheck import facts
from clustercheck.check import AnyCheck, Check, NoOptions, Target, option
from clustercheck.facts import Reader
from clustercheck.node import Node
from clustercheck.script import PATH, Asked, Frame, build, choose_peers
from clustercheck.transport.here import Here
from tests.shells import SHELLS, sh_folder, shell_words
from tools.fetch import program


def check(probe: str, **about: object) -> AnyCheck:
    whole: dict[str, object] = {
        "title": "made up",
        "options": NoOptions(),
        "judge": lambda facts, options: [],
        "codes": {},
        "probe": probe,
        **about,
    }
    return Check(**whole)  # type: ignore[arg-type]


def asked(**checks: AnyCheck) -> list[Asked]:
    return [Asked(name, c, c.options) for name, c in checks.items()]


def made_frame(shell: str, clock: int = 0) -> Frame:
    """A frame whose probes run in the shell, too."""
    return Frame(clock=clock, path=f"{sh_folder(shell)}:{PATH}")


def run(shell: str, checks: list[Asked], *, frame: Frame | None = None) -> Reader:
    """Run the script as a node would, and read the answer."""
    frame = frame or made_frame(shell)
    done = subprocess.run(
        [*shell_words(shell), "-s"],
        input=build(frame, checks).encode(),
        capture_output=True,
        timeout=90,
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]},
        check=False,
    )
    reader = Reader(frame.mark, time.time)
    reader.feed(done.stdout)
    assert reader.done, done.stderr.decode()
    return reader


def folders(frame: Frame) -> list[Path]:
    return list(Path("/dev/shm").glob(f".clustercheck-{frame.ident}-*"))


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    shell_words(request.param)
    return str(request.param)


def test_values_arrive_as_they_are(shell: str) -> None:
    probe = r"""
fact plain 'a = b'
fact empty ''
fact spaces '  two  '
fact quoted 'it'"'"'s "so" $HOME `id` \n %s'
fact lines "$(printf 'one\n\n  three')"
printf 'a\nb\n' | lines piped
true | lines nothing
fact latin1 "$(printf 'M\374ll')"
fact utf8 'Müll'
"""
    told = run(shell, asked(made_up=check(probe))).told["made_up"]
    assert told.whole and told.status == "0"
    assert dict(told.facts) == {
        "plain": "a = b",
        "empty": "",
        "spaces": "  two  ",
        "quoted": r"""it's "so" $HOME `id` \n %s""",
        "lines": "one\n\n  three",
        "piped": "a\nb",
        "nothing": "",
        "latin1": r"M\xfcll",
        "utf8": "Müll",
    }


def test_a_probe_that_breaks_harms_no_other(shell: str) -> None:
    told = run(
        shell,
        asked(
            bad=check("fact first 1\nno_such_command_here\nreturn 3"),
            dies=check("fact first 1\nkill -KILL $$"),
            good=check("fact first 1"),
        ),
    ).told
    assert told["good"].whole
    assert told["bad"].whole, "what the probe returns is not its end"
    assert not told["dies"].whole and told["dies"].status == "137"


def test_a_hung_probe_is_given_up_and_named(shell: str) -> None:
    began = time.monotonic()
    told = run(
        shell,
        asked(hung=check("sleep 300", limit=1), good=check("fact first 1")),
    ).told
    assert time.monotonic() - began < 20
    assert told["hung"].status == "limit"
    assert "sleep (process " in told["hung"].hung
    assert told["good"].whole


def test_a_flood_is_cut_and_the_others_go_on(shell: str) -> None:
    reader = run(shell, asked(flood=check("yes | lines y"), good=check("fact first 1")))
    assert not reader.told["flood"].whole
    assert reader.told["good"].whole
    assert len(reader.told["flood"].facts.get("y", "")) < 2 * 1024 * 1024


def test_standard_output_of_a_probe_is_not_heard(shell: str) -> None:
    told = run(shell, asked(loud=check("echo hello; ls /; fact first 1"))).told["loud"]
    assert dict(told.facts) == {"first": "1"}


def test_a_missing_tool_is_named_and_the_probe_not_run(shell: str) -> None:
    told = run(shell, asked(tool=check("fact first 1", needs=("no_such_tool",)))).told["tool"]
    assert told.missing == "no_such_tool" and not told.facts


def test_within_ends_a_command(shell: str) -> None:
    probe = "within 1 sleep 300; fact status $?; within 5 echo done | lines said"
    told = run(shell, asked(w=check(probe))).told["w"]
    assert told.facts["said"] == "done"
    assert told.facts["status"] in ("124", "143"), "busybox says 143"


def test_options_and_peers_reach_the_probe(shell: str) -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Options:
        paths: tuple[str, ...] = option(("/tmp", "/a b'c"), "folders")
        deep: bool = option(True, "all of it")
        share: float = option(0.5, "how much", unit="%")

    made = check(
        'fact paths "$paths"; fact deep "$deep"; fact share "$share"\n'
        'fact peers "$PEERS"; fact hosts "$HOSTS"; fact ports "$PORTS"',
        options=Options(),
        probe_options=("paths", "deep", "share"),
        probe_peers=True,
    )
    frame = made_frame(shell)
    text = build(
        frame, asked(made=made), peers=[Target("n1", "10.0.0.1"), Target("n2", "n2", 2222)]
    )
    done = subprocess.run(
        [*shell_words(shell), "-s"], input=text.encode(), capture_output=True, check=True
    )
    reader = Reader(frame.mark, time.time)
    reader.feed(done.stdout)
    assert dict(reader.told["made"].facts) == {
        "paths": "/tmp\n/a b'c",
        "deep": "1",
        "share": "0.5",
        "peers": "n1\nn2",
        "hosts": "10.0.0.1\nn2",
        "ports": "0\n2222",
    }


def test_nothing_is_left_behind(shell: str) -> None:
    frame = made_frame(shell)
    run(shell, asked(a=check("fact a 1"), hung=check("sleep 300", limit=1)), frame=frame)
    assert not folders(frame)


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_leftovers_of_a_killed_run_are_removed(shell: str) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    old = Path(f"/dev/shm/.clustercheck-{os.urandom(4).hex()}")
    old.mkdir()
    (old / "owner").write_text(f"{dead.pid} 1 {boot_id()}\n")
    os.utime(old, (time.time() - 120,) * 2)
    reader = run(shell, asked(a=check("fact a 1")))
    assert not old.exists()
    # another test's run may have been first
    assert reader.leftovers in ([str(old)], [])


def test_the_folder_of_a_living_run_is_left_alone(shell: str) -> None:
    born = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()[19]
    other = Path(f"/dev/shm/.clustercheck-{os.urandom(4).hex()}")
    other.mkdir()
    try:
        (other / "owner").write_text(f"{os.getpid()} {born} {boot_id()}\n")
        os.utime(other, (time.time() - 120,) * 2)
        assert str(other) not in run(shell, asked(a=check("fact a 1"))).leftovers
        assert other.exists()
    finally:
        (other / "owner").unlink()
        other.rmdir()


def test_a_folder_that_has_no_owner_yet_is_left_alone(shell: str) -> None:
    """Another run may be just making it."""
    other = Path(f"/dev/shm/.clustercheck-{os.urandom(4).hex()}")
    other.mkdir()
    try:
        run(shell, asked(a=check("fact a 1")))
        assert other.exists()
    finally:
        other.rmdir()


def still_running(marker: str) -> list[str]:
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = line.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in text:
            found.append(text)
    return found


def wait_for(true: Callable[[], object], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return bool(true())


@pytest.mark.parametrize("how", ["reader gone", "killed", "terminated"])
def test_when_the_run_ends_early_the_node_tidies_up(shell: str, how: str) -> None:
    marker = f"77777{os.getpid()}{SHELLS.index(shell)}{len(how)}"
    frame = made_frame(shell)
    process = subprocess.Popen(
        [*shell_words(shell), "-s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    process.stdin.write(build(frame, asked(hung=check(f"sleep {marker}", limit=90))).encode())
    process.stdin.flush()
    assert wait_for(lambda: still_running(f"sleep {marker}"))
    if how == "reader gone":
        process.stdout.close()
    else:
        process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    assert wait_for(lambda: not still_running(f"sleep {marker}")), "the probe goes on"
    assert wait_for(lambda: not folders(frame)), "files are left"
    process.stdin.close()
    process.stdout.close()
    process.wait(10)


@pytest.mark.parametrize("how", ["reader gone", "terminated"])
def test_a_probe_removes_what_it_made_when_the_run_ends_early(
    shell: str, how: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    probe = f"trap 'rm {made}' EXIT; trap 'exit 143' TERM; >{made}; within 80 sleep 80"
    process = subprocess.Popen(
        [*shell_words(shell), "-s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    process.stdin.write(build(made_frame(shell), asked(hung=check(probe, limit=90))).encode())
    process.stdin.flush()
    assert wait_for(made.exists)
    if how == "reader gone":
        process.stdout.close()
    else:
        process.send_signal(signal.SIGTERM)
    assert wait_for(lambda: not made.exists())
    process.stdin.close()
    process.stdout.close()
    process.wait(10)


def test_memory_full_or_absent_is_not_needed(shell: str) -> None:
    """Another folder is used where /dev/shm cannot be; here by way of a home."""
    if os.geteuid() != 0:
        pytest.skip("cannot here: only root may hide /dev/shm in a namespace of its own")
    frame = Frame()
    # the shell itself may lie in what is hidden, so it is opened before
    hide = (
        'name=$1; exec 9<"$name"; shift; '
        "mount -t tmpfs -o size=4k,nr_inodes=1 none /dev/shm; mount -o remount,ro /dev/shm; "
        "for d in /tmp /var/tmp /run; do mount -t tmpfs -o ro none $d; done; "
        "mount -t tmpfs none /mnt; "
        'exec -a "${name##*/}" /proc/self/fd/9 "$@" -s'
    )
    bash = str(program("bash"))
    for home, expected in (("/mnt", True), ("/nonexistent", False)):
        done = subprocess.run(
            ["unshare", "-m", bash, "-c", hide, "-", *shell_words(shell)],
            input=build(frame, asked(a=check("fact a 1"))).encode(),
            capture_output=True,
            env={"HOME": home, "PATH": os.environ["PATH"]},
            check=False,
        )
        reader = Reader(frame.mark, time.time)
        reader.feed(done.stdout)
        assert reader.done is expected, done.stderr
        assert reader.no_directory is not expected


def test_a_folder_that_fills_up_is_told_and_no_fact_is_half(shell: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs a mount of its own: run the tests as root")
    frame = made_frame(shell)
    small = 'mount -t tmpfs -o size=200k none /dev/shm && shift && exec $0 "$@" -s'
    large = check("head -c 400000 /dev/zero | tr '\\0' x | fold | lines much; fact last 1")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", small, shell_words(shell)[0], "-", *shell_words(shell)[1:]],
        input=build(frame, asked(a=check("fact a 1"), large=large)).encode(),
        capture_output=True,
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]},
        check=False,
    )
    reader = Reader(frame.mark, time.time)
    reader.feed(done.stdout)
    assert reader.full and not reader.done, done.stderr
    assert not reader.told["large"].whole and "last" not in reader.told["large"].facts


def test_nothing_of_it_runs_any_longer_when_it_has_ended(shell: str) -> None:
    frame = made_frame(shell)
    process = subprocess.Popen(
        [*shell_words(shell), "-s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.communicate(build(frame, asked(a=check("sleep 1.5; fact a 1"))).encode())
    time.sleep(0.2)  # what is being ended takes its moment
    words = ["ps", "-o", "stat=,args=", "-s", str(process.pid)]
    left = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    # a container's process 1 may leave them unburied
    assert [line for line in left if not line.startswith("Z")] == []


def test_a_script_cut_on_the_way_runs_nothing(shell: str, tmp_path: Path) -> None:
    text = build(Frame(), asked(a=check(f"echo ran >{tmp_path}/ran; touch {tmp_path}/ran")))
    for share in (0.3, 0.6, 0.95):
        part = text[: int(len(text) * share)].encode()
        subprocess.run([*shell_words(shell), "-s"], input=part, capture_output=True, check=False)
    assert not (tmp_path / "ran").exists()


def measured(shell: str, frame: Frame) -> tuple[float, float]:
    """Offset and uncertainty of this machine's clock, of which is said that it is 5 s ahead."""
    process = subprocess.Popen(
        [*shell_words(shell), "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    process.stdin.write(build(frame, asked(a=check("fact a 1"))).encode())
    process.stdin.flush()
    reader = Reader(frame.mark, lambda: time.time() - 5)  # this machine's clock 5 s behind
    while not reader.done:
        reply = reader.feed(os.read(process.stdout.fileno(), 65536))
        process.stdin.write(reply)
        process.stdin.flush()
    process.communicate()
    assert reader.clock is not None
    return reader.clock


def test_the_clock_is_asked_and_its_uncertainty_known(shell: str) -> None:
    offset, uncertainty = measured(shell, made_frame(shell, clock=3))
    assert abs(offset - 5) <= uncertainty + 0.001
    assert uncertainty < 2


def test_the_clock_is_asked_as_often_as_is_wanted(shell: str) -> None:
    frame = made_frame(shell, clock=3)
    done = subprocess.run(
        [*shell_words(shell), "-c", build(frame, asked(one=check("fact a b")))],
        input=b"\n\n\n",
        capture_output=True,
        timeout=90,
    )
    times = [line for line in done.stdout.split(b"\n") if b" - time " in line]
    assert [line.split()[3] for line in times] == [b"0", b"1", b"2"]
    assert done.stderr == b""


def test_many_nodes_that_are_asked_at_once_each_have_their_peers(shell: str) -> None:
    """They say that they are ready, and from the last line on nobody answers them."""
    probe = 'fact peers "$(echo $PEERS)"; fact hosts "$(echo $HOSTS)"; fact ports "$(echo $PORTS)"'
    few = check(probe, probe_peers=True, most_peers=lambda options: 2)
    all_of_them = check(probe, probe_peers=True)
    peers = {
        "n1": [Target("n2", "n2"), Target("n3", "n3"), Target("n4", "n4")],
        "n 2": [Target("it's", "10.0.0.1", 2222), Target("n3", "n3")],
        "n3": [],
    }
    frame = made_frame(shell, clock=3)
    text = build(frame, asked(few=few, all=all_of_them), at_once=peers)
    told = {}
    for name in [*peers, "other"]:
        before = time.time()
        done = subprocess.run(
            [*shell_words(shell), "-s"],
            input=text.encode(),
            capture_output=True,
            timeout=90,
            env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": name},
        )
        reader = Reader(frame.mark, time.time)
        ready, _, _ = done.stdout.partition(b"begin")
        reader.feed(ready)
        assert reader.ready and not reader.begun
        reader.note_asked()
        reader.feed(done.stdout[len(ready) :])
        assert reader.done, done.stderr
        assert reader.clock and abs(reader.clock[0]) < time.time() - before + 1
        told[name] = {name: dict(one.facts) for name, one in reader.told.items()}
    assert told["n1"]["few"] == {"peers": "n2 n3", "hosts": "n2 n3", "ports": "0 0"}
    assert told["n1"]["all"] == {"peers": "n2 n3 n4", "hosts": "n2 n3 n4", "ports": "0 0 0"}
    assert told["n 2"]["all"] == {"peers": "it's n3", "hosts": "10.0.0.1 n3", "ports": "2222 0"}
    nobody = {"peers": "", "hosts": "", "ports": ""}
    assert told["n3"] == told["other"] == {"few": nobody, "all": nobody}


def test_a_date_of_busybox_that_knows_whole_seconds(tmp_path: Path) -> None:
    """Then the kernel is asked for what is less than a second."""
    (busybox,) = shell_words("busybox sh")[:1]
    for name in ("date", "busybox"):
        (tmp_path / name).symlink_to(busybox)
    whole = subprocess.run([tmp_path / "date", "+%N"], capture_output=True, text=True).stdout
    if whole.strip().isdigit():
        pytest.skip("cannot here: this busybox's date knows fractions of a second")
    offset, uncertainty = measured("dash", Frame(path=f"{tmp_path}:{PATH}", clock=8))
    assert abs(offset - 5) <= uncertainty + 0.001
    assert uncertainty < 0.5


def test_only_lines_with_the_mark_count() -> None:
    reader = Reader("@mark", time.time)
    reader.feed(b"Welcome\nntp = offset 0\n@other - done\n@mark - begin 0 b host\n")
    reader.feed(b"@mark a = x 1\n @mark a = y 2\n@mark a ! whole\n@mark a ! end 0\n@mark - done\n")
    reader.feed(b"@mark a = z 3\n")
    assert dict(reader.told["a"].facts) == {"x": "1"}
    assert reader.noise and reader.done


def test_lines_may_come_in_any_pieces() -> None:
    whole = b"\n@m - begin 0 b h\n@m a : k\n@m a + one\n@m a + two\n@m a ! whole\n@m - done\n"
    for size in (1, 2, 7, 1000):
        reader = Reader("@m", time.time)
        for start in range(0, len(whole), size):
            reader.feed(whole[start : start + size])
        assert reader.told["a"].facts["k"] == "one\ntwo"
        assert reader.done


def test_a_flooding_node_is_stopped() -> None:
    reader = Reader("@m", time.time)
    with pytest.raises(facts.Flood, match="MiB"):
        for _ in range(100):
            reader.feed(b"x" * 100_000)
    reader = Reader("@m", time.time)
    with pytest.raises(facts.Flood, match="facts"):
        reader.feed(b"@m a = k v\n" * 30_000)


def test_the_local_channel_runs_the_script_to_its_end() -> None:
    frame = Frame()
    channel = (
        Here().connect(Node("here"), 0).start(build(frame, asked(a=check("fact a 1"))).encode(), 0)
    )
    reader = Reader(frame.mark, time.time)
    while data := channel.receive(30):
        reader.feed(data)
    assert reader.done and channel.finish().status == 0
    channel.close()


def test_peers_go_round_the_list() -> None:
    names = [f"n{i}" for i in range(10)]
    assert choose_peers(names, 8) == ["n9", "n0", "n2", "n6"]
    assert choose_peers(["only"], 0) == []
    assert choose_peers(["a", "b"], 1) == ["a"]
    many = [f"n{i}" for i in range(5000)]
    assert len(choose_peers(many, 17)) == 12


def test_more_peers_than_usual_are_the_nearest_of_the_others() -> None:
    names = [f"n{i}" for i in range(30)]
    assert sorted([*choose_peers(names, 8, 1000), "n8"]) == sorted(names)
    assert choose_peers(names, 0, 13)[5:] == [f"n{i}" for i in (3, 5, 6, 7, 9, 10, 11, 12)]
    assert choose_peers(names, 0, 3) == ["n1", "n2", "n4"]


def test_a_check_is_told_of_as_many_peers_as_it_wants() -> None:
    peers = [Target(f"n{i}", f"10.0.0.{i}") for i in range(20)]
    usual = check("fact peers $PEERS", probe_peers=True)
    curious = check("fact peers $PEERS", probe_peers=True, most_peers=lambda options: 15)
    text = build(Frame(), asked(usual=usual, curious=curious), peers=peers)
    assert [part.count("10.0.0.") for part in text.split("HOSTS='")[1:]] == [12, 15]
