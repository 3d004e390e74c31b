"""paramiko's log is as quiet as it is for the user."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet_paramiko() -> Iterator[None]:
    logger = logging.getLogger("paramiko")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
