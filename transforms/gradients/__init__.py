"""Rules about recording, clearing and using gradients."""
