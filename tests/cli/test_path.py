"""`depgraph path`: node by node from one position to another."""

import re
import sys

import numpy as np
import pytest


def test_through_a_recurrent_network(answer, fixtures):
    found = answer("path", fixtures / "rnn.py", 2, 5, "--n", 8)
    assert found["length"] == 4
    assert [node["position"] for node in found["nodes"]] == [[2], [3], [4], [5]]
    assert {node["module"] for node in found["nodes"]} == {"rnn"}
    assert (found["source"], found["target"]) == ({"name": "x", "position": [2]}, {"name": "output", "position": [5]})


def test_told_to_a_person(run, fixtures):
    result = run("path", fixtures / "rnn.py", 2, 5, "--n", 8)
    assert result.exit_code == 0
    first, second, _, *steps = result.stdout.splitlines()
    assert first.startswith("x[2] → output[5]: 4 ops on the shortest path")
    assert second == "The only path."
    assert [line.split()[0] for line in steps] == ["1", "2", "3", "4"]
    assert all("rnn.py:" in line for line in steps)


def test_what_nodes_cost(run, answer, fixtures):
    flops = 2 * (32 + 64) * 64
    assert answer("path", fixtures / "rnn.py", 2, 5, "--n", 8, "--weight", "flops")["length"] == 4 * flops
    told = run("path", fixtures / "rnn.py", 2, 5, "--n", 8, "--weight", "flops").stdout
    assert told.startswith(f"x[2] → output[5]: {4 * flops:,} flops on the shortest path")
    told = run("path", fixtures / "rnn.py", 2, 5, "--n", 8, "--weight", "seconds").stdout
    assert re.match(r"x\[2\] → output\[5\]: [\d,.]+ (ms|µs|ns) on the shortest path", told)


def test_none(run, answer, fixtures):
    assert "No path: output[2] does not depend on x[5]." in run("path", fixtures / "rnn.py", 5, 2, "--n", 8).stdout
    found = answer("path", fixtures / "rnn.py", 5, 2, "--n", 8)
    assert (found["length"], found["nodes"], found["shortest_paths"], found["paths"]) == (-1, [], 0, 0)


def test_nothing_is_done_on_the_way(run, write):
    write("model = nn.Flatten()\nexample_inputs = torch.ones(1, 3, 1)")
    result = run("path", "mymodel.py", 1, 1, "--positions", "input=1", "--positions", "output=1")
    assert result.stdout == "input[1] → output[1]: 0 ops on the shortest path\nThe only path.\n"


def test_positions_on_several_axes(answer, fixtures):
    found = answer("path", fixtures / "cnn2d.py", "0,0", "2,3", "--n", 8)
    assert found["length"] == 5
    assert found["nodes"][-1]["position"] == [2, 3]
    assert answer("path", fixtures / "cnn2d.py", 0, "2,3", "--n", 8)["nodes"] == found["nodes"]


def test_positions_from_the_end(answer, run, fixtures):
    found = answer("path", fixtures / "rnn.py", -8, -1, "--n", 8)
    assert (found["source"]["position"], found["target"]["position"], found["length"]) == ([0], [7], 8)
    assert run("path", "--n", 8, fixtures / "rnn.py", "--", 0, -1).stdout.startswith("x[0] → output[7]: 8 ops")
    assert run("path", fixtures / "rnn.py", 0, -1, "--n", 8).stdout.startswith("x[0] → output[7]: 8 ops")
    found = answer("path", fixtures / "cnn2d.py", "-8,0", "-6,-5", "--n", 8)
    assert (found["source"]["position"], found["target"]["position"]) == ([0, 0], [2, 3])
    assert answer("path", fixtures / "cnn2d.py", 0, "2,3", "--n", 8) == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, "--wieght", "ops"), "No such option '--wieght'."),
        ((0, -1, "--wieght"), "unexpected extra argument (--wieght)"),
        (("--wieght", 0, -1), "'--wieght'"),
        (("--first", -1), "No such option '--first'."),
        ((0, "-x"), "No such option '-x'."),
    ],
)
def test_options_that_are_not_there(refusal, fixtures, arguments, message):
    assert message in refusal("path", fixtures / "rnn.py", *arguments, "--n", 8)


