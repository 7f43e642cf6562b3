"""A folder to write model files in, and the command to run on them."""

import json
import re
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from depgraph_cli.main import main

HEADER = "import torch\nfrom torch import nn\n"


@pytest.fixture(autouse=True)
def _own_imports(monkeypatch):
    """Model files leave their folder on the path and their modules loaded, as a command may: it ends soon after."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("depgraph_model_") or not _is_library(sys.modules[name]):
            del sys.modules[name]


def _is_library(module):
    file = getattr(module, "__file__", None)
    return file is None or "pytest-of" not in file


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a model file into the working directory; PyTorch is imported in it already."""
    monkeypatch.chdir(tmp_path)

    def write(source, name="mymodel.py", header=HEADER):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(header + textwrap.dedent(source))
        return name

    return write


@pytest.fixture
def run():
    """Run a command line; return its result, with what was printed on standard output and on standard error."""

    def run(*arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def answer(run):
    """Run a command line with --json; return the object printed."""

    def answer(*arguments):
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return answer


@pytest.fixture
def refusal(run):
    """Run a command line that must fail; return its one message."""

    def refusal(*arguments):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert "Traceback" not in result.stderr
        assert len(re.findall("^Error: ", result.stderr, re.MULTILINE)) == 1
        return result.stderr.partition("Error: ")[2].strip()

    return refusal


@pytest.fixture(scope="session")
def fixtures():
    """Return the folder of example model files."""
    return Path(__file__).parents[2] / "fixtures"
