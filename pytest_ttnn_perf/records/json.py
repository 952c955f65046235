"""Metrics, hardware and configuration: the parts that run records and baselines share."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.errors import DecodeError
from pytest_ttnn_perf.records.codec import Value, decode_format
from pytest_ttnn_perf.records.finding import Evidence, Finding, RuleOutcome, Severity, Unanswered
from pytest_ttnn_perf.records.hardware import Configuration, Environment, Hardware
from pytest_ttnn_perf.records.metric import LARGEST, Better, Kind, Metric, Source
from pytest_ttnn_perf.records.observation import (
    NO_LIMITS,
    RUN_FORMAT,
    Coverage,
    JudgedTest,
    Limits,
    Location,
    MetricObservation,
    Observation,
    Run,
)
from pytest_ttnn_perf.records.ops import decode_groups, encode_groups
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Shift, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ttnn_perf.records.hardware import Scalar


def encode_metric(metric: Metric) -> dict[str, object]:
    """Encode all but the name, which is the member's key."""
    return {
        "unit": metric.unit,
        "better": metric.better.value,
        "kind": metric.kind.value,
        "source": metric.source.value,
    }


def decode_metric(name: str, value: Value) -> Metric:
    """Decode a metric; ``kind`` follows the unit where that tells, and else is ``time``."""
    unit = value.field("unit").string()
    kind = value.optional("kind")
    better = value.optional("better")
    source = value.optional("source")
    decoded_kind = kind.one_of(Kind) if kind else Kind.of_unit(unit) or Kind.TIME
    return Metric(
        name=name,
        unit=unit,
        better=better.one_of(Better) if better else decoded_kind.usual_direction,
        kind=decoded_kind,
        source=source.one_of(Source) if source else Source.WALL,
    )


def encode_hardware(hardware: Hardware) -> dict[str, object]:
    """Encode hardware; a host has no mesh."""
    encoded: dict[str, object] = {"arch": hardware.arch, "board": hardware.board}
    if hardware.mesh is not None:
        encoded["mesh"] = hardware.mesh
    return encoded


def decode_hardware(value: Value) -> Hardware:
    """Decode hardware; an absent, null or empty mesh means none."""
    mesh = value.optional("mesh")
    return Hardware(
        arch=value.field("arch").string(),
        board=value.field("board").string(),
        mesh=(mesh.string() or None) if mesh else None,
    )


def decode_scalars(value: Value | None) -> Mapping[str, Scalar]:
    """Decode a flat object of facts or configuration."""
    return {name: member.scalar() for name, member in value.items()} if value else {}


def decode_configuration(value: Value | None) -> Configuration:
    """Decode a configuration; absent means empty."""
    return Configuration(decode_scalars(value))


def encode_environment(environment: Environment) -> dict[str, object]:
    """Encode what is known of the environment."""
    named = ((field.name, getattr(environment, field.name)) for field in fields(environment))
    return {name: known for name, known in named if known is not None}


def decode_environment(value: Value | None) -> Environment:
    """Decode the fields this version knows, where they are as it writes them.

    Nothing is judged by the environment, and other producers describe theirs as they like.
    """
    if value is None:
        return Environment()
    known = {field.name: str(field.type) for field in fields(Environment)}
    return Environment(
        **{name: _typed(member, known[name]) for name, member in value.items() if name in known}
    )


def _typed(value: Value, annotation: str) -> Any:
    readers: dict[str, Callable[[], Scalar]] = {
        "bool": value.boolean,
        "int": value.integer,
        "float": value.number,
    }
    try:
        return readers.get(annotation.removesuffix(" | None"), value.string)()
    except DecodeError:
        return None


def encode_verdict(verdict: Verdict) -> dict[str, object]:
    """Encode all but the metric's name, which is the member's key."""
    return {
        **encode_metric(verdict.metric),
        "outcome": verdict.outcome.value,
        "reason": verdict.reason.value if verdict.reason else None,
        "detail": verdict.detail,
        "observed": verdict.observed,
        "centre": verdict.centre,
        "change": verdict.change,
        "limit": verdict.limit,
        "provisional": verdict.provisional,
        "samples": verdict.samples,
        "sessions": verdict.sessions,
        "confirmed": list(verdict.confirmed),
        "bound": verdict.bound,
    }


def decode_verdict(name: str, value: Value) -> Verdict:
    """Decode the verdict of the metric ``name``."""
    reason = value.optional("reason")
    confirmed = value.optional("confirmed")
    return Verdict(
        # Other producers need not repeat the definition beside a verdict.
        metric=decode_metric(name, value) if value.optional("unit") else Metric(name, unit=""),
        outcome=value.field("outcome").one_of(Outcome),
        reason=reason.one_of(Reason) if reason else None,
        detail=_string(value, "detail"),
        observed=_number(value, "observed"),
        centre=_number(value, "centre"),
        change=_number(value, "change"),
        limit=_number(value, "limit"),
        provisional=_flag(value, "provisional"),
        samples=_count(value, "samples"),
        sessions=_count(value, "sessions"),
        confirmed=tuple(item.number() for item in confirmed.array()) if confirmed else (),
        bound=_number(value, "bound"),
    )


def encode_finding(finding: Finding) -> dict[str, object]:
    """Encode a finding with its evidence; what is not known is left out."""
    encoded = {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "outcome": finding.outcome.value,
        "reason": finding.reason,
        "value": finding.value,
        "limit": finding.limit,
        "unit": finding.unit,
        "evidence": [_encode_evidence(item) for item in finding.evidence],
        "fix": finding.fix,
        "waived": finding.waived,
    }
    return {name: value for name, value in encoded.items() if value not in (None, "", [])}


