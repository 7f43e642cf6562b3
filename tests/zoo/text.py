"""Families that read text."""

from __future__ import annotations

from typing import Any

from tests.zoo.family import WORDS, Family, gapped, longer_text, padded, pair, text

SORTED = (
    "tokens are sorted by the expert that is to see them: what comes where after a sort depends on all that is sorted, "
    "and the matrix product in groups has no rule"
)
CHOSEN = "which tokens an expert sees, and how many, depends on all of them"

_SIZES = {"vocab_size": WORDS, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
_TEXT = {**_SIZES, "intermediate_size": 32, "max_position_embeddings": 32}
_DECODER = {**_TEXT, "use_cache": False}
_GROUPED = {**_DECODER, "num_key_value_heads": 1, "pad_token_id": 0}
_GPT = {"vocab_size": WORDS, "use_cache": False, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
_EXPERTS = {**_GROUPED, "num_local_experts": 3, "num_experts_per_tok": 2, "head_dim": 8}
_HEADS = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
_BOTH = {
    **_HEADS,
    "vocab_size": WORDS,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 32,
    "use_cache": False,
}
_T5 = {"vocab_size": WORDS, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "use_cache": False}


def _encoder(name: str, model: str, *, arguments: Any = text, attends: bool = True, **settings: Any) -> Family:
    return Family(name, "encoder", model, settings, arguments, attends=attends)


def _decoder(
    name: str, model: str, *, arguments: Any = text, reason: str = "", experts: str = "", **settings: Any
) -> Family:
    options = {"_experts_implementation": experts} if experts else {}
    config = "Gemma3TextConfig" if model == "Gemma3TextModel" else ""
    return Family(name, "decoder", model, settings, arguments, reason, config=config, options=options)


def _scan(name: str, model: str, **settings: Any) -> Family:
    return Family(name, "state space", model, settings, text, attends=False)


def _both(name: str, model: str, **settings: Any) -> Family:
    return Family(name, "encoder–decoder", model, settings, pair)


ENCODERS = [
    _encoder("albert", "AlbertModel", **_TEXT, embedding_size=8),
    _encoder("bert", "BertModel", **_TEXT),
    _encoder("bert, padded", "BertModel", arguments=padded, **_TEXT),
    _encoder("bigbird", "BigBirdModel", **_TEXT, attention_type="original_full"),
    _encoder("convbert", "ConvBertModel", **_TEXT, embedding_size=16),
    _encoder("deberta-v2", "DebertaV2Model", **_TEXT, relative_attention=True, pos_att_type=["c2p", "p2c"]),
    _encoder("distilbert", "DistilBertModel", vocab_size=WORDS, dim=16, n_layers=2, n_heads=2, hidden_dim=32),
    _encoder("electra", "ElectraModel", **_TEXT, embedding_size=16),
    _encoder("fnet", "FNetModel", attends=False, vocab_size=WORDS, hidden_size=16, num_hidden_layers=2),
    _encoder(
        "funnel",
        "FunnelModel",
        arguments=longer_text,
        vocab_size=WORDS,
        block_sizes=[1, 1],
        num_decoder_layers=1,
        d_model=16,
        n_head=2,
        d_head=8,
        d_inner=32,
    ),
    _encoder("longformer", "LongformerModel", arguments=gapped, **_TEXT, attention_window=4),
    _encoder(
        "modernbert",
        "ModernBertModel",
        **_TEXT,
        local_attention=4,
        global_attn_every_n_layers=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
    ),
    _encoder("mpnet", "MPNetModel", **_TEXT),
    _encoder(
        "nystromformer", "NystromformerModel", arguments=longer_text, **_TEXT, num_landmarks=4, segment_means_seq_len=8
    ),
    _encoder("rembert", "RemBertModel", **_TEXT, input_embedding_size=16),
    _encoder("roberta", "RobertaModel", **_TEXT),
    _encoder("roformer", "RoFormerModel", **_TEXT),
    _encoder("squeezebert", "SqueezeBertModel", **_TEXT, embedding_size=16),
    _encoder("xlm-roberta", "XLMRobertaModel", **_TEXT),
    _encoder("xlnet", "XLNetModel", vocab_size=WORDS, d_model=16, n_layer=2, n_head=2, d_inner=32),
    _encoder("yoso", "YosoModel", **_TEXT, use_expectation=True),
]

DECODERS = [
    _decoder("biogpt", "BioGptModel", **_DECODER),
    _decoder("bloom", "BloomModel", vocab_size=WORDS, hidden_size=16, n_layer=2, n_head=2, use_cache=False),
    _decoder("codegen", "CodeGenModel", **_GPT | {"n_head": 4}, rotary_dim=4),
    _decoder("cohere", "CohereModel", **_GROUPED),
    _decoder("ctrl", "CTRLModel", **_GPT, dff=32),
    _decoder("falcon", "FalconModel", **_SIZES, use_cache=False),
    _decoder("gemma", "GemmaModel", **_GROUPED, head_dim=8),
    _decoder("gemma2", "Gemma2Model", **_GROUPED, head_dim=8, sliding_window=3),
    _decoder("gemma3", "Gemma3TextModel", **_GROUPED, head_dim=8, sliding_window=3),
    _decoder("glm", "GlmModel", **_GROUPED, head_dim=8),
    _decoder("gpt2", "GPT2Model", **_GPT),
    _decoder("gpt2, padded", "GPT2Model", arguments=padded, **_GPT),
    _decoder("gpt-bigcode", "GPTBigCodeModel", **_GPT),
    _decoder("gptj", "GPTJModel", **_GPT, rotary_dim=4),
    _decoder(
        "gpt-neo",
        "GPTNeoModel",
        vocab_size=WORDS,
        hidden_size=16,
        num_layers=2,
        num_heads=2,
        window_size=3,
        attention_types=[[["global", "local"], 1]],
        max_position_embeddings=32,
        use_cache=False,
    ),
    _decoder("gpt-neox", "GPTNeoXModel", **_DECODER),
    _decoder("granite", "GraniteModel", **_GROUPED),
    _decoder("llama", "LlamaModel", **_GROUPED),
    _decoder("llama, padded", "LlamaModel", arguments=padded, **_GROUPED),
    _decoder("mistral", "MistralModel", **_GROUPED, head_dim=8, sliding_window=3),
    _decoder("mixtral, batched", "MixtralModel", experts="batched_mm", **_EXPERTS),
    _decoder("mixtral, grouped", "MixtralModel", experts="grouped_mm", reason=SORTED, **_EXPERTS),
    _decoder("mixtral, looped", "MixtralModel", experts="eager", reason=CHOSEN, **_EXPERTS),
    _decoder("mpt", "MptModel", vocab_size=WORDS, d_model=16, n_layers=2, n_heads=2, max_seq_len=32, use_cache=False),
    _decoder("olmo", "OlmoModel", **_GROUPED),
    _decoder("olmo2", "Olmo2Model", **_GROUPED),
    _decoder("opt", "OPTModel", **_SIZES, ffn_dim=32, word_embed_proj_dim=16, use_cache=False),
    _decoder("phi", "PhiModel", **_DECODER),
    _decoder("phi3", "Phi3Model", **_GROUPED),
    _decoder("qwen2", "Qwen2Model", **_GROUPED),
    _decoder(
        "qwen2-moe",
        "Qwen2MoeModel",
        experts="batched_mm",
        **_GROUPED,
        num_experts=3,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    ),
    _decoder("qwen3", "Qwen3Model", **_GROUPED, head_dim=8),
    _decoder("stablelm", "StableLmModel", **_GROUPED),
    _decoder("starcoder2", "Starcoder2Model", **_GROUPED),
    _decoder(
        "jamba",
        "JambaModel",
        experts="batched_mm",
        **_GROUPED,
        num_experts=2,
        mamba_d_state=4,
        use_mamba_kernels=False,
        attn_layer_period=2,
        attn_layer_offset=1,
    ),
]

SCANS = [
    _scan("mamba", "MambaModel", vocab_size=WORDS, hidden_size=16, num_hidden_layers=2, state_size=4, use_cache=False),
    _scan(
        "mamba2",
        "Mamba2Model",
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=2,
        state_size=4,
        num_heads=4,
        head_dim=8,
        n_groups=1,
        chunk_size=4,
        use_cache=False,
    ),
    _scan(
        "recurrent-gemma",
        "RecurrentGemmaModel",
        **_GROUPED,
        head_dim=8,
        lru_width=16,
        attention_window_size=3,
        block_types=["recurrent", "attention"],
    ),
    _scan(
        "rwkv",
        "RwkvModel",
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=2,
        attention_hidden_size=16,
        intermediate_size=32,
        use_cache=False,
    ),
]

PAIRS = [
    _both("bart", "BartModel", **_BOTH),
    _both("blenderbot", "BlenderbotModel", **_BOTH),
    _both("m2m100", "M2M100Model", **_BOTH),
    _both("marian", "MarianModel", **_BOTH, pad_token_id=0, decoder_start_token_id=0),
    _both("mbart", "MBartModel", **_BOTH),
    _both("pegasus", "PegasusModel", **_BOTH),
    _both(
        "prophetnet",
        "ProphetNetModel",
        vocab_size=WORDS,
        hidden_size=16,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        num_encoder_layers=1,
        num_decoder_layers=1,
        num_encoder_attention_heads=2,
        num_decoder_attention_heads=2,
        max_position_embeddings=32,
        use_cache=False,
    ),
    _both("t5", "T5Model", **_T5),
    _both("umt5", "UMT5Model", **_T5),
]
