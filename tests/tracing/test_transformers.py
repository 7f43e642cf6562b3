"""Hugging Face models, tiny and untrained, as they come."""

import pytest
import torch

from depgraph.tracing.capture import capture

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")

IDS = torch.arange(6)[None]


def gpt2(attention):
    config = transformers.GPT2Config(
        vocab_size=50,
        n_positions=16,
        n_embd=8,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation=attention,
    )
    return transformers.GPT2LMHeadModel(config), {"input_ids": IDS}


def t5(attention):
    config = transformers.T5Config(
        vocab_size=50, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2, attn_implementation=attention
    )
    return transformers.T5ForConditionalGeneration(config), {"input_ids": IDS, "decoder_input_ids": IDS[:, :4]}


def llama(attention):
    config = transformers.LlamaConfig(
        vocab_size=50,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
        attn_implementation=attention,
    )
    return transformers.LlamaForCausalLM(config), {"input_ids": IDS}


def bert(attention):
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        attn_implementation=attention,
    )
    return transformers.BertModel(config), {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}


def mamba(attention):
    config = transformers.MambaConfig(vocab_size=50, hidden_size=8, state_size=4, num_hidden_layers=1)
    return transformers.MambaForCausalLM(config), {"input_ids": IDS}


@pytest.mark.parametrize(
    ("build", "attention", "attentions"),
    [
        (gpt2, "sdpa", 2),
        (gpt2, "eager", 0),
        (llama, "sdpa", 1),
        (t5, "eager", 0),
        (bert, "sdpa", 1),
        (mamba, "eager", 0),
    ],
)
def test_models_come_through_whole(build, attention, attentions):
    model, inputs = build(attention)
    program = capture(model.eval(), (), inputs)
    assert [leaf.name for leaf in program.inputs] == list(inputs)
    first = "output.last_hidden_state" if build is bert else "output.logits"
    assert program.outputs[0].name == first
    assert program.outputs[0].aliases == ("output.0",)
    assert program.warnings == []
    fused = program.graph.find_nodes(op="call_function", target=torch.ops.aten.scaled_dot_product_attention.default)
    assert len(fused) == attentions
    linears = program.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)
    modules = dict(model.named_modules())
    for node in linears:
        module, line = program.where(node)
        assert isinstance(modules[module], torch.nn.Linear)
        assert line.startswith("transformers/models/")


def test_caches_go_in_and_out():
    model, inputs = llama("sdpa")
    model = model.eval()
    with torch.no_grad():
        cache = model(**inputs, use_cache=True).past_key_values
    program = capture(model, (), {"input_ids": IDS[:, :1], "past_key_values": cache})
    assert [leaf.name for leaf in program.inputs] == [
        "input_ids",
        "past_key_values.layers.0.keys",
        "past_key_values.layers.0.values",
    ]
    keys = next(leaf for leaf in program.outputs if leaf.name.endswith("layers.0.keys"))
    assert tuple(keys.value.shape) == (1, 1, 7, 4)
    assert tuple(cache.layers[0].keys.shape) == (1, 1, 6, 4)


def test_an_empty_cache_is_not_filled():
    model, inputs = llama("sdpa")
    cache = transformers.DynamicCache(config=model.config)
    program = capture(model.eval(), (), {**inputs, "past_key_values": cache})
    assert [leaf.name for leaf in program.inputs] == ["input_ids"]
    assert any(leaf.name.endswith("layers.0.keys") for leaf in program.outputs)
    assert cache.get_seq_length() == 0


def test_tied_embeddings():
    program = capture(gpt2("sdpa")[0].eval(), (), {"input_ids": IDS, "use_cache": False})
    assert program.tied == {"lm_head.weight": "transformer.wte.weight"}
    assert "lm_head.weight" in program.parameters
    assert [leaf.aliases for leaf in program.outputs] == [("output.0", "output")]
