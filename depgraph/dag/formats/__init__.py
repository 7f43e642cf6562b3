"""Graphs as files: written in the formats of other tools, and read back; and the ONNX files that other tools write."""
