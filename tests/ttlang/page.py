"""The how-to page on tt-lang kernels: the files of the project that it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.harness.project import Project

PAGE: Final = "docs/how-to/gate-tt-lang-kernels.md"
_FILE: Final = re.compile(r"^As `([\w.]+)`:\n\n```py\n(.*?)^```", re.DOTALL | re.MULTILINE)


def write_page(project: Project) -> None:
    """Write the files that the page shows."""
    text = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
    for name, source in _FILE.findall(text):
        (project.path / name).write_text(source, encoding="utf-8")
