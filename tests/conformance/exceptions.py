"""Operators that are not exact, and those that cannot be tried, each with its reason. None may be unsound."""

from __future__ import annotations

_REASONS = {
    # More is said to be read than trying shows.
    "mask": "which elements an unknown mask lets in, and where they go, depends on all of it: all are read",
    "bins": "which bin an element falls into is data: every bin reads every element",
    "places": "which places the indices name is data: all they could name are read, more than there is time to try",
    "windows": "where the windows lie is drawn at random: the whole channel is read",
    "segments": "where the segments lie is data: all elements are read",
    "renorm": "whether rows are scaled down depends on which ones are named; those looked up always are",
    "ignored": "the class that is ignored is data: all classes are read",
    "paths": "which paths count depends on the targets and the lengths: all of them are read",
    "zeros": "some sines and cosines of the transform are 0",
    "cancels": "values cancel: the correlation of a row with itself is 1, a product with a number 0 is 0",
    "edges": "in the extreme case of one element, or of equal limits, there is nothing left to decide",
    "reach": "no ordinary value of an element gets as far as the outermost places",
    "rank": "whether a matrix is singular, and of what rank, is the same for nearly all values",
    "pivots": "the last pivot has nothing left to choose",
    "whole": "reflections and blocks of pivots are taken to read their whole matrix",
    "opaque": "PyTorch does not say what it is made of: everything is read",
    # Nothing to compare.
    "no input": "takes no tensor",
    "no output": "returns no tensor",
    "sparse": "takes sparse tensors",
    "device": "does not run on the CPU",
}

INEXACT = {
    name: _REASONS[reason]
    for reason, names in {
        "mask": "__getitem__ masked_scatter masked_select nonzero_static unique_consecutive repeat_interleave",
        "bins": "bincount histc histogram histogramdd nn.functional.one_hot",
        "places": """_unsafe_masked_index _unsafe_masked_index_put_accumulate max_pool2d_with_indices_backward
            nn.functional.max_unpool1d nn.functional.max_unpool1d-grad nn.functional.max_unpool2d
            nn.functional.max_unpool2d-grad nn.functional.max_unpool3d nn.functional.max_unpool3d-grad
            nn.functional.grid_sample grid_sampler_2d grid_sampler_3d""",
        "windows": "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d",
        "segments": "_segment_reduce-lengths _segment_reduce-offsets tensor_split narrow",
        "renorm": "nn.functional.embedding nn.functional.embedding_bag",
        "ignored": "nn.functional.nll_loss",
        "paths": "nn.functional.ctc_loss",
        "zeros": "stft fft.hfft fft.hfft2 fft.hfftn fft.irfft fft.irfft2 fft.irfftn",
        "cancels": "corrcoef native_dropout_backward",
        "edges": """nanquantile nn.functional.hardtanh nn.functional.multi_margin_loss
            nn.functional.multilabel_margin_loss masked.softmax masked.log_softmax masked.softmin""",
        "reach": "unravel_index",
        "rank": """lu linalg.lu_factor_ex linalg.lstsq linalg.lstsq-grad_oriented linalg.matrix_rank
            linalg.pinv""",
        "pivots": "lu_solve linalg.lu_solve",
        "whole": "ormqr linalg.householder_product linalg.ldl_factor linalg.ldl_factor_ex",
        "opaque": "nn.functional.linear_cross_entropy-chunked_none torch._scaled_mm_v2",
    }.items()
    for name in names.split()
}

UNTRIED = {
    name: _REASONS[reason]
    for reason, names in {
        "no input": """arange broadcast_shapes empty empty_permuted empty_strided eye full linspace logspace ones
            randint randn scalar_tensor tril_indices triu_indices zeros signal.windows.bartlett signal.windows.blackman
            signal.windows.cosine signal.windows.exponential signal.windows.gaussian signal.windows.general_cosine
            signal.windows.general_hamming signal.windows.hamming signal.windows.hann signal.windows.kaiser
            signal.windows.nuttall""",
        "no output": "allclose equal item",
        "sparse": "sparse.mm-reduce sparse.sampled_addmm",
        "device": """jiterator_2inputs_2outputs jiterator_4inputs_with_extra_args jiterator_binary
            jiterator_binary_return_by_ref jiterator_unary torch.ops.aten._efficient_attention_forward
            torch.ops.aten._flash_attention_forward""",
    }.items()
    for name in names.split()
}

# Operators some samples of which depgraph refuses to follow, with one sentence; the others are sound and exact.
REFUSED: dict[str, str] = {}
