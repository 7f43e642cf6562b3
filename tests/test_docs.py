"""Code in the documentation runs as it stands there, block after block."""

import re
import warnings
from pathlib import Path

import pytest

from depgraph.rules.registry import RULES

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")] if "```python" in page.read_text(encoding="utf-8")
)


@pytest.fixture(autouse=True)
def _own_rules():
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_it_runs(page, capsys, tmp_path, monkeypatch):
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)  # what it writes goes there
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
    assert {"README.md", "custom_operators.md", "measures.md"} <= {page.name for page in PAGES}
