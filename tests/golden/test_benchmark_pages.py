"""The how-to page on targets: its file, command and output."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def block(page: str, start: str) -> str:
    """Return the block of a page that begins so."""
    text = (PAGES / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```\w+\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return next(plain for found in blocks if (plain := textwrap.dedent(found)).startswith(start))


def check_commands(project: Project, commands: str) -> None:
    """Run the commands of a block; a line of ``...`` stands for others."""
    for part in re.split(r"^\$ ", commands, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        ran = project.cli(*command.split()[1:])
        expected = re.escape(output.strip()).replace(re.escape("..."), ".*")
        assert re.fullmatch(expected, ran.text.strip(), re.DOTALL), ran.text + ran.errors


def test_import_targets(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    page = "import-targets.md"
    (project.path / "model_targets.yaml").write_text(block(page, "targets:\n"))
    check_commands(project, block(page, "$ ttnn-perf import model_targets.yaml"))
