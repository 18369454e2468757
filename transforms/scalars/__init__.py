"""Rules about Python numbers from tensors."""
