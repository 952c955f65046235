from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from pytest_ttnn_perf.core.finding import Evidence, Severity, Subject
from pytest_ttnn_perf.core.observation import Requester
from tests.rules.answers import Ask, clean, not_applicable, not_measured
from tests.rules.observations import measured, timed

ask = Ask("TTP017")


def asked_by(asked: Requester | None, subject: Subject) -> Subject:
    assert subject.observation is not None
    return replace(subject, observation=replace(subject.observation, asked=asked))


def ungated(asked: Requester | None) -> Subject:
    subject = asked_by(asked, measured(timed(5.0)))
    observation = subject.observation
    assert observation is not None
    metrics = {
        name: replace(observed, gated=False, why_ungated="a compile time")
        for name, observed in observation.metrics.items()
    }
    return replace(subject, observation=replace(observation, metrics=metrics))


@pytest.mark.parametrize(
    ("asked", "severity"), [(Requester.TEST, None), (Requester.PROJECT, Severity.WARNING)]
)
def test_nothing_is_gated(asked: Requester, severity: Severity | None) -> None:
    answer = rule_of("TTP017").check(ungated(asked))

    assert answer.reason == "1 number recorded, none of them gated"
    assert answer.severity is severity
    assert answer.evidence == (Evidence("wall_time: a compile time"),)


def test_something_is_gated() -> None:
    assert ask(asked_by(Requester.TEST, measured(timed(5.0)))) == clean()


def test_nobody_asked() -> None:
    assert ask(ungated(None)) == not_applicable("nobody asked for this test by name")


def test_nothing_was_recorded() -> None:
    answer = ask(asked_by(Requester.TEST, measured()))
    assert answer == not_measured("the test recorded nothing")
