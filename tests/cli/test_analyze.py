"""`depgraph analyze`: the numbers as JSON, and the report."""

import json
import re

import numpy as np
import pytest
import torch
from torch import nn

NODE = {"op", "position", "module", "source"}
TERMINAL = {"shape", "positions", "count"}


class TestJson:
    def test_a_recurrent_network(self, answer, fixtures):
        numbers = answer("analyze", fixtures / "rnn.py")
        assert numbers["work"] == 100
        assert numbers["critical_path"]["length"] == 100
        assert numbers["paths"] == [
            {
                "source": "x",
                "target": "output",
                "max": 100,
                "mean": 34.0,
                "min": 1,
                "pairs": 10_000,
                "unreachable": 4_950,
            }
        ]
        parallelism = {"average": 1.0, "width": 1, "width_is_exact": True, "width_upper": 1, "level_widths": [1] * 100}
        assert numbers["parallelism"] == parallelism

    def test_a_transformer_encoder(self, answer, fixtures):
        numbers = answer("analyze", fixtures / "transformer_encoder.py")
        assert (numbers["work"], numbers["critical_path"]["length"]) == (2_000, 20)
        (paths,) = numbers["paths"]
        assert (paths["min"], paths["max"], paths["unreachable"]) == (8, 11, 0)

    def test_its_shape(self, answer, fixtures):
        numbers = answer("analyze", fixtures / "rnn.py", "--n", 5)
        assert list(numbers) == [
            *("model", "inputs", "outputs", "graph", "work", "critical_path", "paths", "parallelism", "bottleneck"),
            *("weight", "warnings"),
        ]
        assert numbers["model"].endswith("fixtures/rnn.py")
        assert numbers["inputs"] == {"x": {"shape": [1, 5, 32], "positions": [1], "count": 5}}
        assert numbers["outputs"] == {"output": {"shape": [1, 5, 64], "positions": [1], "count": 5}}
        assert numbers["graph"] == {"operations": 1, "nodes": 10, "edges": 9}
        assert set(numbers["critical_path"]) == {"length", "nodes"}
        assert [node["position"] for node in numbers["critical_path"]["nodes"]] == [[0], [1], [2], [3], [4]]
        for node in numbers["critical_path"]["nodes"]:
            assert set(node) == NODE
            assert re.search(r"fixtures/rnn.py:\d+$|^rnn.py:\d+$", node["source"])
        assert (numbers["bottleneck"]["source"], numbers["bottleneck"]["target"]) == ("x", "output")
        assert numbers["bottleneck"]["size"] == len(numbers["bottleneck"]["nodes"]) == 5
        assert numbers["weight"] == "ops"
        assert all(isinstance(warning, str) for warning in numbers["warnings"])

    def test_every_tracked_input_and_every_output(self, answer, write):
        write(
            """
            class Net(nn.Module):
                def forward(self, a, b, c):
                    return {"sum": a + b, "a": a.relu()}, c.sum()

            def example_inputs(n=3):
                return torch.ones(1, n, 2), torch.ones(1, n, 2), torch.ones(4)
            """
        )
        numbers = answer("analyze", "mymodel.py")
        tracked = [name for name, terminal in numbers["inputs"].items() if terminal["positions"]]
        assert tracked == ["a", "b"]
        assert len(numbers["outputs"]) == 3
        assert [(p["source"], p["target"]) for p in numbers["paths"]] == [
            (source, target) for source in tracked for target in numbers["outputs"]
        ]
        of = {(p["source"], p["target"]): p for p in numbers["paths"]}
        total, mine, constant = numbers["outputs"]
        assert (of["a", total]["max"], of["b", total]["max"], of["a", mine]["max"]) == (1, 1, 1)
        nothing = {"source": "b", "target": mine, "max": None, "mean": None, "min": None, "pairs": 9, "unreachable": 9}
        assert of["b", mine] == nothing
        assert of["a", constant]["unreachable"] == of["a", constant]["pairs"] == 3

    def test_untracked_inputs_where_none_is_tracked(self, answer, write):
        write("model = nn.Linear(2, 2)\nexample_inputs = torch.ones(3, 2)")
        (paths,) = answer("analyze", "mymodel.py")["paths"]
        assert (paths["pairs"], paths["max"]) == (1, 1)

    def test_contractions(self, answer, fixtures):
        numbers = answer("analyze", fixtures / "cnn.py", "--weight", "contractions", "--n", 10)
        assert (numbers["weight"], numbers["work"], numbers["critical_path"]["length"]) == ("contractions", 40, 4)
        assert {numbers["paths"][0]["min"], numbers["paths"][0]["max"]} == {4}

    @pytest.mark.parametrize("weight", ["flops", "bytes", "seconds", "scalars"])
    def test_what_nodes_cost(self, answer, fixtures, weight):
        numbers = answer("analyze", fixtures / "rnn.py", "--weight", weight, "--n", 4)
        assert numbers["weight"] == weight
        assert numbers["work"] == pytest.approx(numbers["critical_path"]["length"])
        work = {"flops": 4 * 2 * (32 + 64) * 64, "scalars": 4 * 64}
        assert numbers["work"] == work.get(weight, numbers["work"]) > 0
        (paths,) = numbers["paths"]
        assert paths["max"] == pytest.approx(numbers["work"])
        assert paths["min"] == pytest.approx(numbers["work"] / 4)

    def test_every_weight_can_be_chosen(self):
        from depgraph.metrics.weights import NAMES
        from depgraph_cli.options import weight_option

        @weight_option
        def command():
            pass

        (option,) = command.__click_params__
        assert tuple(option.type.choices) == NAMES

    def test_numbers_are_plain(self):
        from depgraph_cli.reporting.summary import plain

        given = [np.int64(2**60 + 1), 2**53 + 1, 3.0, np.float64(0.5), 1e300]
        found = [plain(number) for number in given]
        assert found == [2**60 + 1, 2**53 + 1, 3, 0.5, 1e300]
        assert [type(number) for number in found] == [int, int, int, float, float]

    def test_nothing_to_time(self, run, write):
        write("with torch.device('meta'):\n    model = nn.Linear(2, 2)\n    example_inputs = torch.ones(1, 3, 2)")
        result = run("analyze", "mymodel.py", "--weight", "seconds", "--json")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "on the meta device, where nothing can be timed" in result.stderr

    def test_what_the_model_prints_goes_elsewhere(self, run, write):
        write(
            """
            print("loading")

            class Net(nn.Linear):
                def forward(self, x):
                    print("running")
                    return super().forward(x)

            model = Net(2, 2)
            example_inputs = torch.ones(1, 3, 2)
            """
        )
        result = run("analyze", "mymodel.py", "--json")
        assert json.loads(result.stdout)["work"] == 3
        assert "loading" in result.stderr
        assert "running" in result.stderr


