"""Results as text: one file for each format."""
