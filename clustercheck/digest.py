"""Numbers that stand for values: the same for the same JSON, whoever wrote it."""

import hashlib
import json


def hash_of(value: object) -> str:
    """The number of a value, "sha256:…": of the same JSON it is the same."""
    data = canonical(value).encode("utf-8", "backslashreplace")
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def canonical(value: object) -> str:
    """The one way in which a value is written as JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
