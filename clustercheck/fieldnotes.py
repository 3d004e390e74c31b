"""The field notes that remedies cite: what each section says and how far it holds."""

from configparser import ConfigParser
from functools import cache
from importlib import resources


@cache
def sections() -> dict[str, str]:
    """Summaries by section as remedies cite it ("§4.1.5"), in the order of the notes."""
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    data = resources.files("clustercheck").joinpath("data/fieldnotes.ini")
    parser.read_string(data.read_text(encoding="utf-8"))
    return {f"§{number}": text for number, text in parser["sections"].items()}
