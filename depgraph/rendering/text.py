"""Text on its way into DOT: nothing in it may act as markup, an escape, an entity or a broken character."""

from __future__ import annotations

import re
from collections.abc import Iterable

import graphviz

# What XML 1.0 cannot hold, even escaped: control characters, surrogates, the two non-characters.
_BROKEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_SPACE = re.compile(r"\s+")


def plain(text: object) -> str:
    """Return the text on one line, with a visible sign in place of each character that no drawing can hold."""
    return _BROKEN.sub("\N{REPLACEMENT CHARACTER}", _SPACE.sub(" ", str(text))).strip()


def short(text: object, limit: int) -> str:
    """Return the text on one line of at most that many characters."""
    line = plain(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def label(*lines: str, end: str = "\\n") -> str:
    r"""Return a DOT label that shows exactly these lines.

    Graphviz reads ``\N`` as the name of the node, ``&lt;`` as a sign and ``<b>`` as markup; in here they are text.

    Parameters
    ----------
    *lines : str
    end : {"\\n", "\\l", "\\r"}
        How the lines are justified: centred, left, right.
    """
    return _escaped(lines, "\\\\", end) if end == "\\n" else _escaped((*lines, ""), "\\\\", end)


def tooltip(*lines: str) -> str:
    """Return a DOT tooltip that shows exactly these lines; Graphviz undoes backslashes twice in there."""
    return _escaped(lines, "\\\\\\\\", "\\n")


def _escaped(lines: Iterable[str], backslash: str, end: str) -> str:
    text: str = graphviz.nohtml(end.join(line.replace("\\", backslash).replace("&", "&amp;") for line in lines))
    return text
