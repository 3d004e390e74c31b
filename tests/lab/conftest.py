"""The laboratory, brought up once for all tests in here."""

from collections.abc import Iterator

import pytest

from tests.host import Keys
from tests.lab.cluster import Lab, why_not
from tests.lab.planted import NODES


@pytest.fixture(scope="session")
def possible() -> None:
    """Skip where there can be no laboratory, with the reason."""
    if why := why_not():
        pytest.skip(why)


@pytest.fixture(scope="session")
def lab(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A cluster with all faults of planted.py. Tests only look, and leave it as it is."""
    made = Lab(tmp_path_factory.mktemp("lab"), keys, NODES)
    yield made
    made.close()
