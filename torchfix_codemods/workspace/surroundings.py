"""The projects around the files of one run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Project, ProjectView


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run knows of its projects: asked of the disk once in each process, and kept for this run alone."""

    folders: tuple[str, ...] = ()
    """The folders that were named; where nothing marks the top of a project, these do."""
    isolated: bool = False
    """Whether these are the projects, whatever marks others around them."""
    hidden: tuple[str, ...] = ()
    """Files that count as absent."""
    token: str = field(default_factory=lambda: os.urandom(8).hex())
    """Tells this run from others in the same process, which may find other files."""

    def view(self, path: str) -> ProjectView:
        """The project as the file at `path` sees it."""
        from ..model import ProjectView
        from .snapshot import absolute

        return ProjectView(_project(self), absolute(path))


@lru_cache(1)
def _project(surroundings: Surroundings) -> Project:
    from ..model import Project
    from .snapshot import Snapshot

    return Project(Snapshot(surroundings.folders, surroundings.isolated, surroundings.hidden))
