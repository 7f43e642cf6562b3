"""From an `nn.Module` to a functional ATen graph with names. The only layer that knows `torch.export`."""
