"""``required``: a test with a baseline that does not run in a full run fails it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of

if TYPE_CHECKING:
    from tests.harness.project import Project

BOTH = """
    import pytest

    @pytest.mark.skipif({skipped}, reason="no time today")
    def test_a(ttnn_perf):
        ttnn_perf.record("latency", 12.5, unit="ms")

    def test_b(ttnn_perf):
        ttnn_perf.record("latency", 12.5, unit="ms")
"""


LOST = [
    "failed: 1 test with a baseline did not run, and required is set",
    "  test_model.py::test_a",
    "  run those that are skipped; what is gone or renamed: ttnn-perf baseline prune, baseline "
    "rename",
]


@pytest.fixture
def stored(project: Project) -> Project:
    """Return a project with a baseline for each of two tests."""
    project.write(test_model=BOTH.format(skipped=False))
    assert project.pytest("--ttnn-perf-update=new").code == 0
    return project


def losses(text: str) -> list[str]:
    lines = text.splitlines()
    return lines[lines.index(LOST[0]) :][: len(LOST)] if LOST[0] in lines else []


@pytest.mark.parametrize("gone", [False, True], ids=["skipped", "gone"])
def test_a_lost_test_fails_a_full_run(stored: Project, gone: bool) -> None:
    configure(stored, "required = true")
    source = BOTH.format(skipped=True)
    stored.write(test_model=source.replace("test_a", "helper") if gone else source)

    reports = ("--ttnn-perf-json=run.json", "--ttnn-perf-markdown=report.md")
    ran = stored.pytest("--ttnn-perf", *reports)

    assert ran.code == 1
    assert counts_of(ran) == ("1 passed" if gone else "1 passed, 1 skipped")
    assert losses(ran.text) == LOST
    gated = stored.cli("gate", "run.json")
    assert gated.code == 1
    assert losses(gated.text) == LOST
    markdown = stored.cli("gate", "run.json", "--format", "markdown").text
    for text in ((stored.path / "report.md").read_text(), markdown):
        assert "❌ ttnn-perf: 1 test with a baseline did not run, and required is set" in text
        assert "- `test_model.py::test_a`" in text
    document = json.loads(stored.cli("gate", "run.json", "--format", "json").text)
    assert document["lost"] == ["test_model.py::test_a"]


def test_a_selection_loses_nothing(stored: Project) -> None:
    configure(stored, "required = true")

    ran = stored.pytest("--ttnn-perf", "-k", "test_b")

    assert (ran.code, losses(ran.text)) == (0, [])


def test_with_xdist_it_is_refused_and_never_left_out_in_silence(stored: Project) -> None:
    configure(stored, "required = true")

    ran = stored.pytest_process("--ttnn-perf", "-n", "1", "--ttnn-perf-isolate", "process")

    assert ran.code == 4
    assert "required is set, and with" in ran.text + ran.errors
    assert "leave out -n, or required" in ran.text + ran.errors
