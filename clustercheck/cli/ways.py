"""What several commands take: how nodes are reached, and the limits. Each stands here once."""

import inspect
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from clustercheck.cli.arguments import (
    AskPassphraseOption,
    AskPasswordOption,
    BecomeOption,
    ConnectTimeoutOption,
    HeavyParallelOption,
    HostKeysOption,
    JumpOption,
    KeyOption,
    KnownHostsOption,
    MaxTimeOption,
    ParallelOption,
    PortOption,
    ProcessesOption,
    SshConfigOption,
    SshOption,
    TimeoutOption,
    UserOption,
    ViaOption,
)
from clustercheck.errors import UsageError

if TYPE_CHECKING:
    from clustercheck.wanted import Limits, Way


def way(
    user: UserOption = "",
    port: PortOption = 0,
    key: KeyOption = "",
    jump: JumpOption = "",
    become: BecomeOption = "",
    ssh_config: SshConfigOption = None,
    known_hosts: KnownHostsOption = None,
    host_keys: HostKeysOption = "strict",
    ssh: SshOption = "paramiko",
    via: ViaOption = "ssh",
    ask_password: AskPasswordOption = False,
    ask_passphrase: AskPassphraseOption = False,
    connect_timeout: ConnectTimeoutOption = 0,
) -> "Way":
    """How nodes are reached. Asks for a password where that is wanted."""
    from clustercheck.wanted import Way

    return Way(
        defaults={"user": user, "port": port, "key": key, "jump": jump, "become": become},
        ssh_config=ssh_config,
        known_hosts=known_hosts,
        host_keys=host_keys,
        ssh=ssh,
        via=via,
        connect_timeout=connect_timeout,
        password=_secret("CLUSTERCHECK_PASSWORD", "Password: ", ask_password),
        passphrase=_secret("CLUSTERCHECK_PASSPHRASE", "Passphrase: ", ask_passphrase),
    )


def limits(
    parallel: ParallelOption = 0,
    processes: ProcessesOption = 0,
    timeout: TimeoutOption = 0,
    max_time: MaxTimeOption = 0,
    heavy_parallel: HeavyParallelOption = 1,
) -> "Limits":
    """All limits, for a command that asks many nodes."""
    from clustercheck.wanted import Limits

    return Limits(parallel, processes, timeout, max_time or None, heavy_parallel)


def few_limits(timeout: TimeoutOption = 0, max_time: MaxTimeOption = 0) -> "Limits":
    """The limits of a command that asks few nodes."""
    return limits(timeout=timeout, max_time=max_time)


OPTIONS: dict[str, Callable[..., Any]] = {
    "way": way,
    "limits": limits,
    "few_limits": few_limits,
}


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with options of the command line in place of its arguments called `way` and so
    on; it gets what they are together."""
    own = inspect.signature(command).parameters
    theirs = {name: inspect.signature(OPTIONS[name]).parameters for name in own if name in OPTIONS}

    def called(**given: Any) -> Any:
        for name, parameters in theirs.items():
            given[name] = OPTIONS[name](**{each: given.pop(each) for each in parameters})
        return command(**given)

    found = [one for name in own for one in theirs.get(name, {name: own[name]}).values()]
    shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in found]
    called.__dict__["__signature__"] = inspect.Signature(shown)
    called.__annotations__ = {one.name: one.annotation for one in shown}
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    return called


def _secret(variable: str, prompt: str, ask: bool) -> str:
    """From the environment or a prompt; never from an argument, which `ps` shows to all."""
    if ask:
        import getpass

        if not sys.stdin.isatty():
            raise UsageError(f"no terminal to ask on; set {variable} instead")
        try:
            return getpass.getpass(prompt)
        except EOFError:
            raise UsageError(f"nothing was typed; or set {variable} instead") from None
    return os.environ.get(variable, "")


def log(verbose: int) -> None:
    """What our own modules do at -v, the libraries' words at -vv."""
    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="clustercheck: %(message)s"
    )
    logging.getLogger("clustercheck").setLevel(level)
    # the causes are told as findings; what paramiko logs beside them is for whoever asks
    logging.getLogger("paramiko").setLevel(logging.DEBUG if verbose > 1 else logging.CRITICAL)


def stop_with_report() -> None:
    """SIGTERM and SIGHUP end the asking as Ctrl-C does: with the report of what is known."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _interrupt)


def _interrupt(signum: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt
