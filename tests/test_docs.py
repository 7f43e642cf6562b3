"""Code in the documentation runs as it stands there, block after block."""

import re
import warnings
from pathlib import Path

import pytest

from depgraph.rules.registry import RULES

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page for page in DOCS.glob("*.md") if "```python" in page.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _own_rules():
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_it_runs(page, capsys):
    text = page.read_text(encoding="utf-8")
    names = {"__name__": page.stem}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, block.start(1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile("\n" * line + block[1], page, "exec"), names)
    printed = re.findall(r"print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == printed


def test_there_are_pages():
    assert "custom_operators.md" in [page.name for page in PAGES]
