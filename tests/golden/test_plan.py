"""The whole output of ``ttnn-perf plan``: of captures, of a run record, and of wrong words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.docs.test_capture_pages import mlp
from tests.golden.test_checklist import CNN, LLM
from tests.harness.captures import capture, op
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

MODELS = """
    import pytest

    @pytest.mark.ttnn_perf(target={"device_kernel_time": "0.4 ms"})
    def test_mlp(ttnn_perf):
        ttnn_perf.attach("mlp.csv")

    def test_plain(ttnn_perf):
        ttnn_perf.record("tokens", 5.0)
"""


@pytest.fixture
def captured(project: Project) -> Project:
    (project.path / "mlp.csv").write_text(mlp())
    (project.path / "cnn.csv").write_text(capture(*CNN))
    (project.path / "llm.csv").write_text(capture(*LLM))
    return project


MLP = ("mlp.csv", "--target", "350 us", "--format")


def test_the_plan_of_a_capture(captured: Project) -> None:
    ran = captured.cli("plan", *MLP, "table")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("plan_mlp_table", ran.text)


def test_the_plan_of_a_run_record_is_that_of_its_tests(captured: Project) -> None:
    captured.write(test_model=MODELS)
    assert captured.pytest("--ttnn-perf-update=new").code == 0

    newest = captured.cli("plan")
    one = captured.cli("plan", "test_model.py::test_mlp", "--format", "json")
    none = captured.cli("plan", "test_model.py::test_plain")
    wrong = captured.cli("plan", "test_mdoel.py::test_mlp")

    assert newest.code == 0
    assert newest.errors.startswith("ttnn-perf: the newest run record: ")
    assert_golden("plan_run", newest.text)
    (plan,) = json.loads(one.text)["plans"]
    assert [step["code"] for step in plan["steps"]] == ["TTP311", "TTP101", "TTP203"]
    assert plan["targets"][0]["chance"] == "possible"
    assert none.code == 7
    assert none.text.startswith("no plan: the record has no device times")
    assert wrong.code == 2
    assert "test_mdoel.py::test_mlp names no test in " in wrong.errors


def test_numbers_that_cannot_be_trusted_make_no_plan(captured: Project) -> None:
    replay = {"METAL TRACE ID": "1"}
    rows = [
        op("MatmulDeviceOperation", 100, {**replay, "METAL TRACE REPLAY SESSION ID": session})
        for session in ("1", "1", "2")
    ]
    (captured.path / "replays.csv").write_text(capture(*rows))
    ran = captured.cli("plan", "replays.csv")
    assert ran.code == 7
    assert ran.text.startswith("no plan: TTP002 incomplete-trace-replay: ")


def test_a_target_out_of_reach_has_a_code_of_its_own(captured: Project) -> None:
    codes = {
        target: captured.cli("plan", "mlp.csv", "--target", target).code
        for target in ("350 us", "100 us", "1 ns", "1 s")
    }
    assert codes == {"350 us": 0, "100 us": 1, "1 ns": 1, "1 s": 0}


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        ((), 2, "nothing to plan: no run is recorded here: make one with pytest --ttnn-perf"),
        (
            ("mlp.csv", "--target", "fast"),
            2,
            "--target: expected a time with its unit, such as '12 ms', found 'fast'",
        ),
    ],
)
def test_wrong_words(captured: Project, words: tuple[str, ...], code: int, complaint: str) -> None:
    ran = captured.cli("plan", *words)
    assert (ran.code, ran.text) == (code, "")
    assert complaint in ran.errors
