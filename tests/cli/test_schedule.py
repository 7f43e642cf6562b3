"""`depgraph schedule`: figures, the table, and the trace, whole or not at all."""

import json

import pytest


def test_a_recurrent_network(answer, fixtures):
    found = answer("schedule", fixtures / "rnn.py", "--n", 8, "--workers", 3)
    assert found.pop("model").endswith("rnn.py")
    assert found.pop("curve") == [
        {"workers": p, "makespan": 8, "speedup": 1.0, "utilisation": 1 / p} for p in (1, 2, 3)
    ]
    bounds = found.pop("bounds")
    assert bounds == {"lower": 8, "upper": 8, "guarantee": pytest.approx(5 / 3)}
    assert [type(bounds[key]) for key in ("lower", "upper")] == [int, int]
    assert isinstance(found.pop("warnings"), list)
    assert found == {
        "weight": "ops",
        "workers": 3,
        "work": 8,
        "span": 8,
        "makespan": 8,
        "speedup": 1.0,
        "utilisation": 1 / 3,
    }


def test_eight_workers_unless_told_otherwise(answer, fixtures):
    found = answer("schedule", fixtures / "bahdanau.py", "--n", 8)
    assert found["workers"] == 8
    assert [point["workers"] for point in found["curve"]] == [1, 2, 4, 8]
    assert found["curve"][0]["makespan"] == found["work"]
    assert found["curve"][-1]["makespan"] == found["makespan"]
    assert found["bounds"]["lower"] <= found["makespan"] <= found["bounds"]["upper"]
    weighed = answer("schedule", fixtures / "bahdanau.py", "--n", 8, "--weight", "contractions")
    assert (weighed["weight"], weighed["work"] < found["work"]) == ("contractions", True)


def test_told_to_a_person(run, fixtures):
    result = run("schedule", fixtures / "rnn.py", "--n", 8, "--workers", 2)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert result.stdout.splitlines()[0].endswith("rnn.py: a schedule on 2 workers, weight ops")
    for line in (
        ["work", "8", "T₁:", "what", "one", "worker", "takes"],
        ["makespan", "8", "what", "2", "workers", "take"],
        ["at", "most", "8", "any", "greedy", "schedule:", "(T₁", "−", "T∞)/p", "+", "T∞", "(Brent)"],
        ["workers", "makespan", "speed-up", "utilisation", "(%)"],
        ["1", "8", "1.00", "100.00"],
        ["2", "8", "1.00", "50.00"],
    ):
        assert line in lines
    assert "what 1 worker takes" in run("schedule", fixtures / "rnn.py", "--n", 8, "--workers", 1).stdout


def test_warnings_are_told(run, write):
    write(
        """
        class Net(nn.Module):
            def forward(self, x):
                return x * 2 if x.sum() > 0 else x

        model, example_inputs = Net(), torch.ones(1, 3, 2)
        """
    )
    told = run("schedule", "mymodel.py").stdout
    assert "Warnings" in told


def test_trace(run, answer, fixtures, tmp_path):
    result = run("schedule", fixtures / "rnn.py", "--n", 4, "--workers", 2, "-o", tmp_path / "trace.json")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"Wrote {tmp_path / 'trace.json'}"), result.output
    trace = json.loads((tmp_path / "trace.json").read_text())
    steps = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"], event["tid"]) for event in steps] == [(t, 1, 0) for t in range(4)]
    assert {event["args"]["module"] for event in steps} == {"rnn"}
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]
    found = answer("schedule", fixtures / "rnn.py", "--n", 4, "-o", tmp_path / "another.json")
    assert found["makespan"] == json.loads((tmp_path / "another.json").read_text())["otherData"]["makespan"] == 4


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("trace.txt", "trace.txt cannot be written: its name must end in .json."),
        ("missing/trace.json", "missing/trace.json cannot be written: there is no folder missing."),
    ],
)
def test_refused_before_any_work(refusal, write, output, message):
    write("raise RuntimeError('never run')")
    assert refusal("schedule", "mymodel.py", "-o", output) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", 0), "'--workers': 0 is not in the range 1<=x<=2147483647."),
        (("--workers", -3), "'--workers': -3 is not in the range 1<=x<=2147483647."),
        (("--workers", 10**12), "'--workers': 1000000000000 is not in the range 1<=x<=2147483647."),
        (("--workers", "2.5"), "'2.5' is not a valid integer"),
        (("--workers", "many"), "'many' is not a valid integer"),
        (("--weight", "grams"), "'grams' is not one of"),
    ],
)
def test_refused(refusal, write, arguments, message):
    write("raise RuntimeError('never run')")
    assert message in refusal("schedule", "mymodel.py", *arguments)


def test_what_was_there_stays_where_writing_fails(refusal, write, tmp_path, monkeypatch):
    import depgraph

    def fail(self, path):
        path.write_text("half")
        raise depgraph.RenderError("no ink")

    monkeypatch.setattr(depgraph.Schedule, "save", fail)
    write("model = nn.Linear(2, 2)\nexample_inputs = torch.ones(1, 3, 2)")
    (tmp_path / "trace.json").write_text("before")
    assert refusal("schedule", "mymodel.py", "-o", "trace.json") == "no ink"
    assert (tmp_path / "trace.json").read_text() == "before"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mymodel.py", "trace.json"]
