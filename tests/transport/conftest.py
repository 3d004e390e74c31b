"""paramiko's log is as quiet as it is for the user; tests that run over each kind of connection."""

import logging
from collections.abc import Iterator

import pytest

from clustercheck.transport.threadless import MISSING


@pytest.fixture(autouse=True)
def quiet_paramiko() -> Iterator[None]:
    logger = logging.getLogger("paramiko")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@pytest.fixture(params=["without threads", "stock"])
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs twice: the second time as with a paramiko that has not the names we use."""
    if request.param == "without threads":
        assert MISSING == ()
    else:
        monkeypatch.setattr("clustercheck.transport.ssh.MISSING", ("Transport._something",))
