"""The pictures in docs/from-rnn-to-transformer.md, drawn by depgraph."""

import depgraph
from tests.gallery.files import traced

PICTURES = {
    "rnn": lambda: traced("rnn", 6),
    "seq2seq": lambda: traced("seq2seq", 4),
    "bahdanau": lambda: traced("bahdanau", 4, 2),
    "lstmn": lambda: traced("lstmn", 3),
    "self_attention": lambda: traced("self_attention", 6),
    "window_attention": lambda: traced("window_attention", 8, window=3, layers=1),
    "dilated_cnn": lambda: traced("dilated_cnn", 16, layers=4),
    "dilated_cnn_centred": lambda: traced("dilated_cnn_centred", 16, layers=3),
    "training": lambda: traced("training", 5, layers=1),
    "generation": lambda: traced("generation", 3, 2, layers=1),
    "sequential_scan": lambda: traced("sequential_scan", 8),
    "scan": lambda: traced("scan", 8),
}


def draw(name, file):
    """Draw one picture into an SVG file."""
    depgraph.render(PICTURES[name](), file, granularity="position")
