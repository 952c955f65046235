"""The how-to page on tt-lang kernels: the project that it shows, and the outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.harness.project import clean

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

_PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "gate-tt-lang-kernels.md"
_FILE: Final = re.compile(r"^As `([\w.]+)`:\n\n```py\n(.*?)^```", re.DOTALL | re.MULTILINE)
_OUTPUT: Final = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def write_page(project: Project) -> None:
    """Write the files that the page shows."""
    for name, source in _FILE.findall(_text()):
        (project.path / name).write_text(source, encoding="utf-8")


def shown_after(words: str) -> list[str]:
    """Return the lines of the first output below some words; those left out are not among them."""
    _, found, rest = _text().partition(words)
    assert found, words
    output = _OUTPUT.search(rest)
    assert output is not None, words
    return lines_of(output[2])


def printed(ran: Ran) -> list[str]:
    """Return the lines of a run as the page has them."""
    return lines_of(ran.text)


def lines_of(text: str) -> list[str]:
    """Return lines without what a page leaves out, and without the width of columns."""
    lines = (" ".join(line.split()) for line in clean(text).splitlines())
    return [line for line in lines if line not in {"", "..."}]


def _text() -> str:
    return _PAGE.read_text(encoding="utf-8")
