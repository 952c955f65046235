"""The fixture without ``--ttnn-perf``: the test stays a functional test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of

if TYPE_CHECKING:
    from tests.harness.project import Project


TESTS = """
    import numpy as np
    import pytest

    ARGUMENTS = [{}, {"warmup": 2, "iterations": 5}, {"pipelined": 4}, {"name": "latency"}]

    @pytest.mark.ttnn_perf(warmup=3, iterations=20)
    @pytest.mark.parametrize("arguments", ARGUMENTS)
    def test_callable_runs_exactly_once(ttnn_perf, arguments):
        calls = []
        result = ttnn_perf.measure(lambda: calls.append(1) or len(calls), **arguments)
        assert (result, calls) == (1, [1])

    def test_call_is_prepared_and_synchronised_as_under_the_gate(ttnn_perf):
        log = []
        result = ttnn_perf.measure(
            lambda x, y, scale: log.append("call") or (x + y) * scale,
            scale=10,
            setup=lambda: log.append("setup") or (1, 2),
            sync=lambda: log.append("sync"),
        )
        assert result == 30
        assert log == ["setup", "sync", "call", "sync"]

    def test_rest_of_the_fixture_is_harmless(ttnn_perf):
        ttnn_perf.measure(int)
        ttnn_perf.measure(int)
        for _ in range(2):
            with ttnn_perf.region("block"):
                pass
        ttnn_perf.record("tokens_per_second", [1.5, float("nan")], unit="tok/s")
        ttnn_perf.facts(use_trace=True)
        ttnn_perf.check_accuracy(top1=0.8, at_least=0.75)
        ttnn_perf.check_accuracy(fid=12, at_most={"fid": 20})

    def test_exception_of_the_callable_is_the_tests_own(ttnn_perf):
        with pytest.raises(ZeroDivisionError):
            ttnn_perf.measure(lambda: 1 / 0)

    def test_value_is_returned(ttnn_perf):
        assert ttnn_perf.check_pcc(np.arange(4.0), 2 * np.arange(4.0)) > 0.999999

    @pytest.mark.xfail(raises=AssertionError, strict=True)
    def test_failed_accuracy_is_an_assertion_of_the_test(ttnn_perf):
        ttnn_perf.check_pcc(np.arange(4.0), -np.arange(4.0))
"""


def test_fixture_does_what_it_does_under_the_gate_once(project: Project) -> None:
    project.write(test_model=TESTS)

    assert counts_of(project.pytest()) == "8 passed, 1 xfailed"
    assert project.files() == {"test_model.py"}


#: What ends a test, and with which words.
FAILING = {
    "check_pcc(up, -up)": "pcc is -1, expected at least 0.99",
    "check_pcc(up, -up, at_least=0.5, name='q')": "q is -1, expected at least 0.5",
    "check_pcc(up, up[:2])": (
        "pcc is nan, expected at least 0.99: expected has shape (4,) and actual has shape (2,): "
        "PCC does not exist"
    ),
    "check_pcc(up, up * np.nan)": (
        "pcc is nan, expected at least 0.99: actual holds 4 NaN and 0 infinite of 4 values, the "
        "first (NaN) at [0]: PCC does not exist"
    ),
    "check_accuracy(top1=0.5, at_least=0.75)": "top1 is 0.5, expected at least 0.75",
    "check_accuracy(fid=31.5, at_most=20)": "fid is 31.5, expected at most 20",
    "check_accuracy(ppl=9, at_least=1, at_most=5)": "ppl is 9, expected at most 5",
    "check_accuracy(top1=float('nan'), at_least=0.75)": "top1 is nan, expected at least 0.75",
    "check_accuracy(top1=float('nan'))": "top1 is nan, expected a finite number",
}


def test_accuracy_is_enforced_at_once(project: Project) -> None:
    tests = (
        f"def test_{number}(ttnn_perf): ttnn_perf.{check}; print('went on')\n"
        for number, check in enumerate(FAILING)
    )
    project.write(test_model="import numpy as np\nup = np.arange(4.0)\n" + "".join(tests))

    ran = project.pytest("--tb=line")

    assert counts_of(ran) == f"{len(FAILING)} failed"
    assert "went on" not in ran.text
    for line, message in enumerate(FAILING.values(), start=3):
        place = f"{project.path}/test_model.py:{line}: "
        (told,) = [each for each in ran.text.splitlines() if each.startswith(place)]
        assert told.endswith(f"AccuracyError: {message}")
