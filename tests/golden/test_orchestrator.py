"""The whole terminal output of a run in workers, as a user sees it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.golden.sessions import GATED, write_model, write_numbers
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

MORE = """
    import pytest

    def test_plain():
        print("printed by a test")

    def test_failing():
        print("printed before it failed")
        pytest.fail("the model is wrong", pytrace=False)

    def test_idle(ttnn_perf):
        pass

    @pytest.mark.skip(reason="no such board")
    def test_elsewhere():
        pass
"""


def run(project: Project, *arguments: str) -> Ran:
    return project.pytest(*GATED, *arguments)


def matches(name: str, project: Project, ran: Ran) -> None:
    text = f"{ran.text}\n{ran.errors}".rstrip().replace(str(project.path), "HERE")
    # How much of a message the short summary has room for differs between versions of pytest.
    text = re.sub(r"^(FAILED \S+ - .{30}).*", r"\1 ...", text, flags=re.MULTILINE)
    assert_golden(f"orchestrator/{name}", text)


@pytest.fixture
def mixed(project: Project) -> Project:
    """A project in which one model is slower, one only looked so, one is faster, one is as ever."""
    write_model(project, "as_ever", "faster", "lucky", "slower", more=MORE)
    write_numbers(project, as_ever=[10], faster=[5], lucky=[20, 10], slower=[20, 21, 22])
    return project


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("usual", []),
        # Classic: whether it stopped at 100 % of the tests differs between versions of pytest.
        (
            "stopped_by_a_verdict",
            ["-x", "test_model.py", "test_more.py::test_plain", "-oconsole_output_style=classic"],
        ),
    ],
)
def test_results_come_as_they_are_known(mixed: Project, name: str, options: list[str]) -> None:
    ran = run(mixed, *options)
    assert ran.code == 1
    matches(name, mixed, ran)


def test_expected_failures(project: Project) -> None:
    write_model(project, "slower")
    write_numbers(project, slower=[20])
    source = (project.path / "test_model.py").read_text()
    marked = source.replace(
        "@pytest.mark.param", '@pytest.mark.xfail(reason="old")\n@pytest.mark.param'
    )
    project.write(
        test_model=marked,
        test_more="""
            import pytest

            @pytest.mark.xfail(reason="old")
            def test_fails_as_expected(ttnn_perf):
                ttnn_perf.record("latency", 10, unit="ms")
                assert False

            @pytest.mark.xfail(reason="old", strict=True)
            def test_ought_to_fail():
                pass
        """,
    )
    ran = run(project, "-rxX")
    assert ran.code == 1
    matches("expected_failures", project, ran)
