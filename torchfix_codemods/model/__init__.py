"""Facts about one file, computed on `ast`, lazily and once."""

from .facts import Fact, Kind
from .file import FileModel
from .gradients import Recording
from .training import Event, Happening

__all__ = ["Event", "Fact", "FileModel", "Happening", "Kind", "Recording"]
