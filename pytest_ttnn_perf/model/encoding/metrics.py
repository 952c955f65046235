"""Metrics, hardware and configuration: the parts that run records and baselines share."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf._support.errors import DecodeError
from pytest_ttnn_perf.model.hardware import Configuration, Environment, Hardware
from pytest_ttnn_perf.model.metric import Better, Kind, Metric, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ttnn_perf.model.encoding.value import Value
    from pytest_ttnn_perf.model.hardware import Scalar


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
