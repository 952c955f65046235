"""What pytest remembers between sessions, it remembers of sessions in workers too."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.sessions import GATED, both, write_model, write_numbers

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

TESTS = {
    "test_a": "def test_1(): pass\ndef test_2(): assert 0\ndef test_3(): pass",
    "test_b": "def test_4(): assert 0\ndef test_5(ttnn_perf): ttnn_perf.record('us', 1)",
}


def remembered(project: Project, name: str) -> Any:
    """Return what pytest keeps under a name."""
    return json.loads((project.path / ".pytest_cache/v/cache" / name).read_text())


@pytest.mark.long
def test_next_session_selects_as_after_an_ordinary_one(project: Project) -> None:
    project.write(**TESTS)
    cached: list[Any] = []

    def twice(options: tuple[str, ...]) -> Ran:
        project.pytest(*options, "--sw")
        ran = project.pytest(*options, "--sw", "-v", "-o", "console_output_style=classic")
        files = (project.path / ".pytest_cache/v/cache").iterdir()
        # How long ago --stepwise failed, and of how many tests, it says only for information;
        # what --nf knew is not kept.
        left_out = {"stepwise", "nodeids"}
        cached.append({f.name: f.read_text() for f in files if f.name not in left_out})
        return ran

    sessions = both(project, twice)

    # Lines that plugins report after collection are not repeated.
    sessions.assert_equal(lambda text: re.sub(r"^stepwise: .*\n", "", text, flags=re.MULTILINE))
    assert cached[1] == cached[0]


def test_file_that_can_be_collected_again_is_forgotten(project: Project) -> None:
    project.write(**TESTS, test_c="import no_such_module\ndef test_6(): pass")
    project.pytest(*GATED)
    assert remembered(project, "lastfailed") == {"test_c.py": True}
    project.write(test_c="def test_6(): pass\ndef test_7(): pass")

    project.pytest(*GATED, "-x", "test_c.py", "test_b.py")

    assert remembered(project, "lastfailed") == {"test_b.py::test_4": True}


def test_failed_verdicts_are_remembered(project: Project) -> None:
    write_model(project, "as_ever", "first", "second")
    write_numbers(project, as_ever=[10], first=[20], second=[20])

    ran = project.pytest(*GATED, "--ttnn-perf-confirm=1", "-q", "--sw")

    assert ran.code == 2
    failed = [f"test_model.py::test_model[{name}]" for name in ("first", "second")]
    assert sorted(remembered(project, "lastfailed")) == failed
