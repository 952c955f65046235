"""A terminal of some width, for commands that run in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.main import main
from tests.harness.project import QUICK, Project, clean

if TYPE_CHECKING:
    import pytest


class _Screen(io.TextIOWrapper):
    """What a terminal is given."""

    def isatty(self) -> bool:
        return True


class Terminal:
    """A terminal in which a project's commands are run; plain unless ``colour`` is wanted."""

    def __init__(
        self, project: Project, patch: pytest.MonkeyPatch, *, width: int, colour: bool = False
    ) -> None:
        self.project, self.width = project, width
        patch.chdir(project.path)
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "xterm")
        patch.delenv("CI", raising=False)
        if colour:
            patch.delenv("NO_COLOR", raising=False)
        else:
            patch.setenv("NO_COLOR", "1")

    def pytest(self, *arguments: str) -> str:
        """Run pytest, and return what is seen."""
        options = (*QUICK, "--ttnn-perf-isolate", "inline", "--ttnn-perf-confirm", "0")
        with redirect_stdout(_screen()) as screen:
            self.project.pytester.inline_run(*options, *arguments)
        return _seen(screen)

    def cli(self, *arguments: str) -> str:
        """Run ``ttnn-perf``, and return what is seen."""
        with redirect_stdout(_screen()) as screen:
            main([*arguments])
        return _seen(screen)


def _screen() -> _Screen:
    return _Screen(io.BytesIO(), encoding="utf-8", write_through=True)


def _seen(screen: io.TextIOWrapper) -> str:
    screen.seek(0)
    return clean(screen.read())
