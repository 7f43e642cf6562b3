"""The zoo's tables, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from tests.zoo.measuring import DRAWS, LIMIT, Row
from tests.zoo.modules import LEFT_OUT

_HEAD = f"""# Model zoo

What depgraph says of well-known models, compared with what they do: `depgraph.verify` on every one of them, with
{DRAWS} draws of weights and inputs, up to {LIMIT} positions of each input. This page is written by
`python -m tests.zoo`; the versions were torch {{torch}} and transformers {{transformers}}.

**exact**: the pairs of positions with a path in the graph are those that measuring shows, and no others. **sound**:
measuring shows no dependence that the graph lacks, but the graph has pairs that no draw has shown; the reason is given.
**missed** would be a dependence without a path, a fault.

{{summary}}

## Families of the `transformers` package

Each is built from a tiny configuration. Examples of a batch are told apart, and in each of them tokens, pixels, frames
and samples; features and channels are not.
"""
_MODULES = """
## Modules of `torch.nn`

Every element of every input and output is told apart: batch, channels and features as well.
"""
_LEFT_OUT = "\nLeft out, each for its reason:\n"


def document(families: Sequence[Row], modules: Sequence[Row]) -> str:
    """Return the whole page."""
    everything = [*families, *modules]
    count = {word: sum(row.word == word for row in everything) for word in ("exact", "sound", "missed", "failed")}
    summary = ", ".join(f"{number} {word}" for word, number in count.items())
    head = _HEAD.format(
        torch=version("torch").partition("+")[0],
        transformers=version("transformers"),
        summary=f"{len(everything)} rows: {summary}.",
    )
    left_out = [f"- `{name}`: {reason}." for name, reason in LEFT_OUT.items()]
    return "\n".join([head, *_table(families, "attention"), _MODULES, *_table(modules, ""), _LEFT_OUT, *left_out, ""])


def _table(rows: Sequence[Row], attention: str) -> list[str]:
    heads = ["model", *(["kind", attention] if attention else []), "verdict", "compared", "with a path", "missed"]
    heads += ["extra", "why extra"]
    lines = [
        heads,
        ["---" if head in ("model", "kind", attention, "verdict", "why extra") else "--:" for head in heads],
    ]
    for row in rows:
        verdict = row.verdict
        counts = ["–"] * 4
        if verdict is not None:
            counts = [f"{n:,}" for n in (verdict.compared, verdict.pairs, len(verdict.missed), len(verdict.extra))]
        kind = [row.kind, row.attention] if attention else []
        lines.append([row.name, *kind, row.word, *counts, row.reason or row.error])
    return [f"| {' | '.join(line)} |" for line in lines]
