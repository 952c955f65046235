"""A clock alone, and artifacts in place of devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ttnn_perf.device.ttnn import OpenDevices
from pytest_ttnn_perf.measure.timing import Timings, Workload
from pytest_ttnn_perf.observe.devices import BesideDevices
from pytest_ttnn_perf.observe.instruments import Instruments, Plan, Replaying
from pytest_ttnn_perf.observe.observer import Observer
from pytest_ttnn_perf.observe.profiling import Printing, Profiling, Signposting
from pytest_ttnn_perf.records.hardware import Hardware
from pytest_ttnn_perf.records.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.records.observation import (
    NO_ARTIFACT,
    Artifact,
    MetricObservation,
    Observation,
)
from pytest_ttnn_perf.records.settings import Settings, TestSettings
from tests.unit.captures import ops_text

TEST = "models/test_llama.py::test_decode"
TIME = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, Source.REPLAY)
WALL = MetricObservation(Metric("latency", "ns"), (5.0,))
PCC = MetricObservation(Metric("pcc", "", Better.HIGHER, Kind.ACCURACY), (0.99,))


def test_a_clock_alone_knows_nothing_else() -> None:
    instruments, observation = Instruments(), Observation(TEST)
    instruments.begin(TEST)
    assert instruments.takes_artifacts
    assert instruments.sync is None
    assert instruments.measured() is NO_ARTIFACT
    assert instruments.printed("") is NO_ARTIFACT
    assert instruments.printed("a word of the test") is NO_ARTIFACT
    assert instruments.ended(TEST) is NO_ARTIFACT
    assert instruments.explanation("RuntimeError: out of memory") is None
    assert instruments.completed(observation, NO_ARTIFACT) is observation


@pytest.mark.parametrize(
    ("instruments", "expected"),
    [
        (Instruments(), True),
        (BesideDevices(OpenDevices()), True),
        (Replaying(Path()), False),
        (Profiling(OpenDevices()), False),
        (Printing(OpenDevices()), False),
        (Signposting(OpenDevices()), False),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_host_is_asked_only_where_its_own_times_count(
    instruments: Instruments, expected: bool
) -> None:
    assert instruments.by_the_clock is expected
    settings = TestSettings(warmup=0, iterations=1, pcc=0.99)
    observer = Observer(TEST, settings, Settings(), instruments)
    observer.record("latency", 5.0, unit="ns")
    assert ("load_1m" in observer.finish().environment) is expected


def test_a_trace_that_did_not_fit_is_explained() -> None:
    refused = "trace buffers of size 8192B on Device 1, but only 0B is allocated for trace region"
    explained = BesideDevices(OpenDevices()).explanation(f"RuntimeError: {refused}")
    assert explained is not None
    assert explained.endswith("open the device with trace_region_size=8192")
    assert BesideDevices(OpenDevices()).explanation("RuntimeError: no such op") is None


@pytest.mark.parametrize(
    ("plan", "warmup", "samples", "calls"),
    [
        (Plan(2, 3), 2, 3, 5),
        (Plan(0, 1), 0, 1, 1),
        (Plan(1, 3, depth=4), 1, 3, 13),
    ],
    ids=["calls", "one", "blocks"],
)
def test_a_model_is_called_as_planned(plan: Plan, warmup: int, samples: int, calls: int) -> None:
    called: list[int] = []

    def model() -> int:
        called.append(len(called))
        return called[-1]

    timings = Timings()
    assert Instruments().run(Workload(model), timings, plan) == calls - 1
    assert len(called) == calls
    assert (len(timings.warmup_ns), len(timings.samples_ns)) == (warmup, samples)


def test_what_tt_lang_prints_is_not_taken_where_artifacts_are_replayed(tmp_path: Path) -> None:
    assert not Replaying(tmp_path).takes_artifacts
    assert Replaying(tmp_path).printed("=== PERF SUMMARY ===") is NO_ARTIFACT


def test_what_was_recorded_of_a_test_is_known_at_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "test_llama"
    folder.mkdir(parents=True)
    ops_text.read(folder, ops_text.text([ops_text.op("MatmulDeviceOperation", kernel=700)]))
    (folder / "ops_perf_results.csv").rename(folder / "test_decode.csv")
    replaying = Replaying(tmp_path)
    assert replaying.measured() is NO_ARTIFACT

    artifact = replaying.ended(TEST)
    assert {each.metric.name: each.samples for each in artifact.metrics} == {
        "device_kernel_time": (700.0,),
        "op_count": (1.0,),
        "device_kernel_time_matmul": (700.0,),
    }
    assert {each.metric.source for each in artifact.metrics} == {Source.REPLAY}
    assert artifact.ops is not None


def test_a_test_of_which_nothing_was_recorded_says_where_it_should_be(tmp_path: Path) -> None:
    root = tmp_path / "recorded"
    root.mkdir()
    (found,) = Replaying(root).ended(TEST).metrics
    assert (found.metric, found.samples) == (TIME, ())
    assert found.note is not None
    wanted = "expected models/test_llama/test_decode.*"
    assert found.note.startswith(f"nothing is recorded of this test in recorded: {wanted}")


def test_the_times_of_this_machine_are_left_out(tmp_path: Path) -> None:
    replayed = MetricObservation(TIME, (700.0,))
    observed = Observation(
        TEST, {"latency": WALL, "pcc": PCC, TIME.name: replayed}, hardware=Hardware("host", "x86")
    )
    found = Replaying(tmp_path).completed(observed, Artifact(arch="blackhole", devices=4))
    assert found == replace(
        observed,
        metrics={"pcc": PCC, TIME.name: replayed},
        hardware=Hardware("blackhole", "unknown", "1x4"),
    )


def test_hardware_that_no_artifact_tells_is_none(tmp_path: Path) -> None:
    observed = Observation(TEST, {}, hardware=Hardware("host", "x86"))
    assert Replaying(tmp_path).completed(observed, NO_ARTIFACT).hardware is None
