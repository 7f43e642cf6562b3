"""The command itself: how it starts, how it fails, how it is interrupted."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("depgraph")
HEAVY = {"torch", "numpy", "scipy", "networkx", "rich", "graphviz"}

installed = pytest.mark.skipif(not COMMAND.exists(), reason="depgraph is not installed beside this Python")


def loaded_by(code):
    report = "; import sys; print('\\n', *{name.split('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split())


def test_starting_imports_nothing_heavy(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parents[2]}:{Path(__file__).parents[2] / 'cli'}")
    assert not HEAVY & loaded_by("import depgraph_cli.main")
    assert not HEAVY & loaded_by(
        "from depgraph_cli.main import main; main(['analyze', '--help'], standalone_mode=False)"
    )


def test_help_names_every_command(run):
    text = run("--help").stdout
    for command in ("analyze", "path", "schedule", "render", "verify"):
        assert f"\n  {command} " in text
        assert "TARGET" in run(command, "--help").stdout
    assert "\n  gallery " in text


@installed
def test_the_installed_command(fixtures):
    ran = subprocess.run([COMMAND, "analyze", fixtures / "rnn.py", "--json"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    numbers = json.loads(ran.stdout)
    assert (numbers["work"], numbers["critical_path"]["length"], numbers["parallelism"]["width"]) == (100, 100, 1)


@installed
def test_interrupted(write, tmp_path):
    write("import time\nopen('started', 'w').close()\n[time.sleep(0.01) for _ in range(6000)]", header="")
    with subprocess.Popen(
        [COMMAND, "render", "mymodel.py", "-o", "graph.svg"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Shells start background jobs with interrupts ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "Interrupted.\n")
    assert process.returncode == 130
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mymodel.py", "started"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "There is no file missing.py."),
        (["net.pth"], "net.pth is a pickle"),
        (["mymodel.py:Other"], "There is no 'Other' in mymodel.py. It offers Net, model."),
        (["mymodel.py", "--positions", "y=1"], "'y'"),
        (["mymodel.py", "--positions", "x=7"], "7"),
        (["mymodel.py", "--positions", "x"], "'x' is not NAME=AXIS or NAME=AXIS,AXIS, such as x=1 or img=2,3."),
        (["mymodel.py", "--positions", "x=1", "--positions", "x=2"], "--positions names 'x' more than once."),
        (["mymodel.py", "--known", "y"], "'y'"),
        (["mymodel.py", "--input", "x"], "'x' is not NAME=SIZES or NAME=SIZES:DTYPE"),
        (["mymodel.py", "--input", "x=2:int65"], "there is no dtype 'int65'. The dtypes are: bool, uint8,"),
        (["mymodel.py", "--input", "x=2,4"], "Net.forward(x) fails on these inputs: x = float32 (2, 4). "),
        (["mymodel.py", "--input", "x=2", "--input", "x=3"], "--input names 'x' more than once."),
        (["mymodel.py", "--weight", "grams"], "'grams' is not one of"),
    ],
)
def test_bad_input(refusal, write, arguments, message):
    write(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 3)

            def forward(self, x):
                return self.linear(x)

        model = Net()
        example_inputs = torch.ones(1, 2, 3)
        """
    )
    assert message in refusal("analyze", *arguments)


def test_what_nobody_foresaw(refusal, run, write, monkeypatch):
    import depgraph

    def fail(*args, **kwargs):
        raise RuntimeError("a wire is loose")

    write("model = nn.Linear(2, 2)\nexample_inputs = torch.ones(1, 3, 2)")
    monkeypatch.setattr(depgraph, "trace", fail)
    expected = "RuntimeError: a wire is loose. Run again with --traceback to see where."
    assert refusal("analyze", "mymodel.py") == expected
    result = run("analyze", "mymodel.py", "--traceback")
    assert result.exit_code == 2
    assert result.stderr.startswith("Traceback (most recent call last):")
    assert result.stderr.endswith("Error: RuntimeError: a wire is loose.\n")


@installed
def test_output_past_python_stays_out_of_the_answer(write):
    write(
        """
        import os

        class Noisy(nn.Module):
            def forward(self, x):
                os.system("echo noise")
                return x

        model, example_inputs = Noisy(), torch.randn(1, 3, 2)
        """
    )
    done = subprocess.run([COMMAND, "analyze", "mymodel.py", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["work"] == 0
    assert "noise" in done.stderr


def test_an_unreadable_program_is_one_sentence(run, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.pt2").write_bytes(b"abc")
    result = run("analyze", "broken.pt2")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: broken.pt2 cannot be read as an exported program")
    assert not caplog.records
