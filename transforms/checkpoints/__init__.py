"""Rules about saving and loading."""
