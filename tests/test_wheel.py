"""What is in the wheel, and what is not."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build a wheel from a copy of the sources, without network."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tree)
    for folder in ("depgraph", "cli", "tests", "fixtures", "benchmarks", "docs"):
        if (ROOT / folder).exists():
            shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=tree, check=True, capture_output=True)
    (wheel,) = out.glob("depgraph-*.whl")
    return wheel


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources(folder, package):
    return {f"{package}/{file.relative_to(ROOT / folder).as_posix()}" for file in (ROOT / folder).rglob("*.py")}


def test_every_module_is_in_it(names):
    assert {name for name in names if name.endswith(".py")} == (
        sources("depgraph", "depgraph")
        | sources("cli/depgraph_cli", "depgraph_cli")
        | sources("fixtures", "depgraph_cli/fixtures")
    )


def test_nothing_else_is_at_its_top(names):
    (info,) = {name.split("/")[0] for name in names} - {"depgraph", "depgraph_cli"}
    assert info.startswith("depgraph-")
    assert info.endswith(".dist-info")


def test_its_types_can_be_used(names):
    assert {"depgraph/py.typed", "depgraph_cli/py.typed"} <= names


def test_it_brings_its_licence_and_its_command(names):
    assert any(name.endswith("LICENSE") for name in names)
    assert any(name.endswith("entry_points.txt") for name in names)


def test_its_gallery(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import sys; sys.path.insert(0, sys.argv[1]); from depgraph_cli.main import main; main(['gallery', 'lstm'])"
    run = [sys.executable, "-c", code, str(tmp_path)]
    shown = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert Path(shown.strip()) == tmp_path / "depgraph_cli" / "fixtures" / "lstm.py"
    assert Path(shown.strip()).read_text() == (ROOT / "fixtures" / "lstm.py").read_text()
