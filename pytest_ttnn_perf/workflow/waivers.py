"""Waivers that hide nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.finding import NeedlessWaiver, RuleOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.settings import Settings

#: What was not measured here may well be found elsewhere.
_NOTHING: Final = frozenset({RuleOutcome.CLEAN, RuleOutcome.NOT_APPLICABLE})


def needless_waivers(tests: Sequence[JudgedTest], settings: Settings) -> Iterator[NeedlessWaiver]:
    """Yield the waivers of tests and of the configuration that name no rule, or found nothing."""
    outcomes: dict[str, set[RuleOutcome]] = defaultdict(set)
    for judged in tests:
        for code, outcome in judged.observation.outcomes.items():
            outcomes[code].add(outcome)
        yield from _of_test(judged)
    for code, rule in settings.rules.items():
        if rule.waive is not None and outcomes[code] and outcomes[code] <= _NOTHING:
            yield NeedlessWaiver(code, None, known=True)


def _of_test(judged: JudgedTest) -> Iterator[NeedlessWaiver]:
    observation = judged.observation
    outcomes = observation.outcomes
    if not observation.waived or not outcomes:
        return
    from pytest_ttnn_perf.checklist.registry import RULES

    known = {rule.code for rule in RULES}
    for code in observation.waived:
        if code not in known or outcomes.get(code) in _NOTHING:
            yield NeedlessWaiver(code, observation.test, known=code in known)
