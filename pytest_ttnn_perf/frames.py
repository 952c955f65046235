"""Captures and run records as pandas DataFrames, for notebooks.

pandas is loaded by the first call, not by importing this module. What cannot be read is an
``InputError`` or a ``UsageError``, each with one sentence.
"""

from __future__ import annotations

import os
import warnings
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.analysis.ops.regions import why_invalid
from pytest_ttnn_perf.analysis.readers.detect import op_table_of, read_run
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.metric import Better, Kind, Source
from pytest_ttnn_perf.core.observation import Outcome
from pytest_ttnn_perf.core.ops import HOST, Category, category_of
from pytest_ttnn_perf.gate.judge import NO_METRIC, session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from enum import Enum

    import pandas as pd

    from pytest_ttnn_perf.core.observation import MetricObservation, Run, Verdict
    from pytest_ttnn_perf.core.ops import Signature, Tensor

    File = str | os.PathLike[str]


__all__ = ["InputError", "UsageError", "ops", "runs"]
#: Where a run leaves its records, unless it is told otherwise.
RUNS: Final = ".ttnn_perf/runs"
_TIME: Final = "datetime64[ns, UTC]"
#: The columns of each frame, in order, with their types: one of pandas', or the values that a
#: categorical may have.
_DEFINITION: Final[Mapping[str, str | type[Enum]]] = {
    "unit": "string",
    "kind": Kind,
    "better": Better,
    "source": Source,
}
COLUMNS: Final[Mapping[str, Mapping[str, str | type[Enum]]]] = {
    "ops": {
        "device": "Int64", "op": "category", "category": Category, "kernel_ns": "float64",
        "gap_ns": "float64", "ideal_ns": "float64", "cores": "Int64", "fidelity": "category",
        **{
            f"{side}_{part}": "category"
            for side in ("input", "output")
            for part in ("shapes", "dtypes", "layouts", "memory")
        },
        "trace": "Int64", "replay": "Int64", "host": "bool", "attributes": "category",
    },
    "runs": {
        "run": "string", "started_at": _TIME, "commit": "string", "label": "string",
        "complete": "bool", "key": "string", "test": "string", "metric": "string",
        **_DEFINITION, "value": "float64", "n": "Int64", "gated": "bool", "outcome": Outcome,
        "baseline": "float64", "change": "float64", "limit": "float64",
    },
}  # fmt: skip


def ops(capture: File, *, start: str | None = None, end: str | None = None) -> pd.DataFrame:
    """Op table of a capture, one row per op.

    Warns where ops of a device have no time, or replays of a trace ran different ops: no sum over
    the frame is whole then.

    Raises:
        InputError: the file holds no op table, or is damaged.
        UsageError: it does not have the window.
    """
    file = _path(capture)
    table = op_table_of(file, start=start, end=end)
    flaw = why_invalid(table)
    if flaw is not None:
        warnings.warn(f"no sum over {file.name} can be trusted: {flaw}", stacklevel=2)
    columns = table.columns
    values: dict[str, Any] = {
        "device": [None if device == HOST else device for device in columns.device],
        "fidelity": _categorical(table.fidelities, columns.fidelity),
        "attributes": _categorical(table.attribute_texts, columns.attributes),
    }
    for name in ("kernel_ns", "gap_ns", "ideal_ns", "cores", "trace", "replay", "host"):
        values[name] = getattr(columns, name)
    for name, text_of in _SIGNATURE_TEXTS.items():
        # Once per signature: captures reach a million rows, of a few hundred signatures.
        values[name] = _categorical(list(map(text_of, table.signatures)), columns.signature)
    frame = _frame("ops", values)
    known = ("format", "arch", "kernel_time", "rows")
    frame.attrs = {name: getattr(table, name) for name in known} | {"dropped": dict(table.dropped)}
    return frame


def runs(*records: File) -> pd.DataFrame:
    """Return the metrics of run records, a row per test and metric.

    A folder stands for the records in it; without any argument, that of ``.ttnn_perf/runs``.

    Raises:
        InputError: a file is missing, or is no run record.
    """
    return _of_rows("runs", (row for run in _read(records) for row in _run_rows(run)))


def _path(file: object) -> Path:
    if not isinstance(file, (str, os.PathLike)):
        message = f"expected the path of a file or folder, found {type(file).__name__}"
        raise UsageError(message)
    return Path(file).expanduser()


