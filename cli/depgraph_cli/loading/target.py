"""What a TARGET says: a model file, an importable module, an exported program or a graph, and a name in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from depgraph import LoadError

_PICKLES = {".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".bin"}
_FORMS = "TARGET is file.py, file.py:attr, package.module:attr, file.pt2, file.onnx or graph.json"
_WHOLE = {
    ".pt2": "An exported program is one model",
    ".onnx": "An ONNX file is one model",
    ".json": "A saved graph is one",
}


@dataclass(frozen=True)
class Target:
    """A parsed TARGET: either a file or a module's dotted name, and the name of an attribute in it, where given."""

    text: str
    file: Path | None
    module: str
    attribute: str

    @property
    def exported(self) -> bool:
        """Whether it is an exported program."""
        return self.file is not None and self.file.suffix.lower() == ".pt2"

    @property
    def holds_graph(self) -> bool:
        """Whether it is a graph rather than a model: there is nothing in it to run."""
        return self.file is not None and self.file.suffix.lower() in (".onnx", ".json")


def parse(text: str) -> Target:
    """Return what a TARGET says.

    Raises
    ------
    LoadError
        Where it has none of these forms, the file does not exist, or it is a pickle.
    """
    head, colon, attribute = text.rpartition(":")
    if not (colon and _is_dotted(attribute)):
        head, attribute = text, ""
    if not head.strip():
        raise LoadError(f"{text!r} names no file and no module: {_FORMS}.")
    file, suffix = Path(head), Path(head).suffix.lower()
    if suffix in _PICKLES and (file.exists() or not attribute):
        raise LoadError(
            f"{head} is a pickle: loading it runs whatever code it holds, so depgraph does not open it. Write a model "
            f"file instead, say mymodel.py, with `model = Net()`, then "
            f"`model.load_state_dict(torch.load({file.name!r}, weights_only=True))` if the weights matter, and "
            "`example_inputs`; then analyse mymodel.py."
        )
    if suffix == ".py" or suffix in _WHOLE:
        if not file.exists():
            raise LoadError(f"There is no file {head}.")
        if not file.is_file():
            raise LoadError(f"{head} is a folder, not a file.")
        if suffix in _WHOLE and attribute:
            raise LoadError(f"{_WHOLE[suffix]}: give {head} without :{attribute}.")
        return Target(text, file, "", attribute)
    if file.exists():
        what = "a folder" if file.is_dir() else "no .py, .pt2, .onnx or .json file"
        raise LoadError(f"{head} is {what}. {_FORMS}.")
    if attribute and _is_dotted(head):
        return Target(text, None, head, attribute)
    hint = f" Did you mean {head}.py?" if Path(f"{head}.py").is_file() else ""
    raise LoadError(f"{text!r} names no model: {_FORMS}.{hint}")


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))
