"""Baseline files: format 1, as text that merges and diffs line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ttnn_perf.records.baseline import (
    BASELINE_FORMAT,
    BaselineFile,
    MetricBaseline,
    TestBaseline,
)
from pytest_ttnn_perf.records.codec import Value, decode_format
from pytest_ttnn_perf.records.json import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def decode_file(document: object) -> BaselineFile:
    """Decode a baseline file.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    decode_format(Value(document), current=BASELINE_FORMAT, what="a baseline")
    return decode(BaselineFile, document)


def encode_text(file: BaselineFile) -> str:
    """Lay a baseline file out: sorted, one line per session, so that a diff is what changed."""
    return "\n".join(_file_lines(file)) + "\n"


def _file_lines(file: BaselineFile) -> Iterator[str]:
    yield "{"
    yield f'  "format": {BASELINE_FORMAT},'
    yield f'  "hardware": {_inline(encode(file.hardware))},'
    if file.test_file is not None:
        yield f'  "test_file": {json.dumps(file.test_file)},'
    yield from _members("tests", {n: _test_lines(t) for n, t in file.tests.items()}, indent=2)
    yield "}"


def _test_lines(test: TestBaseline) -> Iterator[str]:
    yield f'      "accepted": {_inline(encode(test.accepted))},'
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
    members = encode(baseline.metric)
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
