"""`depgraph verify`: the verdict, the exit code, and what is said where depgraph is wrong."""

import pytest

import depgraph

FULL = """
    class Net(nn.Module):
        def forward(self, x):
            return x.cumsum(1) + x.flip(1)

    model = Net()
    example_inputs = torch.randn(1, 6, 2)
    positions = {"x": 1, "output": 1}
"""


@pytest.fixture
def wrong(monkeypatch):
    """Let the graph be that of a model that reads less."""
    import torch

    class Less(torch.nn.Module):
        def forward(self, x):
            return x.cumsum(1)

    right = depgraph.trace
    monkeypatch.setattr(depgraph, "trace", lambda model, *args, **options: right(Less(), *args, **options))


@pytest.mark.parametrize("name", ["rnn.py", "self_attention.py", "cnn.py", "transformer_decoder.py"])
def test_exact(answer, fixtures, name):
    found = answer("verify", fixtures / name, "--n", 6)
    assert found["exact"]
    assert found["sound"]
    assert found["mode"] == "eval"
    assert found["missed"] == found["extra"] == {"count": 0, "first": None}
    assert 0 < found["pairs"] <= found["compared"]
    assert (found["draws"], found["dtype"], found["notes"]) == (4, "float64 and float32", [])


def test_told_to_a_person(run, fixtures):
    result = run("verify", fixtures / "rnn.py", "--n", 6)
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()[:2]
    assert first.endswith("rnn.py: Rnn, in eval mode")
    assert second.startswith("Exact: of ")
    assert result.stderr == ""


def test_in_training_mode(run, answer, fixtures):
    arguments = ("verify", fixtures / "self_attention.py", "--n", 4, "--train")
    assert answer(*arguments)["mode"] == "train"
    assert "in train mode" in run(*arguments).stdout


def test_sound(answer, run, write):
    write("""
        class Net(nn.Module):
            def forward(self, x):
                return x.sum(1, keepdim=True) - x[:, :1]

        model = Net()
        example_inputs = torch.randn(1, 3, 2)
    """)
    found = answer("verify", "mymodel.py")
    assert (found["sound"], found["exact"], found["extra"]["count"]) == (True, False, 1)
    assert found["extra"]["first"] == {
        "source": {"name": "x", "position": [0]},
        "target": {"name": "output", "position": []},
    }
    result = run("verify", "mymodel.py", "--draws", 3)
    assert result.exit_code == 0
    assert "Sound: measuring shows no dependence that the graph lacks." in result.stdout
    assert "1 did not show in 3 draws. The first is x[0] → output." in " ".join(result.stdout.split())
    assert "x: tracked along axis 1 (inferred)" in result.stdout


@pytest.mark.usefixtures("wrong")
def test_a_fault_of_depgraph(run, write):
    write(FULL)
    result = run("verify", "mymodel.py")
    assert result.exit_code == 1
    shown = " ".join(result.stdout.split())
    assert "Not sound: 3 of 36 pairs depend on each other without a path in the graph." in shown
    assert "The first is x[3] → output[2]." in shown
    assert "That is a fault of depgraph. Please report it" in shown


@pytest.mark.usefixtures("wrong")
def test_a_fault_of_depgraph_as_an_object(run, write):
    import json

    write(FULL)
    result = run("verify", "mymodel.py", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["sound"]
    assert found["missed"]["count"] == 3
    assert found["missed"]["first"] == {
        "source": {"name": "x", "position": [3]},
        "target": {"name": "output", "position": [2]},
    }


def test_fewer_positions(answer, fixtures):
    assert answer("verify", fixtures / "rnn.py", "--n", 9, "--limit", 2)["compared"] == 2 * 9


def test_an_exported_program(answer, tmp_path):
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            return x.cumsum(1)

    file = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(Net(), (torch.randn(1, 4, 2),)), file)
    found = answer("verify", file, "--positions", "x=1", "--positions", "output=1")
    assert (found["exact"], found["pairs"]) == (True, 10)


@pytest.mark.parametrize("option", ["--draws", "--limit"])
def test_refused(refusal, fixtures, option):
    assert "0 is not in the range x>=1" in refusal("verify", fixtures / "rnn.py", option, 0)


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("torch.tensor(x.tolist()).cumsum(1)", "x: at 6 position(s) the model takes no other values"),
        ("torch.from_numpy(x.numpy().cumsum(1))", "runs went another way than the example inputs do"),
        ("(-x.abs() - 1).log()", "output: 12 of 12 elements are NaN on the example inputs"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_graph_that_was_not_checked(refusal, write, forward, why, options):
    write(f"""
        class Net(nn.Module):
            def forward(self, x):
                return {forward}

        model = Net()
        example_inputs = torch.rand(1, 6, 2)
    """)
    message = refusal("verify", "mymodel.py", *options)
    assert message.startswith("Nothing could be compared, so nothing is said of the graph: ")
    assert why in message
    assert message.endswith("Try other example inputs.")


def test_a_fault_of_a_registered_rule(run, write, monkeypatch):
    from depgraph.rules import registry

    monkeypatch.setattr(registry, "RULES", dict(registry.RULES))
    monkeypatch.setattr("depgraph.rules.registration.RULES", registry.RULES)
    write("""
        import depgraph

        @torch.library.custom_op("verifycli::shift", mutates_args=())
        def shift(x: torch.Tensor) -> torch.Tensor:
            return x.roll(1, 1).clone()

        @shift.register_fake
        def _(x):
            return torch.empty_like(x)

        @depgraph.register_rule(shift)
        def rule(call, x):
            return call.result(x.codes)

        class Net(nn.Module):
            def forward(self, x):
                return shift(x)

        model = Net()
        example_inputs = torch.randn(1, 6, 2)
        positions = {"x": 1, "output": 1}
    """)
    result = run("verify", "mymodel.py")
    assert result.exit_code == 1
    shown = " ".join(result.stdout.split())
    assert "Not sound: 6 of 36 pairs" in shown
    assert "Check the rules registered for verifycli::shift: what they leave out, the graph lacks." in shown
    assert "fault of depgraph" not in shown
