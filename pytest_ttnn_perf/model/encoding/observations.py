"""Observations as plain JSON: what a worker attaches to a report and a run record holds."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.encoding.metrics import (
    decode_configuration,
    decode_hardware,
    decode_metric,
    decode_scalars,
    encode_hardware,
    encode_metric,
)
from pytest_ttnn_perf.model.encoding.op_groups import decode_groups, encode_groups
from pytest_ttnn_perf.model.encoding.verdicts import (
    decode_finding,
    decode_unanswered,
    encode_finding,
    encode_unanswered,
)
from pytest_ttnn_perf.model.metric import LARGEST, Source
from pytest_ttnn_perf.model.observation import (
    NO_LIMITS,
    Limits,
    Location,
    MetricObservation,
    Observation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ttnn_perf.model.encoding.value import Value

_LIMITS: Final = tuple(field.name for field in fields(Limits))
#: What may have gone wrong with a test, or holds it back, each in a sentence.
_TEXTS: Final = ("raised", "lost", "unconfirmed", "bottleneck", "model_kind")
_FLAGS: Final = ("dropped", "has_kernels")
_NUMBER: Final = frozenset({int, float})


def encode_observation(observation: Observation) -> dict[str, object]:
    """Encode all but the test's id, which is the member's key."""
    encoded: dict[str, object] = {
        "metrics": {name: _encode_metric(item) for name, item in observation.metrics.items()},
        "configuration": dict(observation.configuration.values),
        "facts": dict(observation.facts),
        "ops": encode_groups(observation.ops) if observation.ops else None,
        "waived": dict(observation.waived),
        "findings": [encode_finding(item) for item in observation.findings],
        "unanswered": [encode_unanswered(item) for item in observation.unanswered],
    }
    if observation.hardware is not None:
        encoded["hardware"] = encode_hardware(observation.hardware)
    if observation.location is not None:
        encoded["location"] = _encode_location(observation.location)
    if observation.environment:
        encoded["environment"] = dict(observation.environment)
    if observation.left_out:
        encoded["left_out"] = [source.value for source in observation.left_out]
    if observation.problems:
        encoded["problems"] = list(observation.problems)
    told = {name: getattr(observation, name) for name in (*_FLAGS, *_TEXTS)}
    # An empty text is one: a test that raised without a word has raised.
    return encoded | {name: v for name, v in told.items() if v not in (None, False)}


def decode_observation(test: str, value: Value) -> Observation:
    """Decode what ``test`` observed; only ``metrics`` must be there."""
    hardware = value.optional("hardware")
    ops = value.optional("ops")
    waived = value.optional("waived")
    findings = value.optional("findings")
    unanswered = value.optional("unanswered")
    problems = value.optional("problems")
    left_out = value.optional("left_out")
    location = value.optional("location")
    texts = {name: text.string() for name in _TEXTS if (text := value.optional(name))}
    flags = {name: flag.boolean() for name in _FLAGS if (flag := value.optional(name))}
    return Observation(
        test=test,
        metrics={name: _decode_metric(name, item) for name, item in value.field("metrics").items()},
        hardware=decode_hardware(hardware) if hardware else None,
        configuration=decode_configuration(value.optional("configuration")),
        facts=decode_scalars(value.optional("facts")),
        ops=decode_groups(ops) if ops else None,
        environment=decode_scalars(value.optional("environment")),
        waived=_strings(waived),
        findings=tuple(map(decode_finding, findings.array())) if findings else (),
        unanswered=tuple(map(decode_unanswered, unanswered.array())) if unanswered else (),
        problems=problems.strings() if problems else (),
        left_out=tuple(item.one_of(Source) for item in left_out.array()) if left_out else (),
        location=_decode_location(location) if location else None,
        **texts,  # type: ignore[arg-type]  # none of these names is a flag
        **flags,  # type: ignore[arg-type]  # nor a text
    )


def _encode_location(location: Location) -> dict[str, object]:
    line = {} if location.line is None else {"line": location.line}
    return {"file": location.file, **line}


def _decode_location(value: Value) -> Location:
    line = value.optional("line")
    return Location(value.field("file").string(), line.integer(at_least=1) if line else None)


def _strings(value: Value | None) -> Mapping[str, str]:
    return {name: item.string() for name, item in value.items()} if value else {}


def _encode_metric(observed: MetricObservation) -> dict[str, object]:
    encoded = encode_metric(observed.metric)
    encoded["samples"] = _encode_samples(observed.samples)
    encoded["confirmations"] = [_encode_samples(samples) for samples in observed.confirmations]
    if observed.warmup:
        encoded["warmup"] = _encode_samples(observed.warmup)
    if observed.limits is not NO_LIMITS:
        for name in _LIMITS:
            limit = getattr(observed.limits, name)
            if limit is not None:
                encoded[name] = limit
    if not observed.gated:
        encoded["gated"] = False
    if observed.note is not None:
        encoded["note"] = observed.note
    return encoded


def _decode_metric(name: str, value: Value) -> MetricObservation:
    confirmations = value.optional("confirmations")
    warmup = value.optional("warmup")
    gated = value.optional("gated")
    note = value.optional("note")
    members = value.members()
    limits = {key: value.field(key).number() for key in _LIMITS if members.get(key) is not None}
    return MetricObservation(
        metric=decode_metric(name, value),
        samples=_decode_samples(value.field("samples")),
        confirmations=(
            tuple(_decode_samples(item) for item in confirmations.array()) if confirmations else ()
        ),
        warmup=_decode_samples(warmup) if warmup else (),
        limits=Limits(**limits) if limits else NO_LIMITS,
        gated=gated.boolean() if gated else True,
        note=note.string() if note else None,
    )


def _encode_samples(samples: Iterable[float]) -> list[float | None]:
    return [sample if -LARGEST <= sample <= LARGEST else None for sample in samples]


def _decode_samples(value: Value) -> tuple[float, ...]:
    raw = value.raw
    # Most samples are numbers, and there are many: look closer only where one is not.
    if not isinstance(raw, list) or not set(map(type, raw)) <= _NUMBER:
        return tuple(item.sample() for item in value.array())
    if raw and not -LARGEST <= min(raw) <= max(raw) <= LARGEST:
        return tuple(item.sample() for item in value.array())
    return tuple(raw)