class TestChoices:
    def test_positions(self, answer, fixtures):
        numbers = answer("analyze", fixtures / "cnn2d.py", "--n", 4, "--positions", "input=3")
        assert numbers["inputs"]["input"]["positions"] == [3]
        numbers = answer("analyze", fixtures / "cnn2d.py", "--n", 4, "--positions", "0=2,3")
        assert (numbers["inputs"]["input"]["positions"], numbers["inputs"]["input"]["count"]) == ([2, 3], 16)

    def test_positions_of_the_file(self, answer, write):
        write("model = nn.Linear(2, 2)\nexample_inputs = torch.ones(3, 2)\npositions = {'input': 0}")
        numbers = answer("analyze", "mymodel.py")
        assert (numbers["inputs"]["input"]["positions"], numbers["work"]) == ([0], 3)

    def test_input(self, answer, fixtures):
        numbers = answer("analyze", fixtures / "rnn.py", "--input", "x=1,7,32")
        assert (numbers["inputs"]["x"]["shape"], numbers["work"]) == ([1, 7, 32], 7)

    def test_an_exported_program(self, answer, run, write, tmp_path):
        write("")
        program = torch.export.export(nn.Conv1d(4, 4, 3, padding=1).eval(), (torch.ones(1, 4, 6),))
        torch.export.save(program, tmp_path / "cnn.pt2")
        numbers = answer("analyze", "cnn.pt2")
        assert (numbers["model"], numbers["work"], numbers["paths"][0]["unreachable"]) == ("cnn.pt2", 6, 20)
        assert answer("analyze", "cnn.pt2", "--input", "input=1,4,6")["graph"] == numbers["graph"]
        assert "cnn.pt2: exported program, in eval mode" in run("analyze", "cnn.pt2").stdout

    def test_known(self, answer, write):
        write(
            """
            class Net(nn.Module):
                def forward(self, x, gate):
                    return x.cumsum(1) * gate

            gate = torch.tensor([1.0, 0.0, 1.0])[None, :, None]
            example_inputs = torch.ones(1, 3, 2), gate
            """,
        )
        unknown = answer("analyze", "mymodel.py", "--positions", "x=1")
        known = answer("analyze", "mymodel.py", "--positions", "x=1", "--known", "gate")
        assert unknown["paths"][0]["unreachable"] == 3
        assert known["paths"][0]["unreachable"] == 5

    def test_exact_width(self, answer, run, write):
        # All chains through the scores of one layer lead through few nodes to those of the next: bounds do not meet.
        write(
            """
            class Net(nn.Module):
                def forward(self, x):
                    for _ in range(2):
                        x = (x @ x.transpose(1, 2)).softmax(-1) @ x
                    return x

            example_inputs = torch.ones(1, 6, 2)
            """
        )
        found = {
            choice: answer("analyze", "mymodel.py", "--exact-width", choice)["parallelism"]
            for choice in ("never", "auto", "always")
        }
        assert found["auto"] == found["always"] == answer("analyze", "mymodel.py")["parallelism"]
        exact, bounds = found["auto"], found["never"]
        assert (exact["width_is_exact"], bounds["width_is_exact"]) == (True, False)
        assert bounds["width"] <= exact["width"] == exact["width_upper"] < bounds["width_upper"]
        line = rf"^width, at least +{bounds['width']}  nodes could .* at most {bounds['width_upper']}$"
        assert re.search(line, run("analyze", "mymodel.py", "--exact-width", "never").stdout, re.MULTILINE)
        result = run("analyze", "mymodel.py", "--exact-width", "maybe")
        assert result.exit_code == 2
        assert "'never', 'auto', 'always'" in result.stderr

    def test_train(self, run, fixtures):
        assert "in eval mode" in run("analyze", fixtures / "rnn.py", "--n", 3).stdout
        assert "in train mode" in run("analyze", fixtures / "rnn.py", "--n", 3, "--train").stdout


