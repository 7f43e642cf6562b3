"""Files that are whole or not there."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(content: bytes, path: Path) -> None:
    """Write a file: what was at the path stays untouched until the new one is complete.

    Raises
    ------
    OSError, ValueError
        Where it cannot be written; the latter for a path with a null character.
    """
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


def reason(error: Exception) -> str:
    """Return why a file could not be read or written, without its name."""
    return str(getattr(error, "strerror", None) or error)
