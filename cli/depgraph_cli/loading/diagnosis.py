"""Why a model does not run on its inputs: which part refused which tensor, and what that part expects."""

from __future__ import annotations

from typing import Any

from depgraph_cli.loading.files import told
from depgraph_cli.loading.inputs import describe, shown_signature, signature
from depgraph_cli.loading.loaded import Loaded


def why_it_fails(loaded: Loaded) -> str:
    """Run the model as it is; return in a sentence or two why it raises, ``""`` where it does not."""
    import torch
    from torch.nn.modules import module as hooks

    entered: list[tuple[torch.nn.Module, tuple[Any, ...]]] = []
    handles = [
        hooks.register_module_forward_pre_hook(lambda part, args: entered.append((part, args))),
        hooks.register_module_forward_hook(lambda part, args, result: (entered.pop(), None)[1]),
    ]
    try:
        with torch.no_grad():
            loaded.module(*loaded.args, **loaded.kwargs)
    except Exception as error:
        return _sentence(loaded, entered, error)
    finally:
        for handle in handles:
            handle.remove()
    return ""


def _sentence(loaded: Loaded, entered: list[tuple[Any, tuple[Any, ...]]], error: Exception) -> str:
    given = signature(loaded.module).bind(*loaded.args, **loaded.kwargs).arguments
    listing = ", ".join(f"{name} = {describe(value)}" for name, value in given.items())
    whole = type(loaded.module).__name__
    text = f"{whole}.forward{shown_signature(loaded.module)} fails on these inputs: {listing or 'none'}. "
    if len(entered) > 1:
        part, received = entered[-1]
        name = next((name for name, module in loaded.module.named_modules() if module is part), "")
        text += f"`{name}`, {_head(part)}, "
        for value in received:
            argument = next((key for key, one in given.items() if one is value), None)
            if argument is not None:
                text += f"was given the argument {argument}, {describe(value)}, and "
                break
        else:
            text += f"was given {', '.join(map(describe, received)) or 'keyword arguments'} and "
        text += "raised "
    return text + told(error) + "."


def _head(part: Any) -> str:
    """Return a module in one line: ``Linear(in_features=64, out_features=64, bias=True)``."""
    return f"{type(part).__name__}({part.extra_repr()})"
