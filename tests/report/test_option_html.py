"""``--ttnn-perf-html`` and ``html``: a page for a browser, written when the run is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


def page_of(project: Project, name: str = "page.html") -> str:
    return (project.path / name).read_text(encoding="utf-8")


def test_page_is_written_and_named_once(project: Project) -> None:
    write_latency(project, 10.0)
    project.pytest("--ttnn-perf-update=new")
    write_latency(project, 20.0)
    (project.path / "out").mkdir()
    (project.path / "out/page.html").write_text("of an earlier run")

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-html=out/page.html")

    assert ran.code == 1
    assert "1 of 1 test failed" in page_of(project, "out/page.html")
    assert [line for line in ran.text.splitlines() if "page.html" in line] == [
        "page: out/page.html"
    ]


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (".", "expected a file for the page, found a folder"),
        ("test_model.py/page.html", "cannot write: Not a directory"),
    ],
)
def test_place_that_cannot_be_written_is_refused_before_any_test(
    project: Project, place: str, told: str
) -> None:
    write_latency(project, 10.0)
    ran = project.pytest("--ttnn-perf", f"--ttnn-perf-html={place}")
    assert told in refusal_of(ran)
    assert ".ttnn_perf" not in {path.name for path in project.path.iterdir()}


def test_page_that_cannot_be_written_in_the_end_is_named_and_fails_the_run(
    project: Project,
) -> None:
    write_latency(project, 10.0)
    (project.path / "conftest.py").write_text(
        "import pathlib\ndef pytest_runtest_teardown(): pathlib.Path('page.html').mkdir()\n"
    )
    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-html=page.html")
    assert (ran.code, counts_of(ran)) == (1, "1 passed")
    told = [line for line in ran.text.splitlines() if "page.html" in line]
    assert len(told) == 1
    assert told[0].startswith("not written: ")
