"""What an update does to the file: the lines of the tests that ran, and no others."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.fixture
def three(project: Project) -> Project:
    """A project of three tests, each with a baseline of 12.5 ms."""
    project.write(
        test_model="""
            import json
            from pathlib import Path

            import pytest

            @pytest.mark.parametrize("case", ["a", "b", "c"])
            def test_model(ttnn_perf, case):
                numbers = json.loads(Path(__file__).with_name("numbers.json").read_text())
                ttnn_perf.record("latency", numbers.get(case, 12.5), unit="ms")
                ttnn_perf.record("ops", 7, kind="count")
        """
    )
    print_line(project)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-reason=first")
    return project


def print_line(project: Project, **milliseconds: float) -> None:
    """Let some of the tests record another time from now on."""
    (project.path / "numbers.json").write_text(json.dumps(milliseconds))


def sections(text: str) -> dict[str, list[str]]:
    """Return the lines that belong to each test, and under "" those above all tests."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for line in text.splitlines():
        if line.startswith('    "test_model['):
            name = line.strip(' ":{')
        found.setdefault(name, []).append(line)
    return found


def difference(before: list[str], after: list[str]) -> list[str]:
    """Return removed and added lines, but for what says when, why and in which run."""
    before, after = (
        [re.sub(r', "[^"]*-[^"]*"\]', "]", line) for line in text] for text in (before, after)
    )
    lines = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    return [f"{line[0]} {line[1:].strip()}" for line in lines if '"accepted"' not in line]


def test_one_updated_test_changes_its_own_lines(three: Project) -> None:
    before = sections(three.baseline().read_text())
    print_line(three, a=6.5, b=6.5, c=6.5)

    three.pytest("-k", "b", "--ttnn-perf-update")

    after = sections(three.baseline().read_text())
    own = "test_model[b]"
    assert difference(before.pop(own), after.pop(own)) == [
        "- [12.5, 0, 1]",
        "+ [12.5, 0, 1],",
        "+ [6.5, 0, 1]",
        '- ], "since": 0, "source": "wall", "unit": "ms"',
        '+ ], "since": 1, "source": "wall", "unit": "ms"',
        "+ [7, 0, 1],",
    ]
    assert after == before


def test_one_session_more_is_one_line_more(three: Project) -> None:
    before = three.baseline().read_text().splitlines()

    three.pytest("--ttnn-perf-update")

    after = three.baseline().read_text().splitlines()
    assert difference(before, after) == ["+ [12.5, 0, 1],", "+ [7, 0, 1],"] * 3
    assert [line for line in after if '"accepted"' in line] == [
        line for line in before if '"accepted"' in line
    ]


def test_lock_beside_the_baselines_is_kept_out_of_git(three: Project) -> None:
    three.run("git", "init", "-q")

    ran = three.run("git", "ls-files", "--others", "--exclude-standard", "baselines")

    assert ran.text == "baselines/host-ARCH/test_model.json"
    assert "baselines/.lock" in three.files()
