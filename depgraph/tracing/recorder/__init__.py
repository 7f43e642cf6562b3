"""The recorder: a running model, written down as a functional graph of operators."""
