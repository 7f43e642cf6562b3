"""A sample of the zoo, and that nothing is missing from it; the whole of it is measured by ``python -m tests.zoo``."""

from pathlib import Path

import pytest
import torch

from depgraph.rules import Read
from depgraph.rules.registry import RULES
from tests.zoo.families import FAMILIES
from tests.zoo.measuring import measured, measured_module
from tests.zoo.modules import CASES, LEFT_OUT, classes_of_torch

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
BY_NAME = {family.name: family for family in FAMILIES}

# One or two of every kind, and each thing that sets some apart: masks, windows, grouped queries, experts, scans.
SAMPLE = {
    ("bert, padded", "sdpa"),
    ("deberta-v2", "eager"),
    ("fnet", "–"),
    ("modernbert", "eager"),
    ("gpt2", "eager"),
    ("llama, padded", "sdpa"),
    ("mistral", "sdpa"),
    ("gpt-neo", "eager"),
    ("mixtral, batched", "eager"),
    ("mamba", "–"),
    ("rwkv", "–"),
    ("t5", "sdpa"),
    ("convnext", "–"),
    ("swin", "eager"),
    ("vit", "sdpa"),
    ("wav2vec2", "eager"),
}
EVERY = 6  # of the modules, one in so many


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("name", "attention"), sorted(SAMPLE))
def test_family(name, attention):
    row = measured(BY_NAME[name], attention)
    assert not row.fault
    assert row.verdict.compared > row.verdict.pairs > 0


@pytest.mark.parametrize("case", CASES[::EVERY], ids=lambda case: case.name)
def test_module(case):
    row = measured_module(case)
    assert not row.fault
    assert row.verdict.pairs > 0


def test_a_missing_read_is_found(monkeypatch):
    def query_only(call, query, *_, **__):
        return call.result(call.nodes(call.shape, Read(query.codes)))

    monkeypatch.setitem(RULES, "scaled_dot_product_attention", query_only)
    row = measured(BY_NAME["gpt2"], "sdpa")
    assert row.word == "missed"
    assert row.fault.startswith("Not sound: ")


def test_what_is_not_exact_needs_a_reason(monkeypatch):
    def all_keys(call, query, key, value, *_, **__):
        keys, values = (t.codes.unsqueeze(-3).transpose(-1, -2) for t in (key, value))
        return call.result(call.nodes(call.shape, Read(query.codes), Read(keys, 1), Read(values, 1)))

    monkeypatch.setitem(RULES, "scaled_dot_product_attention", all_keys)
    row = measured(BY_NAME["gpt2"], "sdpa")
    assert row.word == "sound"
    assert row.fault.startswith("Sound: ")


def test_there_are_enough_families_of_every_kind():
    assert len({family.model for family in FAMILIES}) >= 30
    kinds = {family.kind for family in FAMILIES}
    assert kinds >= {"encoder", "decoder", "encoder–decoder", "state space", "vision", "audio"}


def test_every_module_of_torch_is_measured_or_left_out_for_a_reason():
    measured_ones = {case.module for case in CASES}
    assert measured_ones | set(LEFT_OUT) >= classes_of_torch()
    assert not measured_ones & set(LEFT_OUT)
    assert measured_ones <= classes_of_torch()


def test_names_are_unique():
    names = [*BY_NAME, *(case.name for case in CASES)]
    assert len(names) == len(set(names)) == len(FAMILIES) + len(CASES)


def test_the_page_has_all_rows_and_no_others():
    """After a change of the zoo, ``python -m tests.zoo`` writes it anew."""
    cells = [line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in cells if len(row) > 5 and row[0] not in ("model", "---")]
    families = [(row[0], row[2]) for row in rows if row[2] in ("eager", "sdpa", "–")]
    modules = [row[0] for row in rows if row[2] not in ("eager", "sdpa", "–")]
    assert families == [(family.name, attention) for family in FAMILIES for attention in family.attention]
    assert modules == [case.name for case in CASES]
    assert not {"missed", "failed"} & {cell for row in rows for cell in row[:4]}
