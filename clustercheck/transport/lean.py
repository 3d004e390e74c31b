"""Loads paramiko without `invoke`, which doubles its start-up time.

paramiko takes it for optional: it wants it for `Match exec` in its own reader of ssh_config, which
is not used here. fabric, where it is needed, loads it then.
"""

import sys
from typing import Any

# None says that there is no such module.
_modules: dict[str, Any] = sys.modules


def load() -> None:
    """To be called before anything imports paramiko; does nothing afterwards."""
    if "paramiko" in _modules or "invoke" in _modules:
        return
    _modules["invoke"] = None
    try:
        import paramiko  # noqa: F401
    finally:
        del _modules["invoke"]
