"""Rules about tensors and modules on devices."""
