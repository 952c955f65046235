"""A machine that is slow, or fast, as a whole: found, explained, and taken out of the verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.gate.shift import explained, shift_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.hardware import Environment, Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.shift import Shift

#: A load above this share of the processors means that others were at work.
_BUSY: Final = 0.5
_WORDS: Final = {"host_hash": "host", "cpu_count": "processors", "system": "kernel"}


def assess(
    tests: Mapping[str, JudgedTest],
    store: BaselineStore,
    *,
    hardware: Hardware | None,
    environment: Environment,
) -> Shift | None:
    """Return how the machine has shifted since the baselines were accepted; None if it has not."""
    shift = shift_of(judged.verdicts for judged in tests.values())
    if shift is None:
        return None
    differs = differences(tests, store, hardware=hardware, environment=environment)
    return replace(shift, differences=(*differs, *_load(environment)))


def differences(
    tests: Mapping[str, JudgedTest],
    store: BaselineStore,
    *,
    hardware: Hardware | None,
    environment: Environment,
) -> tuple[str, ...]:
    """Return what is not as it was when the baselines of these tests were accepted."""
    found: Counter[str] = Counter()
    compared = 0
    for name, judged in tests.items():
        own = judged.observation.hardware or hardware
        baseline = store.find(own, name) if own else None
        if baseline is not None:
            compared += 1
            then = {**baseline.accepted.environment, "ttnn": baseline.accepted.ttnn}
            found.update(_differences(environment, then))
    # Told of most baselines, it can explain most of what is compared with them.
    return tuple(text for text, count in found.most_common() if count >= compared / 2)


def relabelled(judged: JudgedTest, shift: Shift) -> JudgedTest:
    """Return a judged test without the suspicions that the machine explains."""
    return replace(judged, verdicts=explained(judged.verdicts, shift))


def _differences(now: Environment, then: Mapping[str, object]) -> Iterator[str]:
    current = {**now.lasting, "ttnn": now.ttnn}
    for name, value in then.items():
        if value is not None and current.get(name) != value:
            word, found = _WORDS.get(name, name), current.get(name)
            said = f"no {word}" if found is None else f"{word} {found}"
            yield f"{said}, at the baselines {value}"


def _load(environment: Environment) -> Iterator[str]:
    load, processors = environment.load_1m, environment.cpu_count
    if load is not None and processors and load > _BUSY * processors:
        yield f"load {load:g} on {processors} processors when the run began"
