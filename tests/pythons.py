"""The Pythons of this machine, for what tests on several of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def python_of(version: str) -> str | None:
    """Return the Python of a version, from PATH or from pyenv; None if there is none."""
    for candidate in (f"python{version}", *_pyenv(version)):
        found = shutil.which(candidate)
        # pyenv's shims exist for versions that are not active, and then only complain.
        works = found and subprocess.run([found, "-V"], capture_output=True, check=False)
        if works and works.returncode == 0:
            return found
    return None


def _pyenv(version: str) -> list[str]:
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return []
    root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True)
    versions = Path(root.stdout.strip(), "versions").glob(f"{version}.*")
    return [str(folder / "bin" / "python") for folder in sorted(versions)]
