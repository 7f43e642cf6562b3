"""A progress bar for slow work on a terminal, and none otherwise."""

import io
import sys
import time

import pytest

from depgraph_cli import progress as module
from depgraph_cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    def shown(stream, seconds):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(module, "PATIENCE", 0.05)
        monkeypatch.setenv("TERM", "xterm")
        with progress(2) as step:
            step("Loading")
            step("Tracing")
            time.sleep(seconds)
        return stream.getvalue()

    return shown


def test_slow_work_on_a_terminal(shown):
    text = shown(Terminal(), 0.4)
    assert "Tracing" in text
    assert "1/2" in text


def test_quick_work(shown):
    assert shown(Terminal(), 0) == ""


def test_piped(shown):
    assert shown(io.StringIO(), 0.2) == ""


def test_it_goes_when_work_fails(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")

    def work():
        with progress(1) as step:
            step("Loading")
            time.sleep(0.2)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        work()
    written = stream.getvalue()
    assert "Loading" in written
    assert written.rindex("Loading") < written.rindex("\x1b[2K")  # The line is erased.
