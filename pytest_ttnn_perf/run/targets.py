"""Gives tests the targets that a file has for their model, system, batch and length."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.files import LARGEST_TEXT_BYTES, parse_json, read_text
from pytest_ttnn_perf.records.targets import decode_targets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.records.hardware import Hardware, Scalar
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation, Run
    from pytest_ttnn_perf.records.targets import TargetEntry


@cache
def read_targets(file: Path) -> tuple[TargetEntry, ...]:
    """Read a file of targets, once in a run.

    Raises:
        InputError: with file, line and what was expected.
    """
    return parse_json(read_text(file, most_bytes=LARGEST_TEXT_BYTES), decode_targets, file=file)


def with_targets(
    observation: Observation, hardware: Hardware | None, file: Path | None
) -> Observation:
    """Return an observation with its targets; one that the test itself names stays.

    Raises:
        InputError: the file cannot be read.
    """
    hardware = observation.hardware or hardware
    if file is None or hardware is None:
        return observation
    entries = _fitting(observation, hardware, read_targets(file))
    if not entries:
        return observation
    metrics = {name: _aimed(seen, entries) for name, seen in observation.metrics.items()}
    return replace(observation, metrics=metrics)


def _fitting(
    observation: Observation, hardware: Hardware, entries: tuple[TargetEntry, ...]
) -> list[TargetEntry]:
    """Return the entries for a test, the most specific one first, of this very board."""
    facts = _facts(observation)
    fitting = (entry for entry in entries if entry.fits(facts, hardware))
    return sorted(fitting, key=lambda entry: (-entry.specificity, entry.board != hardware.board))


#: What the environment of a test says of its model: its marker, and helpers that it calls.
_DESCRIBED: Final = ("batch", "ml_model_name", "batch_size", "input_sequence_length")


def _facts(observation: Observation) -> Mapping[str, Scalar]:
    """Return what is stated of a test, by its facts, its marker or the helpers that it calls."""
    around = observation.environment
    described = {name: around[name] for name in _DESCRIBED if around.get(name) is not None}
    return {**described, **observation.setting.values}


def _aimed(observed: MetricObservation, entries: list[TargetEntry]) -> MetricObservation:
    if observed.limits.target is not None:
        return observed
    for entry in entries:
        for target in entry.targets:
            goal = target.in_unit_of(observed.metric) if target.is_of(observed.metric) else None
            if goal is not None:
                return replace(observed, limits=replace(observed.limits, target=goal))
    return observed


def unmatched(run: Run, file: Path | None) -> Iterator[str]:
    """Say which targets of the models of a run none of its tests has met."""
    if file is None:
        return
    tests = [judged.observation for judged in run.tests.values()]
    for entry in read_targets(file):
        of_model = [
            (test, hardware)
            for test in tests
            if (hardware := test.hardware or run.hardware) is not None
            and entry.is_for_model(_facts(test), hardware)
        ]
        if not of_model:
            continue
        fitting = [test for test, hardware in of_model if entry.fits(_facts(test), hardware)]
        if not fitting:
            yield f"target of {entry.title}: no test states this batch and length"
            continue
        metrics = [seen.metric for test in fitting for seen in test.metrics.values()]
        for target in entry.targets:
            named = [metric for metric in metrics if target.is_of(metric)]
            if not any(target.in_unit_of(metric) is not None for metric in named):
                unit = f" in {target.unit}" if named else ""
                yield f"target of {entry.title}: no test records {target.names[0]}{unit}"
