"""Targets for models from a file, and the tests that they fit."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import Omit, Value, decode, decode_format, encode
from pytest_ttnn_perf.core.files import LARGEST_TEXT_BYTES, parse_json, read_text
from pytest_ttnn_perf.core.metric import Kind, Metric, split_metric
from pytest_ttnn_perf.core.text import NANOSECONDS_IN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Hardware, Scalar
    from pytest_ttnn_perf.core.observation import MetricObservation, Observation

#: The version of the file that this code writes.
TARGETS_FORMAT: Final = 1


class Target(Struct, frozen=True):
    """A goal for one metric, under any of its names."""

    names: tuple[str, ...]
    value: float
    unit: str = ""

    def is_of(self, metric: Metric) -> bool:
        """Return whether it is a goal for a metric."""
        return metric.name in self.names or split_metric(metric.name)[0] in self.names

    def in_unit_of(self, metric: Metric) -> float | None:
        """Return the goal in the unit of a metric, if they fit."""
        if self.unit == metric.unit:
            return self.value
        if self.unit in NANOSECONDS_IN and metric.unit in NANOSECONDS_IN:
            return self.value * NANOSECONDS_IN[self.unit] / NANOSECONDS_IN[metric.unit]
        # The same rate under the same name: t/s, tok/s, tokens/s.
        both = {Kind.of_unit(self.unit), metric.kind}
        return self.value if both == {Kind.THROUGHPUT} else None


class TargetEntry(Struct, frozen=True):
    """The goals for a model on a system; None matches anything.

    ``models`` are its names, of which a test states one.
    """

    models: tuple[str, ...]
    arch: str
    targets: tuple[Target, ...]
    board: Omit[str | None] = None
    batch: Omit[int | None] = None
    input_sequence_length: Omit[int | None] = None

    def fits(self, facts: Mapping[str, Scalar], hardware: Hardware) -> bool:
        """Return whether it holds for a test."""
        model = _fact(facts, "model", "model_name", "ml_model_name")
        named = isinstance(model, str) and model.lower() in {name.lower() for name in self.models}
        boards = {None, hardware.board, _ALSO.get(hardware.board)}
        batch = _fact(facts, "batch", "batch_size")
        length = _fact(facts, "input_sequence_length", "isl", "sequence_length", "seq_len")
        return (
            named
            and hardware.arch == self.arch
            and self.board in boards
            and self.batch in {None, batch}
            and self.input_sequence_length in {None, length}
        )

    @property
    def specificity(self) -> int:
        """The number of conditions that it names."""
        return sum(
            part is not None for part in (self.board, self.batch, self.input_sequence_length)
        )


#: Both systems are a Galaxy to most who set targets; who names tg means that one alone.
_ALSO: Final = {"tg": "galaxy"}


def _fact(facts: Mapping[str, Scalar], *names: str) -> Scalar:
    return next((facts[name] for name in names if facts.get(name) is not None), None)


class _File(Struct, frozen=True):
    targets: tuple[TargetEntry, ...]


def decode_targets(document: object) -> tuple[TargetEntry, ...]:
    """Decode a file of targets.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    decode_format(Value(document), current=TARGETS_FORMAT, what="a file of targets")
    return decode(_File, document).targets


def encode_targets(entries: Iterable[TargetEntry]) -> dict[str, object]:
    """Encode a file of targets."""
    return {"format": TARGETS_FORMAT, **encode(_File(tuple(entries)))}


@cache
def read_targets(file: Path) -> tuple[TargetEntry, ...]:
    """Read a file of targets, once in a run.

    Raises:
        InputError: it is not such a file.
    """
    return parse_json(read_text(file, most_bytes=LARGEST_TEXT_BYTES), decode_targets, file=file)


def with_targets(observation: Observation, hardware: Hardware | None, file: Path) -> Observation:
    """Add targets to an observation, unless the test names them.

    Raises:
        InputError: the file cannot be read.
    """
    hardware = observation.hardware or hardware
    if hardware is None:
        return observation
    facts = _facts(observation)
    fitting = [entry for entry in read_targets(file) if entry.fits(facts, hardware)]
    # The most specific one first, of this very board.
    fitting.sort(key=lambda entry: (-entry.specificity, entry.board != hardware.board))
    metrics = {name: _aimed(seen, fitting) for name, seen in observation.metrics.items()}
    return replace(observation, metrics=metrics) if fitting else observation


#: The facts of the environment that describe a model.
_DESCRIBED: Final = ("batch", "ml_model_name", "batch_size", "input_sequence_length")


def _facts(observation: Observation) -> Mapping[str, Scalar]:
    around = observation.environment
    described = {name: around[name] for name in _DESCRIBED if around.get(name) is not None}
    return {**described, **observation.setting}


def _aimed(observed: MetricObservation, entries: list[TargetEntry]) -> MetricObservation:
    if observed.limits.target is not None:
        return observed
    for entry in entries:
        for target in entry.targets:
            goal = target.in_unit_of(observed.metric) if target.is_of(observed.metric) else None
            if goal is not None:
                return replace(observed, limits=replace(observed.limits, target=goal))
    return observed
