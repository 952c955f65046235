"""Metrics of real artifacts, held against figures that are found in the files without a reader."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.device_csv import (
    graph_metrics,
    kernel_metrics,
    report_metrics,
    summary_metrics,
)
from pytest_ttnn_perf.analysis.readers.graph import read_graph_json
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.analysis.readers.ttlang import (
    read_perf_summary_json,
    read_ttlang_log,
)
from tests.formats.test_report_db_corpus import CAPTURED, FILES, query
from tests.formats.test_ttlang_corpus import number
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.core.observation import MetricObservation

Values = dict[str, tuple[float, ...]]


def values(metrics: Iterable[MetricObservation]) -> Values:
    """Return the samples by name: each metric has some, or says why not."""
    found = list(metrics)
    assert found
    assert all(each.samples or each.note for each in found)
    assert len({each.metric.name for each in found}) == len(found)
    return {each.metric.name: each.samples for each in found}


def of_log(name: str) -> Values:
    return values(kernel_metrics(read_ttlang_log(corpus(f"ttlang/{name}")), file=name))


def of_report(name: str) -> Values:
    return values(report_metrics(read_report_db(corpus(f"report_db/{name}"))))


@pytest.mark.parametrize("name", ["perf_summary_docs_cores.txt", "perf_summary_docs_nodes.txt"])
def test_a_kernel_measured_on_hardware(name: str) -> None:
    text = corpus(f"ttlang/{name}").read_text(encoding="utf-8")
    transfers = sum(map(int, re.findall(r"DRAM \w+:.*\((\d+) transfers", text)))
    barriers = sum(map(int, re.findall(r"(\d+) (?:read|write)\b", text)))
    (megabytes,) = re.findall(r"DRAM read: +([\d.]+) MB", text)
    (milliseconds,) = re.findall(r"duration: .*\(([\d.]+) ms\)", text)
    expected: Values = {
        "kernel_dram_transfers": (transfers,),
        "kernel_barriers": (barriers,),
        "kernel_dram_read_bytes": (round(float(megabytes) * 2**20),),
        "kernel_time": (float(milliseconds) * 1000 * 1000,),
    }
    assert expected.items() <= of_log(name).items()


def test_two_programs_in_text_and_in_the_exact_form() -> None:
    rounded = of_log("v1_1_1_perf_summary.txt")
    file = corpus("ttlang/v1_1_1_perf_summary.json")
    exact = values(summary_metrics(read_perf_summary_json(file), file=file.name))
    document = json.loads(file.read_text(encoding="utf-8"))
    assert list(exact) == list(rounded)
    for place, program in enumerate(document["programs"], start=1):
        time_ns = program["duration_cycles"] * 1000 / document["freq_mhz"]
        assert exact[f"kernel_time_{place}"] == rounded[f"kernel_time_{place}"] == (time_ns,)
        written = program["dram_bytes_written"]
        assert exact[f"kernel_dram_write_bytes_{place}"] == (written,)
        assert rounded[f"kernel_dram_write_bytes_{place}"] == pytest.approx((written,), rel=0.05)
        barriers = program["read_barriers"] + program["write_barriers"]
        assert exact[f"kernel_barriers_{place}"] == (barriers,)
        transfers = program["dram_read_count"] + program["dram_write_count"]
        assert rounded[f"kernel_dram_transfers_{place}"] == (transfers,)


def test_the_slowest_thread_of_each_signpost() -> None:
    name = "v1_1_1_signpost_profile.txt"
    text = corpus(f"ttlang/{name}").read_text(encoding="utf-8")
    rows = re.findall(r"^ +(\w+) +TRISC_\d +\d+ +([\d,]+)", text, re.M)
    slowest: dict[str, int] = {}
    for zone, cycles in rows:
        slowest[zone] = max(number(cycles), slowest.get(zone, 0))
    assert of_log(name) == {f"signpost_cycles_{zone}": (most,) for zone, most in slowest.items()}


@pytest.mark.parametrize("name", FILES)
def test_a_report(name: str) -> None:
    found = of_report(name)
    file = corpus(f"report_db/{name}")
    assert found["report_op_count"] == query(file, "SELECT count(*) FROM operations")[0]
    for metric, kind in [("l1_peak_bytes", 1), ("dram_peak_bytes", 0), ("trace_buffer_bytes", 4)]:
        sums = (
            "SELECT sum(max_size_per_bank) AS size FROM buffers "
            f"WHERE buffer_type = {kind} GROUP BY operation_id, device_id"
        )
        assert found[metric] == query(file, f"SELECT ifnull(max(size), 0) FROM ({sums})")[0]


@pytest.mark.parametrize("scope", ["local", "global"])
def test_compared_tensors(scope: str) -> None:
    file = corpus("report_db/comparison/db.sqlite")
    table = f"{scope}_tensor_comparison_records"
    (least,) = query(file, f"SELECT min(actual_pcc), max(desired_pcc) FROM {table}")
    (found,) = (
        each
        for each in report_metrics(read_report_db(file))
        if each.metric.name == f"comparison_pcc_{scope}"
    )
    assert (*found.samples, found.limits.at_least) == least


@pytest.mark.parametrize("name", CAPTURED)
def test_a_captured_graph_has_the_memory_of_its_report(name: str) -> None:
    file = corpus(f"report_db/{name}/graph_capture.json")
    captured = values(graph_metrics(read_graph_json(file)))
    calls = [
        node
        for node in json.loads(file.read_text(encoding="utf-8"))["graph"]
        if node["node_type"] == "function_start" and node["stacking_level"] == 1
    ]
    called = sum(node["params"]["name"] != "Tensor::deallocate" for node in calls)
    assert list(captured["graph_op_count"]) == [called]
    reported = of_report(f"{name}/db.sqlite")
    memory = [metric for metric in reported if metric.endswith("_bytes")]
    assert {metric: captured[metric] for metric in memory} == {
        metric: reported[metric] for metric in memory
    }


ERRORS = "report_db/error_case/db.sqlite"


def test_a_report_of_a_program_that_failed_has_no_numbers() -> None:
    found = list(report_metrics(read_report_db(corpus(ERRORS))))

    assert {each.samples for each in found} == {()}
    (why,) = {each.note for each in found}
    assert why is not None
    assert why.startswith("an operation failed: ttnn.matmul: The width of the first tensor")
    assert why.endswith(", and 4 more")
