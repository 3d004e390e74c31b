"""What of a sh text is code: for rules about probes that shellcheck does not know."""


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
