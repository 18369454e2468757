"""Rules about in-place writes and `.data`."""
