"""Proof by execution: run the code before and after a rewrite, and compare what a contract promises."""
