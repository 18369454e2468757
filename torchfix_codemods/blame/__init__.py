"""Which fixes make a command fail, and the largest set of the others."""
