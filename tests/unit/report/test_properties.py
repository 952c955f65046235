"""The metrics of a test as flat pairs."""

from __future__ import annotations

from pytest_ttnn_perf.records.metric import Metric
from pytest_ttnn_perf.records.observation import MetricObservation
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.ci import property_pairs
from tests.harness.ci_report import judged, verdict


def test_recorded_metric_has_value_and_unit() -> None:
    recorded = MetricObservation(Metric("load_time", "ms"), (3.0, 1.0, 2.0), gated=False)
    pairs = property_pairs(judged("a.py::a", metrics={"load_time": recorded}), None)
    assert pairs == [("ttnn_perf.load_time", "2"), ("ttnn_perf.load_time.unit", "ms")]


def test_verdict_of_a_test_is_that_of_its_worst_metric() -> None:
    found = judged("a.py::a", verdict(Outcome.IMPROVED), verdict(Outcome.TOO_NOISY))
    assert dict(property_pairs(found, None))["ttnn_perf.verdict"] == "TOO_NOISY"


def test_names_hold_nothing_that_xml_cannot() -> None:
    odd = judged("a.py::a", verdict(Outcome.WITHIN, Metric("a\x00b\x1b", "n\ns")))
    pairs = property_pairs(odd, None)
    assert ("ttnn_perf.a\\x00b\\x1b.unit", "n\\ns") in pairs
