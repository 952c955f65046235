from __future__ import annotations

from pytest_ttnn_perf.core.metric import Source
from tests.rules.answers import Ask, clean, found, not_applicable, not_measured
from tests.rules.observations import accuracy, measured, timed

ask = Ask("TTP902")
FOUND = found("the test measures its model without checking the output")


def test_a_time_alone() -> None:
    assert ask(measured(timed(5.0))) == FOUND


def test_an_accuracy_without_a_limit_checks_nothing() -> None:
    assert ask(measured(timed(5.0), accuracy(0.8, name="top1"))) == FOUND


def test_with_a_pcc() -> None:
    assert ask(measured(timed(5.0), accuracy(0.999))) == clean()


def test_with_another_accuracy_that_has_a_limit() -> None:
    top1 = accuracy(0.8, name="top1", at_least=0.75)
    assert ask(measured(timed(5.0), top1)) == clean(reason="top1 checked in its place")


def test_a_test_that_did_not_end() -> None:
    answer = ask(measured(timed(5.0), raised="RuntimeError"))
    assert answer == not_measured("the test did not reach its end")


def test_the_profiled_pass_leaves_outputs_to_the_other() -> None:
    answer = ask(measured(timed(5.0, source=Source.DEVICE)))
    why = "only the device was measured: outputs are checked in another pass"
    assert answer == not_measured(why)


def test_a_test_that_measures_nothing() -> None:
    assert ask(measured()) == not_applicable("the test measures nothing")
