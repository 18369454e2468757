"""Files on disk: finding, reading, running over many, writing."""
