"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from depgraph_cli.failures import Failure


def check_writable(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise before any work is done where a file could not be written in the end.

    Raises
    ------
    Failure
        Where the suffix is none of those, the folder is missing, or writing is not allowed.
    """
    if path.suffix.lower() not in suffixes:
        allowed = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise Failure(f"{path} cannot be written: its name must end in {allowed}.")
    if path.exists() and not path.is_file():
        raise Failure(f"{path} cannot be written: it exists and is no file.")
    if not path.parent.is_dir():
        raise Failure(f"{path} cannot be written: there is no folder {path.parent}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Failure(f"{path} cannot be written: permission denied.")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes the wanted file when all went well and is removed otherwise."""
    draft = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield draft
        os.replace(draft, path)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)
