"""Facts about one file, computed on `ast`, lazily and once."""

from .facts import Fact, Kind
from .file import FileModel
from .gradients import Recording
from .project import ALONE, Project, ProjectView
from .training import Event, Happening

__all__ = ["ALONE", "Event", "Fact", "FileModel", "Happening", "Kind", "Project", "ProjectView", "Recording"]
