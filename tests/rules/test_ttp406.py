from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rules.answers import Ask, Subject, clean, found, limit, not_measured
from tests.rules.observations import measured

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

ask = Ask("TTP406")
LIMIT = limit(1, "programs")
VARIABLE = "TT_RUNTIME_ENABLE_PROGRAM_CACHE"


def counted(entries: int) -> Subject:
    return measured(
        environment={"program_cache_entries_after": entries}, facts={"program_cache": 1}
    )


def test_a_cache_that_stays_empty_is_found_whatever_is_stated() -> None:
    assert ask(counted(0)) == LIMIT.found(
        0.0, "after the samples the program cache held 0 programs"
    )


def test_one_program_is_clean() -> None:
    assert ask(counted(1)) == LIMIT.clean(1.0)


@pytest.mark.parametrize(
    ("name", "value", "on"),
    [
        ("program_cache", True, True),
        ("program_cache", False, False),
        (VARIABLE, None, True),
        (VARIABLE, "1", True),
        (VARIABLE, "0", False),
    ],
)
def test_what_is_stated(name: str, value: Scalar, on: bool) -> None:
    expected = (
        clean(reason=f"{name} says that it is on")
        if on
        else found(f"{name} says that the program cache is off")
    )
    assert ask(facts={name: value}) == expected


@pytest.mark.parametrize(
    "subject", [Subject(facts={"use_trace": True}), measured(facts={"use_trace": True})]
)
def test_what_nobody_tells_is_not_measured(subject: Subject) -> None:
    assert ask(subject) == not_measured(
        "nothing is known of the program cache: no device was open, or it does not count its "
        "programs; state the fact program_cache"
    )


@pytest.mark.parametrize("subject", [Subject(), measured()])
def test_without_a_device_it_is_not_measured(subject: Subject) -> None:
    assert ask(subject) == not_measured("needs a device, or facts that are stated about one")
