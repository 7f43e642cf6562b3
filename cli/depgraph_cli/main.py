"""The `depgraph` command. Imports nothing heavy: PyTorch and the engine are imported when a command runs."""

from __future__ import annotations

import click

from depgraph_cli.commands.analyze import analyze
from depgraph_cli.commands.export import export
from depgraph_cli.commands.gallery import gallery
from depgraph_cli.commands.path import path
from depgraph_cli.commands.render import render
from depgraph_cli.commands.schedule import schedule
from depgraph_cli.commands.verify import verify


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="depgraph", message="%(prog)s %(version)s")
def main() -> None:
    """How far must information travel through a PyTorch model?

    TARGET is a model file (file.py or file.py:attr), an importable module (package.module:attr) or an exported program
    (file.pt2). A model file offers `model`, and `example_inputs` to run it on. A graph will do where no model is run:
    an ONNX file (file.onnx), or what `depgraph export` has written (graph.json).
    """


for command in (analyze, path, schedule, render, export, verify, gallery):
    main.add_command(command)
