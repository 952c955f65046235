from __future__ import annotations

from tests.rules.answers import Ask, Evidence, limit, not_measured
from tests.rules.observations import accuracy, measured, timed

ask = Ask("TTP906")
LIMIT = limit(0.99, "PCC")


def test_lowered_limits_the_lowest_first() -> None:
    subject = measured(
        accuracy(0.999, at_least=0.98),
        accuracy(0.999, name="cache_pcc", at_least=0.9),
        accuracy(0.999, name="logits_pcc"),
    )
    assert ask(subject) == LIMIT.found(
        0.9,
        "cache_pcc needs 0.9 only; pcc needs 0.98 only",
        [Evidence("cache_pcc", 0.9, "PCC"), Evidence("pcc", 0.98, "PCC")],
    )


def test_a_limit_at_the_usual_is_clean() -> None:
    expected = LIMIT.clean(0.99)
    assert ask(measured(accuracy(0.5, at_least=0.99))) == expected
    assert ask(measured(accuracy(0.5))) == expected


def test_without_a_pcc() -> None:
    assert ask(measured(timed(5.0))) == not_measured("the test checks no PCC")
