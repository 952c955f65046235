"""Numbers that a test's author cannot mean fail that test, or stop the run by name; no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import record_of
from tests.faults.refusals import PYTEST_USAGE, assert_no_traceback, assert_refused

if TYPE_CHECKING:
    from tests.faults.conftest import Scene

UPDATE = ("--ttnn-perf-update=all", "--ttnn-perf-reason=x")


CALLS = (
    'record("wall_time", 10**400, unit="ns")',
    'record("wall_time", [10**308, 10**308, 0.5], unit="ns")',
    'record("wall_time", 1e300, unit="ns")',
    "check_accuracy(top1=10**400)",
    "check_accuracy(top1=1.0, at_most=1e200)",
    "facts(layers=10**400)",
    'facts(scale=float("nan"))',
)


def test_a_number_beyond_any_measure_fails_its_test_by_name(scene: Scene) -> None:
    # Whole numbers can be larger than any float.
    tests = [f"def test_{n}(ttnn_perf): ttnn_perf.{call}\n" for n, call in enumerate(CALLS)]
    other = "def test_other(ttnn_perf): ttnn_perf.record('wall_time', 1000, unit='ns')\n"
    scene.project.write(test_model="".join([*tests, other]))
    before = scene.project.stored()
    ran = scene.project.pytest(*UPDATE)
    assert "INTERNALERROR" not in ran.text
    assert ran.code == 1
    failed = [line for line in ran.text.splitlines() if line.startswith("FAILED ")]
    assert [line.split()[1] for line in failed] == [
        f"test_model.py::test_{n}" for n in range(len(CALLS))
    ]
    # The test beside them is measured and stored, and of these nothing is.
    assert scene.project.stored().keys() - before.keys() == {"test_other"}


@pytest.mark.parametrize("limit", ["tolerance=1e200", 'target={"wall_time": 10**400}'])
def test_a_limit_beyond_any_measure_is_refused_before_any_test_runs(
    scene: Scene, limit: str
) -> None:
    scene.project.write(
        test_model=f"""
        import pytest

        @pytest.mark.ttnn_perf({limit})
        def test_speed(ttnn_perf):
            ttnn_perf.record("wall_time", 1000, unit="ns")
        """
    )
    before = scene.on_disk()
    ran = scene.project.pytest(*UPDATE)
    name, _, _ = limit.partition("=")
    assert_refused(ran, code=PYTEST_USAGE, says=("test_model.py::test_speed", name, "expected"))
    assert_no_traceback(ran)
    assert scene.on_disk() == before


#: Errors and values that cannot say what they are.
UNSPEAKABLE = """
    import pytest

    def fails(self):
        raise ValueError("no words")

    def of(base, answer):
        return type("Unspeakable", (base,), {"__str__": answer, "__repr__": answer})

    every = pytest.mark.parametrize("answer", [fails, lambda self: None], ids=[0, 1])
    pytestmark = pytest.mark.ttnn_perf

    @pytest.fixture
    def broken_setup(answer):
        raise of(RuntimeError, answer)

    @every
    def test_body(ttnn_perf, answer):
        raise of(RuntimeError, answer)

    @every
    def test_setup(ttnn_perf, broken_setup):
        pass

    @every
    def test_not_a_number(ttnn_perf, answer):
        ttnn_perf.record("latency", of(object, answer)(), unit="ms")

    @every
    def test_values_are_taken(ttnn_perf, answer, record_property):
        record_property("thing", of(object, answer)())
        ttnn_perf.facts(mode=of(str, answer)("fast"), layers=of(int, answer)(2))
        samples = [of(int, answer)(2), of(float, answer)(2.0)]
        ttnn_perf.record(of(str, answer)("latency"), samples, unit=of(str, answer)("ms"))

    def test_other(ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")
"""


def test_what_cannot_say_what_it_is_costs_one_test(scene: Scene) -> None:
    scene.project.write(test_model=UNSPEAKABLE)

    ran = scene.project.pytest("--ttnn-perf-update=new", "--ttnn-perf-isolate=process", "-q")

    assert "INTERNALERROR" not in ran.text + ran.errors
    assert ran.text.splitlines()[-1].startswith("4 failed, 3 passed, 2 errors"), ran.text[-3000:]
    tests = record_of(scene.project)["tests"]
    entries = {test.partition("::")[2]: entry for test, entry in tests.items()}
    for number, error in enumerate(("ValueError", "TypeError")):
        assert entries[f"test_body[{number}]"]["raised"] == (
            f"Unspeakable: <Unspeakable whose text cannot be made: {error}>"
        )
        taken = entries[f"test_values_are_taken[{number}]"]
        assert taken["facts"] == {"mode": "fast", "layers": 2}
        assert taken["metrics"]["latency"]["samples"] == [2, 2.0]
    assert entries["test_other"]["verdicts"]["latency"]["outcome"] == "NO_BASELINE"
