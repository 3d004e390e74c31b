"""What unmunge has said of a credential."""

import re
from typing import NamedTuple

# Numbers of munge's own (munge.h). Replayed and unauthorized ones were decoded with the right key.
SUCCESS = 0
INVALID = 14
EXPIRED = 15
REWOUND = 16
REPLAYED = 17
UNAUTHORIZED = 18


class Unmunged(NamedTuple):
    """number: munge's, or None where nothing is understood. word: what it means, or what was said.

    age: seconds by the two clocks between making and reading, less than 0 where it was made later.
    ttl: seconds that it may live, 0 where it is not said.
    made: seconds since 1970, by the maker's clock.
    """

    number: int | None
    word: str
    age: int | None = None
    ttl: int = 0
    made: int | None = None
    cipher: str = ""
    mac: str = ""


def read_unmunge(text: str) -> Unmunged:
    """Make sense of unmunge's words, those of an error as well."""
    values: dict[str, str] = {}
    for line in text.splitlines()[:60]:
        name, _, value = line.partition(":")
        values.setdefault(name.strip(), value.strip())
    said = re.fullmatch(r"([\w ]{2,60}) \(([0-9]{1,3})\)", values.get("STATUS", ""))
    if not said:
        lines = text.strip().splitlines()
        last = lines[-1].strip()[:300] if lines else "no word"
        word = last.removeprefix("unmunge: Error: ")
        # of what may not be read there is no more to say than an error
        numbers = {"Invalid credential": INVALID, "Unauthorized credential": UNAUTHORIZED}
        return Unmunged(numbers.get(" ".join(word.split(" ")[:2])), word)
    made, read = (_seconds(values.get(key, "")) for key in ("ENCODE_TIME", "DECODE_TIME"))
    ttl = values.get("TTL", "")
    return Unmunged(
        int(said[2]),
        said[1],
        None if made is None or read is None else read - made,
        int(ttl) if re.fullmatch("[0-9]{1,9}", ttl) else 0,
        made,
        values.get("CIPHER", ""),
        values.get("MAC", ""),
    )


def _seconds(text: str) -> int | None:
    found = re.search(r"\(([0-9]{1,12})\)$", text)
    return int(found[1]) if found else None
