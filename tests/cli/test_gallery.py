"""`depgraph gallery`: the model files that come with depgraph."""

import shutil
import subprocess
import sys
import zipfile
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


def test_a_wheel_brings_the_files(tmp_path):
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("depgraph", "cli", "fixtures"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from setuptools import build_meta; build_meta.build_wheel('.')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from depgraph_cli.main import main; main(['gallery', 'lstm'])"
    shown = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "site")], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    file = Path(shown.stdout.strip())
    assert file == tmp_path / "site" / "depgraph_cli" / "fixtures" / "lstm.py"
    assert file.read_text() == (ROOT / "fixtures" / "lstm.py").read_text()
