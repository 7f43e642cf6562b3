"""Families that see, hear, or read measurements over time."""

from __future__ import annotations

from typing import Any

import torch

from tests.zoo.family import BATCH, WORDS, Family, film, ids, image, large_image, text, wave

SHIFTED = "windows are kept apart by scores of −100, whose softmax weight is about 10⁻⁴⁴, too small to see but not 0"

_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
_PATCHES = {**_SIZES, "image_size": 8, "patch_size": 2}
_IMAGE = {**_PATCHES, "intermediate_size": 32}
_WINDOWS = {"embed_dim": 8, "depths": [2, 1], "num_heads": [2, 2], "window_size": 2, "image_size": 8, "patch_size": 1}
_STAGES = {"hidden_sizes": [8, 8], "depths": [1, 1]}
_WAVE = {
    **_SIZES,
    "vocab_size": WORDS,
    "intermediate_size": 32,
    "conv_dim": (8, 8),
    "conv_stride": (2, 2),
    "conv_kernel": (3, 3),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}
_SPEECH = {
    "vocab_size": WORDS,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "use_cache": False,
}


def _vision(name: str, model: str, *, arguments: Any = image, reason: str = "", **settings: Any) -> Family:
    config = "SiglipVisionConfig" if model == "SiglipVisionModel" else ""
    return Family(name, "vision", model, settings, arguments, reason, config=config)


def _convolution(name: str, model: str, **settings: Any) -> Family:
    return Family(name, "vision", model, settings, large_image, attends=False)


def _audio(name: str, model: str, *, arguments: Any = wave, **settings: Any) -> Family:
    return Family(name, "audio", model, settings, arguments)


def _mel() -> dict[str, Any]:
    return {"input_features": torch.randn(BATCH, 4, 16), "decoder_input_ids": ids(4)}


def _frames() -> dict[str, Any]:
    return {"input_features": torch.randn(BATCH, 16, 4), "decoder_input_ids": ids(4)}


VISION = [
    _vision("beit", "BeitModel", **_IMAGE),
    _vision(
        "clip",
        "CLIPModel",
        arguments=lambda: text() | image(),
        projection_dim=8,
        vision_config=_IMAGE,
        text_config={**_SIZES, "vocab_size": WORDS, "intermediate_size": 32, "eos_token_id": 2},
    ),
    _convolution("convnext", "ConvNextModel", **_STAGES, num_stages=2, patch_size=2),
    _convolution("convnextv2", "ConvNextV2Model", **_STAGES, num_stages=2, patch_size=2),
    _vision("deit", "DeiTModel", **_IMAGE),
    _vision("dinov2", "Dinov2Model", **_PATCHES),
    _convolution(
        "focalnet",
        "FocalNetModel",
        image_size=32,
        patch_size=4,
        embed_dim=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        focal_levels=[1, 1],
        focal_windows=[3, 3],
    ),
    _convolution(
        "mobilenet-v2",
        "MobileNetV2Model",
        depth_multiplier=0.25,
        min_depth=4,
        depth_divisible_by=4,
    ),
    _convolution(
        "mobilevit",
        "MobileViTModel",
        image_size=32,
        patch_size=2,
        hidden_sizes=[8, 8, 8],
        num_attention_heads=2,
        neck_hidden_sizes=[4, 4, 4, 4, 4, 4, 8],
    ),
    _convolution(
        "poolformer",
        "PoolFormerModel",
        **_STAGES,
        patch_sizes=[3, 3],
        strides=[2, 2],
        padding=[1, 1],
        num_encoder_blocks=2,
    ),
    _convolution("regnet", "RegNetModel", **_STAGES, embedding_size=8, groups_width=4),
    _convolution("resnet", "ResNetModel", **_STAGES, embedding_size=8),
    _vision(
        "segformer",
        "SegformerModel",
        **_STAGES,
        num_encoder_blocks=2,
        sr_ratios=[2, 1],
        patch_sizes=[3, 3],
        strides=[2, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
    ),
    _vision("siglip", "SiglipVisionModel", **_IMAGE),
    _vision("swin", "SwinModel", reason=SHIFTED, **_WINDOWS),
    _vision("swinv2", "Swinv2Model", **_WINDOWS),
    _vision("timesformer", "TimesformerModel", arguments=film, **_IMAGE | {"image_size": 4}, num_frames=2),
    _vision("videomae", "VideoMAEModel", arguments=film, **_IMAGE | {"image_size": 4}, num_frames=2, tubelet_size=1),
    _vision("vit", "ViTModel", **_IMAGE),
]

AUDIO = [
    _audio("hubert", "HubertModel", **_WAVE),
    _audio("sew", "SEWModel", **_WAVE, squeeze_factor=2),
    _audio(
        "speech-to-text",
        "Speech2TextModel",
        arguments=_frames,
        **_SPEECH,
        input_feat_per_channel=4,
        conv_channels=8,
        max_source_positions=32,
        max_target_positions=32,
    ),
    _audio("wav2vec2", "Wav2Vec2Model", **_WAVE),
    _audio("wavlm", "WavLMModel", **_WAVE),
    _audio(
        "whisper",
        "WhisperModel",
        arguments=_mel,
        **_SPEECH,
        num_mel_bins=4,
        max_source_positions=8,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    ),
]

SERIES = [
    Family(
        "patchtst",
        "time series",
        "PatchTSTModel",
        {
            "num_input_channels": 2,
            "context_length": 16,
            "patch_length": 4,
            "patch_stride": 4,
            "d_model": 16,
            "num_attention_heads": 2,
            "num_hidden_layers": 2,
            "ffn_dim": 32,
        },
        lambda: {"past_values": torch.randn(BATCH, 16, 2)},
    ),
]