class TestReport:
    @pytest.fixture
    def report(self, run):
        def report(*arguments):
            result = run("analyze", *arguments)
            assert (result.exit_code, result.stderr) == (0, ""), result.output
            return result.stdout

        return report

    def test_fits_into_80_columns_without_colours(self, report, fixtures):
        text = report(fixtures / "transformer_encoder.py", "--n", 6)
        assert max(map(len, text.splitlines())) <= 80
        assert "\x1b" not in text

    def test_says_what_was_tracked_and_whether_it_was_asked_for(self, report, write):
        write("model = nn.GRU(2, 2, batch_first=True)\nexample_inputs = torch.ones(1, 3, 2)")
        assert "Tracked: axis 1 of input (inferred" in report("mymodel.py")
        assert "Tracked: axis 1 of input\n" in report("mymodel.py", "--positions", "input=1")

    def test_says_when_nothing_is(self, report, write):
        write("model = nn.Linear(2, 2)\nexample_inputs = torch.ones(3, 2)")
        assert "Tracked: no axis of any input; --positions names some" in report("mymodel.py")

    def test_its_numbers(self, report, fixtures):
        text = report(fixtures / "rnn.py")
        assert re.search(r"^work +100 ", text, re.MULTILINE)
        assert re.search(r"^critical path +100 ", text, re.MULTILINE)
        assert re.search(r"^average parallelism +1.00 ", text, re.MULTILINE)
        assert re.search(r"^width +1 ", text, re.MULTILINE)
        assert re.search(r"^x +output +1 +34.00 +100 +10,000 +4,950$", text, re.MULTILINE)
        assert re.search(r"^ +100  rnn +\S*rnn.py:\d+ +rnn", text, re.MULTILINE)

    def test_what_nodes_cost(self, report, fixtures):
        text = report(fixtures / "rnn.py", "--weight", "flops")
        assert re.search(r"^work +1,228,800 +flops in all", text, re.MULTILINE)
        assert "Path lengths: flops on the shortest path" in text
        text = report(fixtures / "rnn.py", "--weight", "seconds")
        assert re.search(r"^work +[\d,.]+ (s|ms|µs|ns) +in all", text, re.MULTILINE)
        assert re.search(r"^critical path +[\d,.]+ (s|ms|µs|ns) +on the longest chain", text, re.MULTILINE)
        assert re.search(r"^x +output( +[\d,.]+ (s|ms|µs|ns)){3} +10,000 +4,950$", text, re.MULTILINE)

    def test_what_reaches_no_output(self, report, write):
        write(
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.used, self.idle = nn.Linear(2, 2), nn.Linear(2, 2)

                def forward(self, x, spare):
                    self.idle(x)
                    return self.used(x)

            example_inputs = torch.ones(1, 3, 2), torch.ones(2)
            """
        )
        text = report("mymodel.py")
        (names,) = re.findall("^Parameters that reach no output\n(.*)$", text, re.MULTILINE)
        assert set(names.split(", ")) == {"idle.weight", "idle.bias"}
        assert "Inputs that reach no output\nspare\n" in text

    def test_an_output_that_nothing_reaches(self, report, write):
        write(
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x.sum() * torch.zeros(()), x.relu()

            example_inputs = torch.ones(1, 3, 2)
            """
        )
        text = report("mymodel.py")
        assert "Nothing passes from x to output.0." in text
        assert re.search(r"^x +output.0 +– +– +– +3 +3$", text, re.MULTILINE)

    def test_a_width_that_is_a_bound(self, capsys):
        from depgraph_cli.reporting.report import _totals
        from depgraph_cli.reporting.tables import console

        parallelism = {"average": 2.0, "width": 7, "width_is_exact": False, "width_upper": 1234}
        graph = {"operations": 1, "nodes": 2, "edges": 3}
        _totals(
            console(),
            {"graph": graph, "work": 4, "critical_path": {"length": 2}, "parallelism": parallelism, "weight": "ops"},
        )
        line = r"^width, at least +7  nodes could run at the same moment, and at most 1,234$"
        assert re.search(line, capsys.readouterr().out, re.MULTILINE)
