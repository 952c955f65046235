from __future__ import annotations

import math

import pytest

from pytest_ttnn_perf.core.metric import Better
from tests.rules.answers import Ask, Evidence, clean, limit, not_measured
from tests.rules.observations import accuracy, measured, timed

ask = Ask("TTP901")
LIMIT = limit(0.99, "PCC")


def test_a_pcc_below_its_limit() -> None:
    assert ask(measured(accuracy(0.999, 0.98, at_least=0.99))) == LIMIT.found(
        0.98, "pcc is 0.98, below 0.99", [Evidence("pcc", 0.98, "PCC")]
    )


def test_several_the_worst_first() -> None:
    subject = measured(
        accuracy(0.985, name="pcc"),
        accuracy(0.9, name="logits_pcc", at_least=0.97),
        accuracy(1.0, name="cache_pcc"),
        accuracy(math.nan, name="pcc_states", note="both sides have shape (0,) and no element"),
    )
    answer = ask(subject)
    assert answer.reason == (
        "pcc_states does not exist: both sides have shape (0,) and no element; "
        "logits_pcc is 0.9, below 0.97; pcc is 0.985, below 0.99"
    )
    assert (answer.value, answer.limit) == (None, 0.99)
    assert answer.evidence == (
        Evidence("pcc_states", None, "PCC"),
        Evidence("logits_pcc", 0.9, "PCC"),
        Evidence("pcc", 0.985, "PCC"),
    )


def test_a_pcc_that_does_not_exist_is_below_every_limit() -> None:
    answer = ask(measured(accuracy(math.nan, at_least=-1.0)))
    assert answer.reason == "pcc does not exist: it is not a number"


@pytest.mark.parametrize("at_least", [None, 0.99])
def test_a_pcc_at_its_limit_is_clean(at_least: float | None) -> None:
    assert ask(measured(accuracy(0.99, at_least=at_least))) == LIMIT.clean(0.99)


def test_a_limit_of_the_test_replaces_the_usual() -> None:
    assert ask(measured(accuracy(0.95, at_least=0.9))) == clean(0.95, limit=0.9, unit="PCC")
    higher = ask(measured(accuracy(0.995, at_least=0.999)))
    assert higher.reason == "pcc is 0.995, below 0.999"


def test_a_pcc_of_any_name_is_known_by_the_errors_beside_it() -> None:
    beside = accuracy(0.1, name="logits_max_abs_error", better=Better.LOWER)
    answer = ask(measured(accuracy(0.5, name="logits"), beside))
    assert answer.reason == "logits is 0.5, below 0.99"


def test_other_accuracies_are_none_of_its_business() -> None:
    top1 = accuracy(0.7, name="top1", at_least=0.75)
    assert ask(measured(top1, timed(5.0))) == not_measured("the test checks no PCC")
