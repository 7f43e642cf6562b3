"""Everything in `torch.nn` that is not laid out in space: layers, activations, losses."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrizations

from tests.zoo.case import Apply, Cases, normal, positive, signs, these

CELL = "a cell is one node and reads its whole state: in the new `c` each element reads its own only"

_ACTIVATIONS = (
    *("CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish"),
    *("RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink"),
)


def add_layers(cases: Cases) -> None:
    """Add linear maps, embeddings, norms and whatever changes shapes."""
    cases.add("Linear", normal(2, 3, 3), init=(3, 4))
    cases.add("LazyLinear", normal(2, 3), init=(4,))
    cases.add("Bilinear", normal(2, 3), normal(2, 4), init=(3, 4, 5))
    cases.made("Linear, weight-normalised", lambda: parametrizations.weight_norm(nn.Linear(3, 2)), normal(2, 3))
    cases.made("Linear, spectrally normalised", lambda: parametrizations.spectral_norm(nn.Linear(3, 2)), normal(2, 3))
    cases.made("Linear, orthogonal", lambda: parametrizations.orthogonal(nn.Linear(3, 3)), normal(2, 3))
    cases.made("Sequential", lambda: nn.Sequential(nn.Linear(3, 2), nn.Tanh()), normal(2, 3))
    cases.made("DataParallel", lambda: nn.DataParallel(nn.Linear(3, 2)), normal(2, 3))
    cases.add("Identity", normal(2, 3))
    cases.add("Flatten", normal(2, 2, 3))
    cases.add("Unflatten", normal(2, 4), init=(1, (2, 2)))
    cases.add("Embedding", these([0, 4, 2], [1, 1, 3]), init=(5, 3))
    cases.add("EmbeddingBag", these([0, 4, 2], [1, 1, 3]), init=(5, 3))
    cases.add("EmbeddingBag, with offsets", these(0, 4, 2, 1, 3), these(0, 2), init=(5, 3), known=("offsets",))
    cases.add("CosineSimilarity", normal(2, 3), normal(2, 3))
    cases.add("PairwiseDistance", normal(2, 3), normal(2, 3))
    cases.add("GroupNorm", normal(2, 4, 3), init=(2, 4))
    cases.add("LayerNorm", normal(2, 2, 2, 3), init=((2, 3),))
    cases.add("RMSNorm", normal(2, 3, 4), init=(4,))
    cases.add("LocalResponseNorm", normal(1, 5, 2), init=(3,))
    cases.add("SyncBatchNorm", normal(2, 2, 2), init=(2,))
    cases.add("InstanceNorm1d, tracking", normal(2, 2, 3), init=(2,), track_running_stats=True)


def add_recurrent_and_attention(cases: Cases) -> None:
    """Add recurrent layers, cells, attention and transformers."""
    cases.add("RNN", normal(4, 2, 2), init=(2, 3, 2), bidirectional=True)
    cases.add("RNN, rectified", normal(4, 2, 2), init=(2, 3), nonlinearity="relu")
    cases.add("LSTM", normal(4, 2), init=(2, 3, 2), bidirectional=True)
    cases.add("LSTM, projected", normal(2, 4, 2), init=(2, 3, 2), proj_size=2, batch_first=True)
    cases.add("GRU", normal(2, 4, 2), normal(1, 2, 3), init=(2, 3), batch_first=True)
    cases.add("RNNCell", normal(2, 2), normal(2, 3), init=(2, 3))
    cases.add("LSTMCell", normal(2, 2), lambda: (torch.randn(2, 3), torch.randn(2, 3)), init=(2, 3), reason=CELL)
    cases.add("GRUCell", normal(2), normal(3), init=(2, 3))
    keys = normal(2, 4, 4)
    cases.add("MultiheadAttention", normal(2, 3, 4), keys, keys, init=(4, 2), batch_first=True)
    cases.add(
        "MultiheadAttention, with biases",
        *(normal(3, 2, 4), normal(4, 2, 3), normal(4, 2, 2)),
        init=(4, 2),
        add_bias_kv=True,
        add_zero_attn=True,
        kdim=3,
        vdim=2,
    )
    cases.add("TransformerEncoderLayer", normal(2, 3, 4), init=(4, 2, 8), batch_first=True, norm_first=True)
    cases.add("TransformerDecoderLayer", normal(2, 3, 4), keys, init=(4, 2, 8), batch_first=True)
    cases.made(
        "TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2), normal(3, 2, 4)
    )
    cases.made(
        "TransformerDecoder",
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2),
        normal(3, 2, 4),
        normal(4, 2, 4),
    )
    cases.add("Transformer", normal(1, 3, 4), normal(1, 4, 4), init=(4, 2, 1, 1, 8), batch_first=True)


def add_activations(cases: Cases) -> None:
    """Add activations, softmaxes and dropout."""
    for name in _ACTIVATIONS:
        cases.add(name, normal(2, 3))
    cases.add("RReLU, in training", normal(2, 3), train=True)
    cases.add("Threshold", normal(2, 3), init=(0.0, 1.0))
    cases.add("PReLU", normal(2, 2, 3), init=(2,))
    cases.add("GLU", normal(2, 4))
    cases.add("Softmax", normal(2, 3), init=(1,))
    cases.add("Softmin", normal(2, 3), init=(1,))
    cases.add("LogSoftmax", normal(2, 3), init=(0,))
    cases.add("Softmax2d", normal(1, 2, 2, 2))
    for name in ("Dropout", "AlphaDropout", "FeatureAlphaDropout"):
        cases.add(name, normal(2, 3))
        cases.add(f"{name}, in training", normal(2, 3), train=True)


def add_losses(cases: Cases) -> None:
    """Add losses, one number an example; what they are compared with is an input like any other."""
    pair, labels = (normal(2, 3), normal(2, 3)), these(0, 2, 1, 0)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss"):
        cases.add(name, *pair, reduction="none")
    for name in ("BCEWithLogitsLoss", "KLDivLoss", "MultiLabelSoftMarginLoss"):
        cases.add(name, normal(2, 3), positive(2, 3), reduction="none")
    for name in ("HingeEmbeddingLoss", "SoftMarginLoss"):
        cases.add(name, normal(2, 3), signs(2, 3), reduction="none")
    for name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
        cases.add(name, normal(4, 3), labels, reduction="none")
    for name in ("TripletMarginLoss", "TripletMarginWithDistanceLoss"):
        cases.add(name, normal(4, 3), normal(4, 3), normal(4, 3), reduction="none")
    cases.add("BCELoss", positive(2, 3), positive(2, 3), reduction="none")
    cases.add("GaussianNLLLoss", *pair, positive(2, 3), reduction="none")
    cases.add("CosineEmbeddingLoss", normal(4, 3), normal(4, 3), signs(4), reduction="none")
    cases.add("MarginRankingLoss", normal(4), normal(4), signs(4), reduction="none")
    cases.add("MultiLabelMarginLoss", normal(2, 3), these([1, 2, -1], [0, -1, -1]), reduction="none")
    cases.add("LinearCrossEntropyLoss", normal(4, 2), labels, init=(2, 3), reduction="none")
    cases.made(
        "CrossEntropyLoss, smoothed and weighed",
        lambda: nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 3.0]), label_smoothing=0.1),
        normal(4, 3),
        labels,
    )
    cases.add(
        "CTCLoss",
        *(lambda: torch.randn(4, 1, 3).log_softmax(-1), these([1, 2]), these(4), these(2)),
        reduction="none",
    )
    cases.made(
        "AdaptiveLogSoftmaxWithLoss",
        lambda: Apply(lambda module, x: module.log_prob(x), nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6])),
        normal(2, 4),
    )
