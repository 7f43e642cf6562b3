"""The modules of `torch.nn`, each on its own: every element of every input and output is told apart."""

from __future__ import annotations

import inspect

from torch import nn

from tests.zoo.case import Cases
from tests.zoo.layers import add_activations, add_layers, add_losses, add_recurrent_and_attention
from tests.zoo.spatial import add_spatial

# Not measured, and why.
LEFT_OUT = {
    **dict.fromkeys(("Container", "Module", "RNNBase", "RNNCellBase"), "a base class"),
    **dict.fromkeys(("ModuleDict", "ModuleList", "ParameterDict", "ParameterList"), "a container without forward"),
    "NLLLoss2d": "an old name of NLLLoss",
    "CrossMapLRN2d": "it exchanges the memory of its tensors by `set_`, which cannot be followed",
}

CASES = Cases()
for _add in (add_spatial, add_layers, add_recurrent_and_attention, add_activations, add_losses):
    _add(CASES)


def classes_of_torch() -> set[str]:
    """Return the names of all module classes that `torch.nn` offers."""
    return {name for name, thing in vars(nn).items() if inspect.isclass(thing) and issubclass(thing, nn.Module)}
