"""A family of the `transformers` package: a model class, its configuration and the arguments of its forward."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

BATCH, LENGTH, WORDS = 2, 7, 23

# Axes told apart: all but channels and features. Of other inputs, all of them.
_INPUT_AXES = {"pixel_values": (0, 2, 3), "input_features": (0, 2)}
_OUTPUT_AXES = {0: (), 1: (0,), 2: (0,), 3: (0, 1), 4: (0, 2, 3)}


@dataclass(frozen=True)
class Family:
    """A model family, as tiny as it can be built.

    Attributes
    ----------
    name, kind : str
    model : str
        Name of the model class in `transformers`.
    settings : dict
        Of its configuration.
    arguments : callable
        Returns the keyword arguments of forward.
    reason : str
        Why the graph has more pairs than measuring shows, where it has.
    attends : bool
        Whether there is a choice between implementations of attention.
    config : str
        Name of the configuration class where it is not that of the model.
    options : dict
        Attributes set on the configuration.
    """

    name: str
    kind: str
    model: str
    settings: dict[str, Any]
    arguments: Callable[[], dict[str, Any]]
    reason: str = ""
    attends: bool = True
    config: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def attention(self) -> tuple[str, ...]:
        """The implementations of attention that there are; ``"–"`` where there is no choice."""
        if not self.attends:
            return ("–",)
        return ("eager", "sdpa") if getattr(transformers(), self.model)._supports_sdpa else ("eager",)

    def build(self, attention: str) -> torch.nn.Module:
        """Return the model, its weights drawn at random."""
        library = transformers()
        config = getattr(library, self.config or self.model.removesuffix("Model") + "Config")(**self.settings)
        for name, value in self.options.items():
            setattr(config, name, value)
        cls = getattr(library, self.model)
        torch.manual_seed(0)
        if not self.attends:
            return cls(config).eval()
        model = cls._from_config(config, attn_implementation=attention).eval()
        assert model.config._attn_implementation == attention
        return model

    def given(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the arguments, and which of them are known: masks."""
        torch.manual_seed(1)
        arguments = self.arguments()
        return arguments, tuple(name for name in arguments if name.endswith("attention_mask"))


def positions(arguments: dict[str, Any], known: tuple[str, ...], outputs: list[torch.Tensor]) -> dict[str, Any]:
    """Return the axes to tell apart: of images and sequences the places, and in all of them the examples."""
    named = {
        name: _INPUT_AXES.get(name, tuple(range(value.ndim))) if value.ndim < 5 else (0, 1, 3, 4)
        for name, value in arguments.items()
        if name not in known
    }
    return named | {f"output.{k}": _OUTPUT_AXES[tensor.ndim] for k, tensor in enumerate(outputs)}


def transformers() -> Any:
    """Return the package, quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
    return transformers


def ids(length: int = LENGTH) -> torch.Tensor:
    """Return token ids, no special ones among them."""
    return torch.randint(4, WORDS, (BATCH, length))


def text(length: int = LENGTH) -> dict[str, Any]:
    """Return token ids."""
    return {"input_ids": ids(length)}


def longer_text() -> dict[str, Any]:
    """Return token ids, a power of two of them."""
    return text(8)


def padded() -> dict[str, Any]:
    """Return token ids and a mask that hides the last two of the second sequence."""
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, -2:] = 0
    return {"input_ids": ids(), "attention_mask": mask}


def gapped() -> dict[str, Any]:
    """Return token ids of which every other one is padding, without a mask: positions are counted by what is not."""
    return {"input_ids": torch.where(torch.arange(8) % 2 == 0, ids(8), 1)}


def pair() -> dict[str, Any]:
    """Return token ids for an encoder and for a decoder."""
    return {"input_ids": ids(5), "decoder_input_ids": ids(4)}


def image(size: int = 8) -> dict[str, Any]:
    """Return a small image."""
    return {"pixel_values": torch.randn(BATCH, 3, size, size)}


def large_image() -> dict[str, Any]:
    """Return an image that a few convolutions do not span."""
    return image(32)


def film() -> dict[str, Any]:
    """Return two frames of four by four."""
    return {"pixel_values": torch.randn(BATCH, 2, 3, 4, 4)}


def wave() -> dict[str, Any]:
    """Return a sound wave."""
    return {"input_values": torch.randn(BATCH, 31)}
