"""Real captures as rules look at them, and as plain csv has them."""

from __future__ import annotations

import csv
from functools import cache

from pytest_ttnn_perf.analysis.ops.regions import region_table, regions_of
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.analysis.readers.ttlang import read_ttlang_log
from pytest_ttnn_perf.core.finding import Subject
from tests.harness.corpus import captures, corpus

KERNEL = "DEVICE KERNEL DURATION [ns]"
TABLES = [name.removeprefix("ops_perf/") for name in captures("ops_perf/*.csv")]
LOGS = [name.removeprefix("ttlang/") for name in captures("ttlang/*.txt")]
REPORTS = [
    *(f"{name}/db.sqlite" for name in ("cnn_small", "comparison", "mlp_bf16", "mlp_bfp8")),
    "linear_legacy.sqlite",
]


@cache
def ops_of(name: str) -> Subject:
    """Return a capture."""
    return Subject(ops=read_ops_csv(corpus(f"ops_perf/{name}")))


@cache
def region_of(name: str, region: str | None = None) -> Subject:
    """Return a region of a capture, by its name; the only one without."""
    table = ops_of(name).ops
    assert table is not None
    found = {each.name: each for each in regions_of(table).regions}
    (chosen,) = found.values() if region is None else (found[region],)
    return Subject(ops=region_table(table, chosen), region=chosen.name)


def report_of(name: str) -> Subject:
    """Return a report."""
    return Subject(report=read_report_db(corpus(f"report_db/{name}")))


def log_of(name: str) -> Subject:
    """Return a log of tt-lang."""
    return Subject(kernels=read_ttlang_log(corpus(f"ttlang/{name}")))


@cache
def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a capture as the file has them."""
    with corpus(f"ops_perf/{name}").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def device_rows(name: str) -> list[dict[str, str]]:
    """Return the rows that have a kernel time."""
    return [row for row in rows_of(name) if row.get(KERNEL)]
