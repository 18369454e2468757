"""Rules about data loaders."""
