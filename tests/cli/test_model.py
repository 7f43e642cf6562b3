"""Which of the things in a file is the model."""

import re

import pytest
import torch
from torch import nn

from depgraph import LoadError
from depgraph_cli.loading.files import run_file
from depgraph_cli.loading.model import find_model

NET = """
class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(width, width)
"""


@pytest.fixture
def find(write, tmp_path):
    def find(source, attribute=""):
        return find_model(run_file(tmp_path / write(source)), attribute, "mymodel.py")

    return find


@pytest.mark.parametrize(
    ("source", "attribute"),
    [
        ("model = nn.Linear(3, 3)", ""),
        ("model = nn.Identity\nmodel = nn.ReLU", ""),
        ("def model():\n    return nn.Linear(3, 3)", ""),
        ("model = lambda width=3: nn.Linear(width, width)", ""),
        (NET, ""),
        (NET + "class Part(Net):\n    def __init__(self, width):\n        super().__init__(width)", ""),
        (NET + "class Other(Net):\n    pass", "Other"),
        (NET + "net = Net(5)\nnet_2 = Net(6)", "net"),
        ("def build():\n    return nn.Linear(3, 3)", "build"),
        ("class nets:\n    small = nn.Linear(3, 3)", "nets.small"),
        ("from torch.nn import *\nfrom torch.nn import Linear\nmodel = Linear(1, 1)", ""),
    ],
)
def test_found(find, source, attribute):
    assert isinstance(find(source, attribute), nn.Module)


def test_model_comes_before_classes(find):
    assert isinstance(find(NET + "model = nn.Linear(1, 1)"), nn.Linear)


def test_imported_classes_do_not_count(find):
    assert type(find("from torch.nn import ReLU, Identity\n" + NET)).__name__ == "Net"


def test_an_exported_program_is_a_model(find):
    made = find("model = torch.export.export(nn.Linear(3, 3), (torch.ones(2, 3),))")
    assert isinstance(made, torch.export.ExportedProgram)


@pytest.mark.parametrize(
    ("source", "attribute", "message"),
    [
        ("x = 1", "", "mymodel.py has no model: define `model`"),
        (NET + "class Other(Net):\n    pass", "", "several models: Net, Other. Say which, as in mymodel.py:Other."),
        ("net = nn.Linear(1, 1)", "", "no `model`, but net. Say which, as in mymodel.py:net."),
        (
            NET.replace("width=3", "width, depth"),
            "",
            "its class Net cannot be built without arguments (Net needs width, depth). Add a line `model = Net(...)`.",
        ),
        (NET, "Other", "There is no 'Other' in mymodel.py. It offers Net."),
        (NET, "Net.small", "There is no 'Net.small' in mymodel.py. It offers Net."),
        ("x = 1", "x.y", "It defines no model."),
        ("model = None", "", "`model` in mymodel.py is a NoneType, not an nn.Module, a class or a function"),
        ("model = dict", "", "`model` in mymodel.py is the class dict, not an nn.Module"),
        ("def model():\n    return 7", "", "`model()` in mymodel.py returns a int, not an nn.Module."),
        (
            "def model(width):\n    return nn.ReLU()",
            "",
            "`model` in mymodel.py cannot be built without arguments: it needs width",
        ),
        (
            "def model():\n    return nn.Linear('3', 3)",
            "",
            "`model()` in mymodel.py cannot be built: TypeError",
        ),
        ("def model():\n    return 1 / 0", "", "division by zero (mymodel.py:4, `return 1 / 0`)."),
    ],
)
def test_said_what_is_missing(find, source, attribute, message):
    with pytest.raises(LoadError, match=re.escape(message)):
        find(source, attribute)
