"""What the operators of ONNX read, where they do not read all their inputs."""

from __future__ import annotations

from typing import NamedTuple

Inputs = tuple[int, ...] | None
"""Some inputs by number; None: all of them."""


class Move(NamedTuple):
    """An operator that only moves data, as long as what says where to is known.

    Attributes
    ----------
    data : Inputs
        The inputs that are moved.
    says : Inputs
        The inputs that say where to.
    resizes : bool
        Whether these decide on the shape of the result.
    """

    data: Inputs = (0,)
    says: Inputs = ()
    resizes: bool = False


MOVES: dict[str, Move] = {
    **dict.fromkeys(("Identity", "Cast", "CastLike", "Transpose", "Flatten", "BitCast", "Optional"), Move()),
    **dict.fromkeys(("OptionalGetElement", "DepthToSpace", "SpaceToDepth"), Move()),
    **dict.fromkeys(("Concat", "SequenceConstruct", "ConcatFromSequence"), Move(None)),
    **dict.fromkeys(("Reshape", "Expand", "Squeeze", "Unsqueeze", "Split", "CenterCropPad"), Move((0,), (1,), True)),
    **dict.fromkeys(("Compress", "SequenceAt", "SequenceErase", "SplitToSequence"), Move((0,), (1,), True)),
    **dict.fromkeys(("Tile", "Slice", "Upsample", "Resize"), Move((0,), (1, 2, 3, 4), True)),
    **dict.fromkeys(("Gather", "GatherElements", "GatherND", "ReverseSequence", "Trilu"), Move((0,), (1,))),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), Move((0, 2), (1,))),
    "TensorScatter": Move((0, 1), (2,)),
    "Pad": Move((0, 2), (1, 3), True),
    "SequenceInsert": Move((0, 1), (2,), True),
    "Where": Move((1, 2), (0,)),
    "Dropout": Move((0,), (1, 2)),
}
"""What comes out of these is what goes in, under another name."""

MEASURES = ("Shape", "Size", "SequenceLength", "OptionalHasElement")
"""These read the shape of a tensor and nothing in it."""

FILLS = ("EyeLike", "RandomNormalLike", "RandomUniformLike", "ConstantOfShape")
"""These make constants, of the shape of a tensor or of a shape given."""

SIZED_BY: dict[str, Inputs] = {
    **dict.fromkeys(("NonZero", "Unique", "NonMaxSuppression", "StringSplit", "ImageDecoder", "Range"), None),
    **dict.fromkeys(("OneHot", "TopK", "DFT"), (1,)),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"), None),
    **dict.fromkeys(("If", "Loop", "Scan", "SequenceMap"), None),
    **{"MaxUnpool": (2,), "STFT": (1, 3), "AffineGrid": (1,), "Col2Im": (1, 2)},
}
"""Inputs whose values decide on the shape of the result, of operators that compute."""

CONTRACTIONS = frozenset(
    (
        *("MatMul", "MatMulInteger", "QLinearMatMul", "Gemm", "Einsum", "Attention", "LinearAttention"),
        *("Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "LSTM", "GRU", "RNN"),
        # Of ONNX Runtime.
        *("FusedMatMul", "FusedGemm", "FusedConv", "FusedMatMulActivation", "TransposeMatMul", "GemmFastGelu"),
        *("GemmFloat8", "QGemm", "MatMulNBits", "MatMulBnb4", "MatMulFpQ4", "MatMulIntegerToFloat"),
        *("MatMulInteger16", "DynamicQuantizeMatMul", "SparseToDenseMatMul", "DynamicQuantizeLSTM", "NhwcConv"),
        *("NhwcFusedConv", "QLinearConvTranspose", "ConvTransposeWithDynamicPads", "MoE", "QMoE"),
        *("MultiHeadAttention", "GroupQueryAttention", "PackedAttention", "PackedMultiHeadAttention", "QAttention"),
        *("DecoderAttention", "DecoderMaskedSelfAttention", "DecoderMaskedMultiHeadAttention", "LongformerAttention"),
        *("PagedAttention", "SparseAttention", "QOrderedAttention", "QOrderedMatMul", "QOrderedLongformerAttention"),
    )
)
"""Operators that multiply and sum, of whatever domain."""