def decode_finding(value: Value) -> Finding:
    """Decode a finding."""
    evidence = value.optional("evidence")
    return Finding(
        code=value.field("code").string(),
        name=value.field("name").string(),
        severity=value.field("severity").one_of(Severity),
        outcome=value.field("outcome").one_of(RuleOutcome),
        reason=_string(value, "reason"),
        value=_number(value, "value"),
        limit=_number(value, "limit"),
        unit=_string(value, "unit") or "",
        evidence=tuple(_decode_evidence(item) for item in evidence.array()) if evidence else (),
        fix=_string(value, "fix"),
        waived=_string(value, "waived"),
    )


def encode_unanswered(unanswered: Unanswered) -> dict[str, object]:
    """Encode why rules have no answer."""
    return {
        "outcome": unanswered.outcome.value,
        "reason": unanswered.reason,
        "codes": list(unanswered.codes),
    }


def decode_unanswered(value: Value) -> Unanswered:
    """Decode why rules have no answer."""
    return Unanswered(
        value.field("outcome").one_of(RuleOutcome),
        value.field("reason").string(),
        value.field("codes").strings(),
    )


def _encode_evidence(evidence: Evidence) -> dict[str, object]:
    told = {"subject": evidence.subject, "value": evidence.value, "unit": evidence.unit}
    return {**told} if evidence.share is None else {**told, "share": evidence.share}


def _decode_evidence(value: Value) -> Evidence:
    return Evidence(
        subject=value.field("subject").string(),
        value=_number(value, "value"),
        unit=_string(value, "unit") or "",
        share=_number(value, "share"),
    )


def _string(value: Value, name: str) -> str | None:
    member = value.optional(name)
    return member.string() if member else None


def _number(value: Value, name: str) -> float | None:
    member = value.optional(name)
    return member.number() if member else None


def _count(value: Value, name: str) -> int:
    member = value.optional(name)
    return member.integer() if member else 0


def _flag(value: Value, name: str) -> bool:
    member = value.optional(name)
    return member.boolean() if member else False


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


def encode_coverage(coverage: Coverage) -> dict[str, object]:
    """Encode what was collected."""
    return {
        "places": list(coverage.places),
        "others": list(coverage.others),
        "unasked": list(coverage.unasked),
    }


def decode_coverage(value: Value) -> Coverage:
    """Decode it."""
    others, unasked = value.optional("others"), value.optional("unasked")
    return Coverage(
        places=tuple(item.string() for item in value.field("places").array()),
        others=tuple(item.string() for item in others.array()) if others else (),
        unasked=unasked.strings() if unasked else (),
    )


def encode_run(run: Run) -> dict[str, object]:
    """Encode a run, its observations and its verdicts."""
    return {**encode_heading(run), "tests": {n: encode_test(t) for n, t in run.tests.items()}}


def encode_heading(run: Run) -> dict[str, object]:
    """Encode what is known of a run before its first test."""
    return {
        "format": RUN_FORMAT,
        "id": run.id,
        "hardware": encode_hardware(run.hardware) if run.hardware else None,
        "environment": encode_environment(run.environment),
        "label": run.label,
        **({} if run.complete else {"complete": False}),
        **({"shift": asdict(run.shift)} if run.shift else {}),
        **({"collected": encode_coverage(run.coverage)} if run.coverage else {}),
    }


def encode_test(
    judged: JudgedTest, *, verdicts_with: Mapping[str, Mapping[str, object]] | None = None
) -> dict[str, object]:
    """Encode one test of a run; ``verdicts_with`` adds fields to the verdict of a metric."""
    added = verdicts_with or {}
    verdicts = {
        verdict.metric.name: {**encode_verdict(verdict), **added.get(verdict.metric.name, {})}
        for verdict in judged.verdicts
    }
    encoded = {**encode_observation(judged.observation), "verdicts": verdicts}
    if judged.written:
        encoded["written"] = sorted(judged.written)
    if judged.by_op is not None:
        encoded["by_op"] = judged.by_op
    return encoded


def decode_run(document: object) -> Run:
    """Decode a run record, of this program or of any other producer.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    value = Value(document)
    decode_format(value, current=RUN_FORMAT, what="a run record")
    hardware = value.optional("hardware")
    label = value.optional("label")
    identifier = value.optional("id")
    complete = value.optional("complete")
    shift = value.optional("shift")
    coverage = value.optional("collected")
    run = Run(
        hardware=decode_hardware(hardware) if hardware else None,
        tests={name: decode_test(name, item) for name, item in value.field("tests").items()},
        environment=decode_environment(value.optional("environment")),
        label=label.string() if label else None,
        id=identifier.string() if identifier else None,
        complete=complete.boolean() if complete else True,
        shift=_decode_shift(shift) if shift else None,
        coverage=decode_coverage(coverage) if coverage else None,
    )
    if run.hardware is None:
        for name, item in value.field("tests").items():
            if run.tests[name].observation.hardware is None:
                decode_hardware(item.field("hardware"))  # neither here nor at the top: refused
    return run


def _decode_shift(value: Value) -> Shift:
    differences = value.optional("differences")
    return Shift(
        change=value.field("change").number(),
        moved=value.field("moved").integer(),
        voting=value.field("voting").integer(),
        differences=differences.strings() if differences else (),
    )


def decode_test(test: str, value: Value) -> JudgedTest:
    """Decode one test of a run with the verdicts it was given, if any."""
    verdicts = value.optional("verdicts")
    written = value.optional("written")
    by_op = value.optional("by_op")
    return JudgedTest(
        observation=decode_observation(test, value),
        verdicts=tuple(decode_verdict(n, item) for n, item in verdicts.items()) if verdicts else (),
        written=frozenset(written.strings()) if written else frozenset(),
        by_op=by_op.string() if by_op else None,
    )
