"""Python beside PyTorch: values that leave tensors, and what comes back."""
