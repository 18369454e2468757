"""Rules about loss functions and what they are given."""
