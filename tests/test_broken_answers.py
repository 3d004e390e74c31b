"""An answer that breaks off in the middle is judged by what came whole, and by nothing else."""

import os
import subprocess
import time

import pytest

from clustercheck.answer import Answer
from clustercheck.check import Status
from clustercheck.facts import Reader
from clustercheck.judging import judge_node
from clustercheck.script import Asked, Frame, build
from tests.made_up import CHECKS, options_of

FRAME = Frame()
OPTIONS = {"selinux": options_of("selinux"), "tmp": options_of("tmp", paths=("/", "/dev/shm"))}


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """The real answer of this machine."""
    done = subprocess.run(
        ["sh", "-s"],
        input=build(FRAME, [Asked(name, CHECKS[name], OPTIONS[name]) for name in OPTIONS]).encode(),
        capture_output=True,
        timeout=60,
        env={"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]},
        check=True,
    )
    return done.stdout.splitlines(keepends=True)


def statuses(lines: list[bytes], code: str) -> dict[str, Status]:
    """The status of each check, of an answer that has only these lines."""
    reader = Reader(FRAME.mark, time.time)
    reader.feed(b"".join(lines))
    answer = Answer("node01", list(OPTIONS), code=code, message="it broke off" if code else "")
    answer.take(reader)
    result = judge_node(answer, CHECKS, lambda name, node: OPTIONS[name])
    return {name: result.status_of(name) for name in result.findings}


def test_half_a_check_is_unknown_wherever_it_breaks_off(lines: list[bytes]) -> None:
    whole = statuses(lines, "")
    assert set(OPTIONS) <= set(whole)
    seen = set()
    for count in range(len(lines)):
        cut = statuses(lines[:count], "cut")
        assert cut["access"] is Status.UNKNOWN
        for name in OPTIONS:
            ended = f"{FRAME.mark} {name} ! end ".encode()
            came_whole = any(line.startswith(ended) for line in lines[:count])
            if came_whole:
                assert cut[name] is whole[name]
            elif name in cut and not any(b" ! whole" in line for line in lines[:count]):
                assert cut[name] is Status.UNKNOWN, lines[:count]
                seen.add(name)
    assert seen, "no check broke off"


def test_a_check_that_breaks_off_says_so(lines: list[bytes]) -> None:
    first_fact = next(n for n, line in enumerate(lines, 1) if b" = " in line)
    reader = Reader(FRAME.mark, time.time)
    reader.feed(b"".join(lines[:first_fact]))
    answer = Answer("node01", list(OPTIONS), code="cut", message="it broke off")
    answer.take(reader)
    (name,) = answer.told
    result = judge_node(answer, CHECKS, lambda check, node: OPTIONS[check])
    (found,) = result.findings[name]
    assert found.message == "the answer broke off before the probe's end"