def _of_rows(name: str, rows: Iterable[Sequence[object]]) -> pd.DataFrame:
    names = list(COLUMNS[name])
    listed = list(rows)
    values: Iterable[Sequence[object]] = zip(*listed, strict=True) if listed else [()] * len(names)
    return _frame(name, dict(zip(names, values, strict=True)))


def _frame(name: str, values: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({c: _column(values[c], dtype) for c, dtype in COLUMNS[name].items()})


def _column(values: Any, dtype: str | type[Enum]) -> pd.Series:
    import pandas as pd

    if dtype == _TIME:  # other producers may write anything there
        texts = pd.Series(list(values), dtype="string")
        times = pd.to_datetime(texts, utc=True, errors="coerce", format="ISO8601")
        return times.astype(_TIME)
    if isinstance(dtype, str):
        return pd.Series(values if hasattr(values, "dtype") else list(values), dtype=dtype)
    choices = [choice.value for choice in dtype]
    if hasattr(values, "set_categories"):
        return pd.Series(values.set_categories(choices))
    return pd.Series(pd.Categorical(list(values), categories=choices))


def _categorical(texts: Sequence[str], places: Sequence[int]) -> Any:
    """Texts by index as a categorical; -1 is missing."""
    import pandas as pd

    kinds = pd.Categorical(list(texts), categories=list(dict.fromkeys(texts)))
    return kinds.take(list(places), allow_fill=True) if len(places) else kinds[:0]


def _operand_text(part: Callable[[Tensor], str], *, outputs: bool) -> Callable[[Signature], str]:
    def text(signature: Signature) -> str:
        return "; ".join(map(part, signature.outputs if outputs else signature.inputs))

    return text


def _shape(tensor: Tensor) -> str:
    """Return a shape such as ``1x1x1024[1000]x512``: 1000, padded to 1024."""
    logical = tensor.logical
    if logical is None or len(logical) != len(tensor.padded):
        return "x".join(map(str, tensor.padded))
    sizes = zip(tensor.padded, logical, strict=True)
    return "x".join(f"{n}" if n == m else f"{n}[{m}]" for n, m in sizes)


_OPERAND_TEXTS: Final[Mapping[str, Callable[[Tensor], str]]] = {
    "shapes": _shape,
    "dtypes": lambda tensor: tensor.dtype,
    "layouts": lambda tensor: tensor.layout,
    "memory": lambda tensor: tensor.memory,
}
#: The columns of a capture that follow from the signature of an op.
_SIGNATURE_TEXTS: Final[Mapping[str, Callable[[Signature], str]]] = {
    "op": lambda signature: signature.op,
    "category": lambda signature: category_of(signature.op).value,
    **{
        f"{side}_{name}": _operand_text(part, outputs=side == "output")
        for side in ("input", "output")
        for name, part in _OPERAND_TEXTS.items()
    },
}


def _read(records: Sequence[File]) -> Iterator[Run]:
    for place in map(_path, records or (RUNS,)):
        if not place.exists():
            raise InputError(place, "expected a run record or a folder of them, found nothing")
        for file in sorted(place.glob("*.json")) if place.is_dir() else (place,):
            yield read_run(file)


def _run_rows(run: Run) -> Iterator[tuple[object, ...]]:
    about = run.environment
    heading = (run.id, about.started_at, about.commit, run.label, run.complete)
    for test, judged in run.tests.items():
        hardware = judged.observation.hardware or run.hardware
        verdicts = {verdict.metric.name: verdict for verdict in judged.verdicts}
        observed = judged.observation.metrics
        key = hardware.key if hardware else None
        for name in dict.fromkeys((*observed, *verdicts)):
            yield (*heading, key, test, *_metric_cells(observed.get(name), verdicts.get(name)))


def _metric_cells(
    observed: MetricObservation | None, verdict: Verdict | None
) -> tuple[object, ...]:
    """Return a metric that was recorded, judged, or both."""
    metric = observed.metric if observed else verdict.metric if verdict else NO_METRIC
    samples = observed.samples if observed else ()
    finite = tuple(sample for sample in samples if isfinite(sample))
    value = session_of(observed, finite).median if observed and finite else None
    definition = (metric.name, metric.unit, metric.kind.value, metric.better.value)
    numbers: tuple[object, ...] = (None,) * 4
    if verdict:
        numbers = (verdict.outcome.value, verdict.centre, verdict.change, verdict.limit)
    return (
        *(((*definition, metric.source.value)) if metric != NO_METRIC else (None,) * 5),
        *(value, len(samples), observed.gated if observed else True, *numbers),
    )
