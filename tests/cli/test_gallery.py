"""`depgraph gallery`: the model files that come with depgraph."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "fixtures").glob("*.py"))


def test_it_lists_every_file_with_its_first_line(run):
    result = run("gallery")
    assert result.exit_code == 0
    lines = dict(line.rstrip().split(maxsplit=1) for line in result.stdout.splitlines()[1 : len(FILES) + 1])
    assert list(lines) == [file.stem for file in FILES]
    for file in FILES:
        assert (
            file.read_text().startswith(f'"""{lines[file.stem]}\n') or f'"""{lines[file.stem]}"""' in file.read_text()
        )


@pytest.mark.parametrize("name", ["lstm", "lstm.py"])
def test_it_says_where_a_file_is(run, name):
    result = run("gallery", name)
    assert Path(result.stdout.strip()) == ROOT / "fixtures" / "lstm.py"


def test_an_unknown_name(run):
    result = run("gallery", "lsmt")
    assert result.exit_code == 2
    assert "The gallery has no 'lsmt'. It has: " in result.stderr
    assert "lstm" in result.stderr
