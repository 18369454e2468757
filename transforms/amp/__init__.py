"""Rules about mixed precision, timing and determinism."""
