"""``sweep`` and ``require`` of the marker: points are tests, and some of them do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import configure, counts_of, record_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: A model that needs one unit of memory per sample and byte of a weight, and has 8 of them.
MODEL = """
    import pytest

    BYTES = {"bf16": 2, "bfp8": 1}
    NO_ROOM = (
        "TT_FATAL @ /tt_metal/impl/allocator/bank_manager.cpp:462: false\\ninfo:\\n"
        "Out of Memory: Not enough space to allocate %d B DRAM buffer across 12 banks\\n"
        "backtrace:\\n --- tt::tt_metal::BankManager::allocate_buffer"
    )

    @pytest.mark.ttnn_perf(
        sweep={"batch": [1, 2, 4, 8], "weights": ["bf16", "bfp8"]}, require={"pcc": 0.998}
    )
    def test_model(ttnn_perf, batch, weights):
        size = BYTES[weights]
        if batch * size > 8:
            raise RuntimeError(NO_ROOM % (batch * size))
        time = 1 + max(batch, 4) * 0.25 * size
        ttnn_perf.record("wall_time", [time, time * 1.01, time * 0.99], unit="ms")
        ttnn_perf.check_accuracy(pcc=0.9995 if weights == "bf16" else 0.995)
"""


@pytest.fixture
def swept(project: Project) -> Project:
    project.write(test_model=MODEL)
    return project


def sweep_of(project: Project) -> dict[str, Any]:
    """Return the one sweep of the newest record."""
    (sweep,) = record_of(project)["sweeps"]
    assert isinstance(sweep, dict)
    return sweep


def test_every_point_is_a_test_with_a_baseline_of_its_own(swept: Project) -> None:
    assert counts_of(swept.pytest("--ttnn-perf-update=new")) == "7 passed, 1 skipped"
    assert set(swept.stored()) == {
        f"test_model[batch={batch}-weights={weights}]"
        for batch in (1, 2, 4, 8)
        for weights in ("bf16", "bfp8")
        if (batch, weights) != (8, "bf16")
    }
    assert "samples_per_second" in swept.stored()["test_model[batch=4-weights=bf16]"]["metrics"]
    sweep = sweep_of(swept)
    assert sweep["test"] == "test_model.py::test_model"
    assert sweep["best"] == ["test_model.py::test_model[batch=4-weights=bf16]"]  # bfp8 lacks PCC
    unmet = {tuple(p["axes"].values()): p.get("unmet", []) for p in sweep["points"]}
    assert unmet[(8, "bfp8")] == ["pcc below 0.998"]
    assert [axis["took_effect"] for axis in sweep["axes"]] == [True, True]
    assert counts_of(swept.pytest("--ttnn-perf")) == "7 passed, 1 skipped"


def test_how_points_end(project: Project) -> None:
    project.write(
        test_model="""
            import os

            import pytest

            @pytest.fixture
            def model(batch):
                if batch == 8:
                    raise RuntimeError("Out of Memory: Not enough space to allocate 9 B")
                return batch

            @pytest.mark.ttnn_perf(sweep={"batch": [1, 2, 4, 8, 16]})
            def test_model(ttnn_perf, model):
                if model == 2:
                    os._exit(3)
                if model == 4:
                    raise ValueError("out of memory, said somebody else")
                ttnn_perf.record("wall_time", 10.0 + model, unit="ms")
        """
    )
    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-isolate=process")
    assert counts_of(ran) == "2 failed, 2 passed, 1 skipped"
    assert "over batch: 4 points; " in ran.text
    states = [point["state"] for point in sweep_of(project)["points"]]
    assert states == ["measured", "failed", "out of memory", "measured"]


IDLE_AXIS = """
    import pytest

    @pytest.mark.ttnn_perf(sweep={"batch": [1, 2], "weights": ["bf16", "bfp8"]})
    def test_model(ttnn_perf, batch, weights):
        ttnn_perf.facts(weights=weights)
        ttnn_perf.record("wall_time", [batch * 10.0, batch * 10.1], unit="ms")
"""
#: What is found of it, at every point.
IDLE = "axis-without-effect (warning): axis weights changed nothing that was observed"


def test_an_axis_that_is_not_passed_on_is_a_finding(project: Project) -> None:
    project.write(test_model=IDLE_AXIS)
    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")
    assert counts_of(ran) == "4 passed"
    assert "TTP013 axis-without-effect    4 tests: " in ran.text
    assert "axis weights: changed nothing that was observed (TTP013)" in ran.text
    again = project.cli("gate", "run.json")
    assert (again.code, "TTP013 axis-without-effect    4 tests: " in again.text) == (0, True)


def test_an_axis_that_must_take_effect_fails_the_run_and_stores_nothing(project: Project) -> None:
    project.write(test_model=IDLE_AXIS)
    configure(project, "[tool.ttnn_perf.rules.TTP013]", 'severity = "error"')
    ran = project.pytest("--ttnn-perf-update=new")
    assert (ran.code, counts_of(ran)) == (1, "1 failed, 4 passed")
    assert "FAILED ttnn-perf::axis without effect - test_model.py::test_model: TTP013" in ran.text
    assert not (project.path / "baselines").exists()


#: Markers, the arguments of their test, and what is wrong with them.
MISTAKES = [
    ('sweep={"batch": [1], "weights": ["a"]}', "batch", "function uses no argument 'weights'"),
    ("sweep=[1, 2]", "batch", "sweep: expected axes with their values"),
    ('sweep={"batch": []}', "batch", "sweep batch: expected a list of values, found []"),
    ('sweep={"batch": [1, 1]}', "batch", "sweep batch: expected each value once, found 1"),
    ('sweep={"x": [1, "1"]}', "x", "sweep x: expected each value once, found 1 again"),
    ('sweep={"batch": [0]}', "batch", "sweep batch: expected a whole number of at least 1"),
    ('sweep={"x": [{}]}', "x", "sweep x: expected a string, a number or what has a name"),
    ('sweep={"batch": [1]}, batch=2', "batch", "batch is an axis of the sweep: leave out batch=2"),
    ('require={"pcc": 0.9}', "", "require chooses among the points of a sweep"),
]


@pytest.mark.parametrize("mistakes", [MISTAKES[:-1], MISTAKES[-1:]], ids=["collected", "require"])
def test_mistakes_are_refused_by_name(project: Project, mistakes: list[tuple[str, ...]]) -> None:
    modules = {
        f"test_{number}": f"""
            import pytest

            @pytest.mark.ttnn_perf({marker})
            def test_model({arguments}):
                pass
        """
        for number, (marker, arguments, _) in enumerate(mistakes)
    }
    project.write(**modules)
    ran = project.pytest("--ttnn-perf", "--continue-on-collection-errors")
    assert ran.code != 0
    said = ran.text + ran.errors
    assert [message for _, _, message in mistakes if message not in said] == []
    assert "Traceback" not in said
