"""``ttnn-perf skill``: how to optimize with these commands, as a text for coding agents."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from pytest_ttnn_perf.report.numbers import Result

if TYPE_CHECKING:
    import argparse


def run(_: argparse.Namespace) -> Result:
    """Return the text, in Markdown with front matter."""
    skill = files("pytest_ttnn_perf.agents") / "skill.md"
    return Result(skill.read_text(encoding="utf-8"))
