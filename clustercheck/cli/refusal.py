"""For who reads the gate's words and not its exit code: `sbatch $(clustercheck gate …)`."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def never_silent(arguments: Sequence[str]) -> Iterator[None]:
    """Whatever ends the gate, a slip in its options too: silence would be taken for a go."""
    try:
        yield
    except SystemExit:
        raise
    except BaseException:
        if _for_slurm(arguments):
            from clustercheck.render.verdict import REFUSED

            with contextlib.suppress(OSError):
                print(REFUSED, flush=True)
        raise


def _for_slurm(arguments: Sequence[str]) -> bool:
    pairs = itertools.pairwise(arguments)
    as_args = "--format=args" in arguments or ("--format", "args") in pairs
    return arguments[:1] == ["gate"] and as_args
