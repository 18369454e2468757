"""Find PyTorch code that departs from the documented patterns, rewrite it, and prove the rewrite by execution."""

__version__ = "0.1.0"
