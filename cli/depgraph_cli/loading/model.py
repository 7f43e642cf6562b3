"""Which of the things in a model file is the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from depgraph import LoadError
from depgraph_cli.loading.files import told

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram


def find_model(namespace: ModuleType, attribute: str, where: str) -> nn.Module | ExportedProgram:
    """Return the model of a file: the named attribute, else ``model``, else its one class that needs no arguments.

    Raises
    ------
    LoadError
        Where there is no such thing, more than one, or it cannot be built.
    """
    if attribute:
        return build(_attribute(namespace, attribute, where), attribute, where)
    if hasattr(namespace, "model"):
        return build(namespace.model, "model", where)
    classes = {name: value for name, value in _modules(namespace).items() if isinstance(value, type)}
    ready = [name for name, value in classes.items() if not _required(value)]
    if len(ready) == 1:
        return build(classes[ready[0]], ready[0], where)
    if ready:
        raise LoadError(f"{where} defines several models: {', '.join(ready)}. Say which, as in {where}:{ready[-1]}.")
    others = [name for name in _modules(namespace) if name not in classes]
    if others:
        raise LoadError(f"{where} has no `model`, but {', '.join(others)}. Say which, as in {where}:{others[-1]}.")
    if classes:
        name = next(reversed(classes))
        raise LoadError(
            f"{where} has no `model`, and its {_several('class', 'classes', list(classes))} cannot be built without "
            f"arguments ({name} needs {', '.join(_required(classes[name]))}). Add a line `model = {name}(...)`."
        )
    raise LoadError(
        f"{where} has no model: define `model` (an nn.Module, a class or a function returning one), or an nn.Module "
        "class that can be built without arguments."
    )


def build(thing: Any, name: str, where: str) -> nn.Module | ExportedProgram:
    """Return the model that a module, a class or a function stands for.

    Raises
    ------
    LoadError
        Where it stands for none.
    """
    from torch import nn
    from torch.export import ExportedProgram

    if isinstance(thing, (nn.Module, ExportedProgram)):
        return thing
    if not callable(thing) or (isinstance(thing, type) and not issubclass(thing, nn.Module)):
        raise LoadError(
            f"`{name}` in {where} is {_kind(thing)}, not an nn.Module, a class or a function returning one."
        )
    if required := _required(thing):
        raise LoadError(
            f"`{name}` in {where} cannot be built without arguments: it needs {', '.join(required)}. Give them "
            f"defaults, or add a line `model = {name}(...)`."
        )
    try:
        made = thing()
    except Exception as error:
        raise LoadError(f"`{name}()` in {where} cannot be built: {told(error)}.") from error
    if not isinstance(made, (nn.Module, ExportedProgram)):
        raise LoadError(f"`{name}()` in {where} returns {_kind(made)}, not an nn.Module.")
    return made


def _attribute(namespace: ModuleType, attribute: str, where: str) -> Any:
    value: Any = namespace
    for part in attribute.split("."):
        if not hasattr(value, part):
            names = list(_modules(namespace))
            offers = f"It offers {', '.join(names)}." if names else "It defines no model."
            raise LoadError(f"There is no {attribute!r} in {where}. {offers}")
        value = getattr(value, part)
    return value


def _modules(namespace: ModuleType) -> dict[str, Any]:
    """Return the models and model classes defined in a file itself, in the file's order."""
    from torch import nn

    return {
        name: value
        for name, value in vars(namespace).items()
        if isinstance(value, nn.Module)
        or (isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == namespace.__name__)
    }


def _required(thing: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments without which a class or a function cannot be called."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variable]


def _kind(thing: Any) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"a {type(thing).__name__}"


def _several(one: str, many: str, names: list[str]) -> str:
    return f"{one if len(names) == 1 else many} {', '.join(names)}"
