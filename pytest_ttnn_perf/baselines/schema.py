"""Baseline files: format 1, as text that merges and diffs line by line."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.records.baseline import (
    BASELINE_FORMAT,
    Accepted,
    BaselineFile,
    MetricBaseline,
    Session,
    TestBaseline,
)
from pytest_ttnn_perf.records.codec import LARGEST_COUNT, Value, decode_format
from pytest_ttnn_perf.records.json import (
    decode_configuration,
    decode_hardware,
    decode_metric,
    decode_scalars,
    encode_hardware,
    encode_metric,
)
from pytest_ttnn_perf.records.metric import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.records.metric import Metric


_NUMBER: Final = frozenset({int, float})


def decode_file(document: object) -> BaselineFile:
    """Decode a baseline file.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    value = Value(document)
    decode_format(value, current=BASELINE_FORMAT, what="a baseline")
    test_file = value.optional("test_file")
    return BaselineFile(
        hardware=decode_hardware(value.field("hardware")),
        tests={name: _decode_test(item) for name, item in value.field("tests").items()},
        test_file=test_file.string() if test_file else None,
    )


def _decode_test(value: Value) -> TestBaseline:
    ops = value.optional("ops")
    return TestBaseline(
        accepted=_decode_accepted(value.field("accepted")),
        metrics={name: _decode_metric(name, item) for name, item in value.field("metrics").items()},
        configuration=decode_configuration(value.optional("configuration")),
        ops=_decode_place(ops) if ops else None,
    )


def _decode_place(value: Value) -> str:
    """Read the place of an op table, which is somewhere below the folder of its key."""
    place = value.string()
    parts = PurePosixPath(place).parts
    if not parts or parts[0] == "/" or ".." in parts or not place.isprintable():
        raise value.refusal("the path of a file within the folder of its key")
    return place


def _decode_accepted(value: Value) -> Accepted:
    commit, reason, ttnn = (value.optional(name) for name in ("commit", "reason", "ttnn"))
    return Accepted(
        at=value.field("at").string(),
        commit=commit.string() if commit else None,
        reason=reason.string() if reason else None,
        ttnn=ttnn.string() if ttnn else None,
        environment=decode_scalars(value.optional("environment")),
    )


def _decode_metric(name: str, value: Value) -> MetricBaseline:
    sessions = value.field("sessions")
    metric = decode_metric(name, value)
    decoded = tuple(_decode_session(item, metric=metric) for item in sessions.array())
    if not decoded:
        raise sessions.refusal("at least one session")
    since = value.optional("since")
    first = since.integer() if since else 0
    if since and first >= len(decoded):
        raise since.refusal(f"an index into the {len(decoded)} sessions")
    return MetricBaseline(metric, decoded, first)


def _decode_session(value: Value, *, metric: Metric) -> Session:
    raw = value.raw
    if not isinstance(raw, list) or len(raw) != 3:
        raise value.refusal("a session: [median, MAD, n]")
    median, mad, n = raw
    least = 0.0 if metric.compared_by_ratio else -LARGEST
    # Most sessions are right, and there are thousands: look closer only at those that are not.
    numbers = type(median) in _NUMBER and type(mad) in _NUMBER and type(n) is int
    if numbers and least < median <= LARGEST and 0 <= mad <= LARGEST and 1 <= n <= LARGEST_COUNT:
        # Floats for what is compared by ratio, which is quicker; a checksum stays whole.
        return Session(float(median), float(mad), n) if least == 0 else Session(median, mad, n)
    return _decode_odd_session(value, metric=metric)


def _decode_odd_session(value: Value, *, metric: Metric) -> Session:
    """Read a session number by number, to say which of them is not what it should be."""
    median, mad, n = value.array()
    if metric.compared_by_ratio and median.number() <= 0:
        raise median.refusal(f"a {metric.kind.value} above 0")
    if mad.number() < 0:
        raise mad.refusal("a spread of at least 0")
    return Session(median.number(), mad.number(), n.integer(at_least=1))


def encode_text(file: BaselineFile) -> str:
    """Lay a baseline file out: sorted, one line per session, so that a diff is what changed."""
    return "\n".join(_file_lines(file)) + "\n"


def _file_lines(file: BaselineFile) -> Iterator[str]:
    yield "{"
    yield f'  "format": {BASELINE_FORMAT},'
    yield f'  "hardware": {_inline(encode_hardware(file.hardware))},'
    if file.test_file is not None:
        yield f'  "test_file": {json.dumps(file.test_file)},'
    yield from _members("tests", {n: _test_lines(t) for n, t in file.tests.items()}, indent=2)
    yield "}"


def _test_lines(test: TestBaseline) -> Iterator[str]:
    accepted = test.accepted
    provenance: dict[str, object] = {
        "at": accepted.at,
        "commit": accepted.commit,
        "reason": accepted.reason,
        "ttnn": accepted.ttnn,
    }
    if accepted.environment:
        provenance["environment"] = dict(accepted.environment)
    yield f'      "accepted": {_inline(provenance)},'
    yield f'      "configuration": {_inline(dict(test.configuration.values))},'
    metrics = {name: _metric_lines(metric) for name, metric in test.metrics.items()}
    lines = list(_members("metrics", metrics, indent=6))
    if test.ops is None:
        yield from lines
    else:
        yield from lines[:-1]
        yield lines[-1] + ","
        yield f'      "ops": {json.dumps(test.ops)}'


def _metric_lines(baseline: MetricBaseline) -> Iterator[str]:
    members = encode_metric(baseline.metric)
    yield (
        f'          "better": {json.dumps(members["better"])},'
        f' "kind": {json.dumps(members["kind"])}, "sessions": ['
    )
    last = len(baseline.sessions) - 1
    for index, session in enumerate(baseline.sessions):
        comma = "" if index == last else ","
        numbers = [_shortest(session.median), _shortest(session.mad), session.n]
        yield f"            {json.dumps(numbers)}{comma}"
    yield (
        f'          ], "since": {baseline.since}, "source": {json.dumps(members["source"])},'
        f' "unit": {json.dumps(members["unit"])}'
    )


def _shortest(number: float) -> float:
    """Return a whole number as one: what differs in the file then differs in value."""
    return int(number) if number == int(number) and abs(number) < 1e15 else number


def _members(name: str, members: Mapping[str, Iterator[str]], *, indent: int) -> Iterator[str]:
    """Lay out an object whose members take several lines each."""
    pad = " " * indent
    if not members:
        yield f'{pad}"{name}": {{}}'
        return
    yield f'{pad}"{name}": {{'
    for index, key in enumerate(sorted(members)):
        yield f"{pad}  {json.dumps(key)}: {{"
        yield from members[key]
        yield f"{pad}  }}" if index == len(members) - 1 else f"{pad}  }},"
    yield f"{pad}}}"


def _inline(members: Mapping[str, object]) -> str:
    return json.dumps(members, sort_keys=True)
