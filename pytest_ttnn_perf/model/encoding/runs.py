"""The run record: one JSON document for a whole run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.encoding.coverage import decode_coverage, encode_coverage
from pytest_ttnn_perf.model.encoding.metrics import (
    decode_environment,
    decode_hardware,
    encode_environment,
    encode_hardware,
)
from pytest_ttnn_perf.model.encoding.observations import decode_observation, encode_observation
from pytest_ttnn_perf.model.encoding.value import Value, decode_format
from pytest_ttnn_perf.model.encoding.verdicts import decode_verdict, encode_verdict
from pytest_ttnn_perf.model.observation import RUN_FORMAT, JudgedTest, Run
from pytest_ttnn_perf.model.shift import Shift

if TYPE_CHECKING:
    from collections.abc import Mapping


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
