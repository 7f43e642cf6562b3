"""The forms of a TARGET, and what is said of anything else."""

import re

import pytest

from depgraph import LoadError
from depgraph_cli.loading.target import parse


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("net.py", "net.pt2", "net.onnx", "net.json", "net.pth", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.py").mkdir()


@pytest.mark.parametrize(
    ("text", "file", "module", "attribute"),
    [
        ("net.py", "net.py", "", ""),
        ("net.py:Net", "net.py", "", "Net"),
        ("net.py:nets.small", "net.py", "", "nets.small"),
        ("net.pt2", "net.pt2", "", ""),
        ("net.onnx", "net.onnx", "", ""),
        ("net.json", "net.json", "", ""),
        ("package.module:Net", None, "package.module", "Net"),
        ("module:net", None, "module", "net"),
    ],
)
def test_forms(text, file, module, attribute):
    target = parse(text)
    assert (target.text, target.module, target.attribute) == (text, module, attribute)
    assert (target.file and str(target.file)) == file
    assert target.exported == (text == "net.pt2")
    assert target.holds_graph == (text in ("net.onnx", "net.json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("missing.py", "There is no file missing.py."),
        ("missing.py:Net", "There is no file missing.py."),
        ("missing.pt2", "There is no file missing.pt2."),
        ("missing.onnx", "There is no file missing.onnx."),
        ("missing.json:Net", "There is no file missing.json."),
        ("folder", "folder is a folder. TARGET is file.py, file.py:attr, package.module:attr, file.pt2, file.onnx or"),
        ("folder.py", "folder.py is a folder, not a file."),
        ("notes.txt", "notes.txt is no .py, .pt2, .onnx or .json file."),
        ("net.pt2:model", "An exported program is one model: give net.pt2 without :model."),
        ("net.onnx:model", "An ONNX file is one model: give net.onnx without :model."),
        ("net.json:model", "A saved graph is one: give net.json without :model."),
        ("", "'' names no file and no module: TARGET is file.py, "),
        (" ", "' ' names no file and no module"),
        (":Net", "':Net' names no file and no module"),
        ("net", "'net' names no model: TARGET is file.py, .* Did you mean net.py?"),
        ("no:such:form", "'no:such:form' names no model"),
        ("net.pth", "net.pth is a pickle: loading it runs whatever code it holds"),
        (
            "missing.pt",
            r"missing.pt is a pickle: .* `model.load_state_dict\(torch.load\('missing.pt', weights_only=True",
        ),
    ],
)
def test_everything_else_is_refused(text, message):
    with pytest.raises(LoadError, match=message if "*" in message else re.escape(message)):
        parse(text)
