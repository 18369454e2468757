"""An interpreter of its own, which finds torch and what torch needs, but nothing of this project."""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from pathlib import Path

_HIDDEN = ("libcst", "typer", "rich", "__editable__")


def make(folder):
    """Its path; no network and few bytes: the libraries are links to those of this environment."""
    venv.create(folder, with_pip=False)
    libraries = folder / "libraries"
    libraries.mkdir()
    for place in Path(sysconfig.get_path("purelib")).iterdir():
        if not place.name.endswith(".pth") and not place.name.startswith(_HIDDEN):
            (libraries / place.name).symlink_to(place)
    python = folder / "bin" / "python"
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True, capture_output=True)
    Path(site.stdout.decode().strip(), "libraries.pth").write_text(str(libraries))
    return python
