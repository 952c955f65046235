"""A session in workers ends as an ordinary one does: by itself, early, or before it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.golden.sessions import junit, run_both

if TYPE_CHECKING:
    from tests.harness.project import Project

ENDING = """
    import os

    import pytest

    {at_import}

    @pytest.fixture
    def fixture():
        yield
        {in_teardown}

    def test_before(): pass
    def test_ending(fixture):
        print("printed before the end")
        {in_test}
    def test_after(): pass
    def test_model(ttnn_perf): ttnn_perf.record("latency", 10, unit="ms")
"""


def write_ending(project: Project, **statements: str) -> None:
    """Write tests of which one ends the session."""
    nothing = dict.fromkeys(("at_import", "in_test", "in_teardown"), "pass")
    project.write(test_ending=ENDING.format(**{**nothing, **statements}))


@pytest.mark.parametrize(
    ("statements", "options", "code"),
    [
        pytest.param(
            {"in_teardown": "pytest.exit('at last', returncode=9)"},
            ["--junitxml=junit.xml"],
            9,
            marks=pytest.mark.long,
        ),
        ({"at_import": "import no_such_module"}, [], 2),
        pytest.param(
            {"at_import": "import no_such_module"},
            ["--continue-on-collection-errors"],
            1,
            marks=pytest.mark.long,
        ),
        ({}, ["-k", "nothing"], 5),
        ({}, ["test_ending.py::test_nowhere"], 4),
    ],
    ids=str,
)
def test_other_ends(
    project: Project, statements: dict[str, str], options: list[str], code: int
) -> None:
    write_ending(project, **statements)
    project.write(test_fine="def test_fine(): pass")

    sessions = run_both(project, *options)

    sessions.assert_equal()
    assert (sessions.gated.code, sessions.gated.errors) == (code, sessions.plain.errors)


def test_internal_error_of_a_worker_is_shown_as_one(project: Project) -> None:
    project.write(
        conftest="""
            def pytest_runtest_protocol(item):
                raise RuntimeError("a plugin is broken")
        """,
        test_model="def test_model(): pass",
    )
    reports: list[str] = []

    sessions = run_both(
        project, "--junitxml=junit.xml", after=lambda: reports.append(junit(project))
    )

    assert sessions.gated.code == sessions.plain.code == 3
    last = "INTERNALERROR> RuntimeError: a plugin is broken"
    assert last in sessions.plain.text.splitlines()
    assert last in sessions.gated.text.splitlines()
    assert sessions.gated.text.splitlines()[-1].strip("!") == (
        " _pytest.outcomes.Exit: ttnn-perf: internal error of a worker "
    )
    for report in reports:
        assert '<error message="internal error">Traceback' in report
        assert "RuntimeError: a plugin is broken</error>" in report
