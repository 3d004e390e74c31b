"""The rules for a probe's text that shellcheck does not know."""

import re

RULES = {
    "a here-document, which needs /tmp in some shells": r"<<-?\s*[\w\"'\\]",
    "exit, which would end more than the probe": r"(?m)(^|[;&|({]|\b(then|do|else))\s*exit\b",
    "sudo, to which only as_root knows the way": r"\bsudo\b",
    "a command that changes the node": r"(?m)(^|[;&|({]|\b(then|do|else))\s*"
    r"(mktemp|tee|touch|mkdir|rm|mv|cp|kill(?! -0)|pkill|chmod|chown|mount|umount)\s",
}
WRITES = re.compile(r"(?<![<>&=-])>{1,2}\|?\s*([^\s;)]+)")
BARE_PATH = re.compile(
    r"""(?<!\$ROOT)(?<!\$ROOT")(?<![\w}*])(/(?:etc|proc|sys|run|var|usr)/[\w./-]*)"""
)


def faults(text: str) -> list[str]:
    """What a probe must not hold, each in words; empty for a good one."""
    code = code_of(text)
    found = [fault for fault, pattern in RULES.items() if re.search(pattern, code)]
    found += [
        f"it writes to {target}"
        for target in WRITES.findall(code)
        if target not in ("/dev/null", "&1", "&2")
    ]
    return found + [
        f"it reads {path} without $ROOT before it"
        for path in BARE_PATH.findall(code)
        if not _is_listed(path, code)
    ]


def _is_listed(path: str, code: str) -> bool:
    """A bare path is right as a word of a list that is read with $ROOT before it."""
    lists = re.findall(r"\bfor (\w+) in([^;]*);", code.replace("\\\n", " "))
    return any(path in words and f"$ROOT${variable}" in code for variable, words in lists)


def code_of(text: str) -> str:
    """The text without comments and without what stands in single quotes (awk, sed)."""
    kept: list[str] = []
    quote = ""
    place = 0
    while place < len(text):
        char = text[place]
        if char == "\\" and quote != "'":
            kept.append(text[place : place + 2])
            place += 2
            continue
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif not quote and char == "#" and (not kept or kept[-1].isspace()):
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
            continue
        elif quote == "'":
            place += 1
            continue
        kept.append(char)
        place += 1
    return "".join(kept)
