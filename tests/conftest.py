"""What all tests share: a real sshd, nobody's environment, and skips that are seen."""

import contextlib
import os
import signal
from collections.abc import Generator, Iterator
from typing import Protocol

import pytest

from tests.host import Host, Keys, make_keys
from tools.fetch import TOOLS, CannotFetch, fetch

# The fixtures `slurm` and `make_slurm`.
pytest_plugins = ["tests.slurm_cluster"]

# A skip that the machine could not have avoided says so in this way: CI lets no other pass.
CANNOT = "cannot here: "

HOSTS = pytest.StashKey[list[Host]]()


class MakeHost(Protocol):
    """Makes a host that is this test's own; the arguments are those of Host."""

    def __call__(self, *, config: tuple[str, ...] = (), layers: tuple[str, ...] = ()) -> Host: ...


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def nobodys_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what the developer has set up for himself out of the tests; add what was fetched."""
    with contextlib.suppress(CannotFetch):  # said by the tests that need it
        fetch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(TOOLS / "bin")]))
        for name in list(os.environ):
            if name.startswith(("SSH_", "CLUSTERCHECK_", "XDG_")):
                patch.delenv(name)
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "DISPLAY"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """The keys of all hosts."""
    try:
        fetch()
    except CannotFetch as why:
        pytest.skip(str(why))
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def shared_host(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("host"), keys)
    yield host
    host.close()


@pytest.fixture
def host(shared_host: Host, request: pytest.FixtureRequest) -> Host:
    """One host for all tests that leave it as it is."""
    request.node.stash.setdefault(HOSTS, []).append(shared_host)
    return shared_host


@pytest.fixture
def make_host(
    keys: Keys, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[MakeHost]:
    """Hosts that a test may spoil, or that are set up as it says."""
    made: list[Host] = []

    def make(*, config: tuple[str, ...] = (), layers: tuple[str, ...] = ()) -> Host:
        host = Host(tmp_path_factory.mktemp("host"), keys, config, layers)
        made.append(host)
        request.node.stash.setdefault(HOSTS, []).append(host)
        return host

    yield make
    for host in made:
        host.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test what its hosts' sshd said."""
    report = yield
    if report.failed:
        for host in item.stash.get(HOSTS, []):
            last = "\n".join(host.log().splitlines()[-40:])
            report.sections.append((f"sshd on port {host.port}", last))
    # What hostile text leaves in a report must not keep a worker from sending it.
    report.sections = [(name, _sound(text)) for name, text in report.sections]
    if report.failed and str(report.longrepr) != _sound(str(report.longrepr)):
        report.longrepr = _sound(str(report.longrepr))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI (CI=true), fail for tests that were skipped and need not have been."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if not terminal or os.environ.get("CI") != "true":
        return
    reasons = [report.longrepr[2] for report in terminal.stats.get("skipped", [])]
    avoidable = [reason for reason in reasons if CANNOT not in reason]
    if avoidable and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        terminal.section("skipped in CI, and the machine could have avoided it", red=True)
        terminal.line("\n".join(sorted(set(avoidable))))


def _sound(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
