"""Running a model file, and saying what went wrong in it."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType

from depgraph import LoadError

_LIBRARIES = tuple(os.path.realpath(path) + os.sep for path in sysconfig.get_paths().values())
_OWN = str(Path(__file__).resolve().parents[1]) + os.sep


def run_file(file: Path) -> ModuleType:
    """Return the module that a model file defines, run as `python file.py` would: its folder comes first on the path.

    Nothing is written beside the file, and a file named like a library hides that library from no one.

    Raises
    ------
    LoadError
        Where the file cannot be read or raises.
    """
    file = file.resolve()
    name = "depgraph_model_" + re.sub(r"\W", "_", file.stem)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    sys.modules[name] = module
    argv, sys.argv = sys.argv, [str(file)]
    try:
        exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), module.__dict__)
    except OSError as error:
        if error.filename == str(file):
            raise LoadError(f"{shown(file)} cannot be read: {error.strerror}.") from error
        raise LoadError(f"{shown(file)} cannot be imported: {told(error)}.") from error
    except (Exception, SystemExit) as error:
        raise LoadError(f"{shown(file)} cannot be imported: {told(error)}.{_hint(error)}") from error
    finally:
        sys.argv = argv
    return module


def import_module(name: str) -> ModuleType:
    """Return an importable module, looked up in the working directory first.

    Raises
    ------
    LoadError
        Where there is none of that name, or importing it raises.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise LoadError(f"There is no module {error.name!r}, neither installed nor in {os.getcwd()}.") from error
        raise LoadError(f"The module {name} cannot be imported: {told(error)}.") from error
    except (Exception, SystemExit) as error:
        raise LoadError(f"The module {name} cannot be imported: {told(error)}.") from error


def told(error: BaseException) -> str:
    """Return what an error says, and in brackets where in the user's own code it arose and the code there."""
    what = "".join(traceback.format_exception_only(error)[-1:]).strip().rstrip(".")
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{type(error).__name__}: {error.msg} ({_place(error.filename, error.lineno)})"
    if isinstance(error, SystemExit):
        what = f"it calls sys.exit({error.code!r})"
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    mine = [frame for frame in frames if not frame[0].startswith(("<", _OWN, *_LIBRARIES))]
    return f"{what} ({_place(*mine[-1])})" if mine else what


def shown(file: str | Path) -> str:
    """Return a path as it is shown: relative to the working directory, where it lies below."""
    path = Path(file)
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else str(path)


def _place(file: str, line: int) -> str:
    code = linecache.getline(file, line).strip()
    return f"{shown(file)}:{line}" + (f", `{code}`" if code else "")


def _hint(error: BaseException) -> str:
    if isinstance(error, ImportError) and "relative import" in str(error):
        return " A file with relative imports belongs to a package: name it as package.module:attr instead."
    return ""
