"""Writing a file: whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from depgraph.errors import RenderError


def write_whole(content: bytes, path: Path, what: str) -> None:
    """Write a file: what was at the path stays untouched until the new file is complete.

    Parameters
    ----------
    content : bytes
    path : Path
    what : str
        What it holds, for the message: ``"drawing"``.

    Raises
    ------
    RenderError
        Where it cannot be written.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe or a device
            path.write_bytes(content)
            return
        target = path.resolve()
        if target.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        beside = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}")
        try:
            beside.write_bytes(content)
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or error
        raise RenderError(f"Cannot write the {what} to {str(path)!r}: {reason}.") from error
