"""The page docs/from-rnn-to-transformer.md: where its tables and its pictures stand."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "from-rnn-to-transformer.md"
FOLDER = PAGE.parent / "pictures"
_TABLE = re.compile(r"(?<=<!-- table: )(\w+)( -->\n\n)(.*?)\n*(?=<!-- end -->)", re.DOTALL)


def tables(text):
    """Return the tables in a text by name."""
    return {match[1]: match[3] for match in _TABLE.finditer(text)}


def with_tables(text, new):
    """Return a text with other tables in the same places."""
    return _TABLE.sub(lambda match: f"{match[1]}{match[2]}{new[match[1]]}\n\n", text)


def pictures(text):
    """Return the names of the pictures that a text shows."""
    return re.findall(r"\]\(pictures/(\w+)\.svg\)", text)
