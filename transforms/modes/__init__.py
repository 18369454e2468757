"""Rules about train and eval mode."""