def test_names_and_weights(answer, fixtures):
    arguments = (0, 2, "--n", 3, "--source", "memory", "--target", "output")
    found = answer("path", fixtures / "transformer_decoder.py", *arguments)
    assert found["source"]["name"] == "memory"
    weighed = answer("path", fixtures / "transformer_decoder.py", *arguments, "--weight", "contractions")
    assert weighed["weight"] == "contractions"
    assert 0 < weighed["length"] < found["length"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 8), "output has positions 0 to 7; there is no position 8."),
        ((9, 0), "x has positions 0 to 7; there is no position 9."),
        ((0, -9), "output has positions 0 to 7; there is no position -9."),
        (("0,1", 0), "A position of x is 1 number(s)"),
        (("0.5", 0), "Invalid value for 'I': '0.5' is no position: give an integer, or one for each tracked axis"),
        ((0, 0, "--source", "y"), "There is no input 'y'. The inputs are: x."),
        ((0, 0, "--target", "y"), "There is no output 'y'. The outputs are: output."),
        ((0,), "Missing argument 'J'."),
    ],
)
def test_refused(refusal, fixtures, arguments, message):
    assert message in refusal("path", fixtures / "rnn.py", *arguments, "--n", 8)


def test_how_many_paths_there_are(answer, run, fixtures):
    # Two layers: through attention in one of them or both, by three tokens; around the feed-forward parts or through.
    found = answer("path", fixtures / "transformer_encoder.py", 0, 1, "--n", 3)
    assert (found["shortest_paths"], found["paths"]) == (2, 4 * 5)
    told = run("path", fixtures / "transformer_encoder.py", 0, 1, "--n", 3).stdout.splitlines()[1]
    assert told == "One of 2 shortest paths, of 20 paths in all."
    assert answer("path", fixtures / "rnn.py", 0, 7, "--n", 8)["paths"] == 1
    weighed = answer("path", fixtures / "transformer_encoder.py", 0, 1, "--n", 3, "--weight", "contractions")
    assert (weighed["length"], weighed["shortest_paths"], weighed["paths"]) == (3, 2, 20)


RESIDUAL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, x):
        for _ in range({depth}):
            x = x + self.layer(x)
        return x


model = Model()
example_inputs = torch.ones(1, 3, 1)
"""


@pytest.mark.parametrize(("depth", "told"), [(1, "2"), (10, "1,024"), (50, "about 1.1e+15"), (332, "about 8.7e+99")])
def test_more_paths_than_can_be_counted_one_by_one(run, answer, write, depth, told):
    write(RESIDUAL.format(depth=depth))
    found = answer("path", "mymodel.py", 1, 1)
    assert (found["length"], found["shortest_paths"], found["paths"]) == (depth, 1, 2**depth)
    line = run("path", "mymodel.py", 1, 1).stdout.splitlines()[1]
    assert line == f"The only shortest path, of {told} paths in all."


def test_a_count_of_thousands_of_digits_is_written_out(run, answer, write, monkeypatch):
    write(RESIDUAL.format(depth=1))
    monkeypatch.setattr("depgraph.count_paths", lambda *args, **kwargs: np.array([[10**5000]], object))
    before = sys.get_int_max_str_digits()
    try:
        assert answer("path", "mymodel.py", 1, 1)["paths"] == 10**5000
    finally:
        sys.set_int_max_str_digits(before)
    line = run("path", "mymodel.py", 1, 1).stdout.splitlines()[1]
    assert line == "One of about 1.0e+5000 shortest paths, of about 1.0e+5000 paths in all."
