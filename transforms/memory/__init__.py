"""Rules about memory that is kept without need."""
