"""Stand-ins of tt-metal's helpers that behave as theirs do, written anew.

Kept are: the child process and its shell, the folder that is removed first, which report is read
and what of it counts, the sums over all devices, the no-op outside of CI, both kinds of report, the
asserts in both directions, the values that PCC helpers mask, and how they call each other. Tensors
are numpy's.
"""

from __future__ import annotations

_COMMON = """\
import os
import shutil
from pathlib import Path

ENVIRONMENT = dict(os.environ)
PROFILER_ARTIFACTS_DIR = Path(ENVIRONMENT.get("TT_METAL_HOME", Path.cwd())) / "generated/profiler"
if "TT_METAL_PROFILER_DIR" in ENVIRONMENT:
    PROFILER_ARTIFACTS_DIR = Path(ENVIRONMENT["TT_METAL_PROFILER_DIR"])


def clear_profiler_runtime_artifacts():
    if PROFILER_ARTIFACTS_DIR.exists():
        shutil.rmtree(PROFILER_ARTIFACTS_DIR)
"""

_PROCESS_MODEL_LOG = """\
import os
import shlex
import subprocess

import pandas as pd
from profiling.common import PROFILER_ARTIFACTS_DIR


def get_latest_ops_log_filename(output_logs_subdir=""):
    reports = PROFILER_ARTIFACTS_DIR / output_logs_subdir / "reports"
    latest = sorted(os.listdir(reports))[-1]
    return reports / latest / f"ops_perf_results_{latest}.csv"


def post_process_ops_log(
    output_logs_subdir, columns=None, sum_vals=True, op_name="", has_signposts=False
):
    df = pd.read_csv(get_latest_ops_log_filename(output_logs_subdir))
    if has_signposts:
        markers = df[df["OP TYPE"] == "signpost"]["OP CODE"]
        start = markers[markers == "start"].index[0]
        stop = markers[markers == "stop"].index[0]
        df = df.iloc[start + 1 : stop]
    if op_name != "":
        df = df[df["OP CODE"] == op_name]
    if not columns:
        return df
    assert type(columns) == list, "columns must be a list"
    results = {}
    for col in columns:
        rows = df[df[col] != "-"][col].astype(float)
        results[col] = rows.sum() if sum_vals else rows.to_numpy()
    return results


def run_device_profiler(command, output_logs_subdir, device_analysis_types=()):
    folder = PROFILER_ARTIFACTS_DIR / output_logs_subdir
    line = f"python3 -m tracy -p -r -o {folder} --check-exit-code -t 5000 -m {shlex.quote(command)}"
    subprocess.run([line], shell=True, check=True)


def get_samples_per_s(time_ns, num_samples):
    return 1 / (time_ns * 1e-9) * num_samples
"""

_DEVICE_PERF = """\
import time

import pandas as pd
from models.perf.benchmarking_utils import BenchmarkData, BenchmarkProfiler
from profiling.common import clear_profiler_runtime_artifacts
from profiling.process_model_log import (
    get_latest_ops_log_filename,
    get_samples_per_s,
    post_process_ops_log,
    run_device_profiler,
)


def run_device_perf(
    command, subdir, num_iterations, cols, batch_size, op_name="", has_signposts=False
):
    durations = [col + " DURATION [ns]" for col in cols]
    clear_profiler_runtime_artifacts()
    runs = []
    for _ in range(num_iterations):
        run_device_profiler(command, subdir)
        runs.append(
            post_process_ops_log(subdir, durations, op_name=op_name, has_signposts=has_signposts)
        )
    results = {}
    for col, duration in zip(cols, durations):
        times = [run[duration] for run in runs]
        mean = sum(times) / num_iterations
        results[f"AVG {col} SAMPLES/S"] = get_samples_per_s(mean, batch_size)
        results[f"MIN {col} SAMPLES/S"] = get_samples_per_s(max(times), batch_size)
        results[f"MAX {col} SAMPLES/S"] = get_samples_per_s(min(times), batch_size)
        results[f"AVG {duration}"] = mean
        results[f"MIN {duration}"] = min(times)
        results[f"MAX {duration}"] = max(times)
    return results


def post_process_ops_log_detailed(
    output_logs_subdir, columns, op_name="", has_signposts=False, detailed=False, warmup_iters=0
):
    df = pd.read_csv(get_latest_ops_log_filename(output_logs_subdir))
    if op_name != "":
        df = df[df["OP CODE"] == op_name]
    by_device = [group for _, group in df.groupby("DEVICE ID")]
    if not by_device:
        raise ValueError(f"no operations found matching op_name={op_name!r}")
    count = len(by_device[0])
    df = pd.concat([group.iloc[[i]] for i in range(count) for group in by_device])
    df = df.iloc[warmup_iters:]
    results = {}
    for col in columns:
        rows = df[df[col] != "-"][col].astype(float)
        results[col] = rows.sum()
        if detailed:
            results |= {f"AVG {col}": rows.mean(), f"STD {col}": rows.std()}
    return results


def run_device_perf_detailed(
    command, subdir, cols, op_name="", has_signposts=False, warmup_iters=0
):
    durations = [col + " DURATION [ns]" for col in cols]
    clear_profiler_runtime_artifacts()
    run_device_profiler(command, subdir)
    found = post_process_ops_log_detailed(
        subdir, durations, op_name=op_name, detailed=True, warmup_iters=warmup_iters
    )
    return {
        col: {"AVG": found[f"AVG {duration}"], "STD": found[f"STD {duration}"]}
        for col, duration in zip(cols, durations)
    }


def check_device_perf(post_processed_results, margin, expected_perf_cols, assert_on_fail=False):
    expected, failed = {}, False
    for col, value in expected_perf_cols.items():
        lower, upper = (1 - margin) * value, (1 + margin) * value
        expected[f"Lower Threshold {col}"], expected[f"Upper Threshold {col}"] = lower, upper
        failed = failed or not lower <= post_processed_results[col] <= upper
    if assert_on_fail:
        assert not failed, "Some performance metrics are outside of expected range"
    return expected


def prep_device_perf_report(
    model_name, batch_size, post_processed_results, expected_results, comments
):
    told = {**post_processed_results, **expected_results}
    row = {"Model": model_name, "Setting": comments, "Batch": batch_size, **told}
    with open(f"device_perf_{model_name}_{comments}_{time.strftime('%Y_%m_%d')}.csv", "w") as file:
        file.write(", ".join(row) + "\\n" + ", ".join(map(str, row.values())))
    profiler = BenchmarkProfiler()
    for step in ("run", "device_perf"):
        profiler.start(step)
        profiler.end(step)
    data = BenchmarkData()
    for name, value in told.items():
        data.add_measurement(profiler, 0, "device_perf", name, float(value))
    data.save_partial_run_json(
        profiler, run_type="device_perf", ml_model_name=model_name, batch_size=batch_size
    )


def run_model_device_perf_test(
    command, expected_device_perf_ns_per_iteration, subdir, model_name, num_iterations=1,
    batch_size=1, margin=0.015, comments="",
):
    cols = ["DEVICE KERNEL"]
    results = run_device_perf(command, subdir, num_iterations, cols, batch_size)
    expected = check_device_perf(
        results, margin,
        {"AVG DEVICE KERNEL DURATION [ns]": expected_device_perf_ns_per_iteration},
        assert_on_fail=True,
    )
    prep_device_perf_report(model_name, batch_size, results, expected, comments)
"""

_BENCHMARKING = """\
import os
import pickle
from datetime import datetime, timezone

IS_CI_ENV = os.getenv("CI") == "true"


class BenchmarkProfiler:
    def __init__(self):
        self.start_times, self.end_times = {}, {}

    def __call__(self, step_name, iteration=0):
        return self.StepContext(self, step_name, iteration)

    class StepContext:
        def __init__(self, profiler, step_name, iteration):
            self.profiler, self.step = profiler, (step_name, iteration)

        def __enter__(self):
            self.profiler.start(*self.step)
            return self.profiler

        def __exit__(self, *_):
            self.profiler.end(*self.step)
            return False

    def start(self, step_name: str, iteration: int = 0):
        self.start_times[(iteration, step_name)] = datetime.now(tz=timezone.utc)

    def end(self, step_name: str, iteration: int = 0):
        self.end_times[(iteration, step_name)] = datetime.now(tz=timezone.utc)

    def get_duration(self, step_name: str, iteration: int = 0):
        key = (iteration, step_name)
        return (self.end_times[key] - self.start_times[key]).total_seconds()

    def contains_step(self, step_name, iteration=0):
        key = (iteration, step_name)
        return key in self.start_times and key in self.end_times


class BenchmarkData:
    def __init__(self):
        if IS_CI_ENV:
            self.measure_data = []

    def add_measurement(
        self, profiler, iteration: int, step_name: str, name: str, value: float,
        step_warm_up_num_iterations: int = None, target: float = None, device_power: float = None,
        device_temperature: float = None,
    ):
        if IS_CI_ENV:
            assert None not in [profiler, iteration, step_name, name, value], "Missing fields"
            assert profiler.contains_step(step_name, iteration), f"{step_name} not in profiler"
            self.measure_data.append((iteration, step_name, name, value, target))

    def save_partial_run_json(
        self, profiler, run_type: str, ml_model_name: str, ml_model_type: str = None,
        device_name: str = "",
        num_layers: int = None, batch_size: int = None, config_params: dict = None,
        precision: str = None, input_sequence_length: int = None,
        output_sequence_length: int = None,
    ):
        if IS_CI_ENV:
            assert profiler.contains_step("run"), "Run step not found in profiler"
            os.makedirs("generated/benchmark_data", exist_ok=True)
            with open("generated/benchmark_data/partial_run.pkl", "wb") as file:
                pickle.dump((run_type, ml_model_name, self.measure_data), file)
"""

_PERF_UTILS = """\
import time

from models.perf.benchmarking_utils import BenchmarkData, BenchmarkProfiler


def prep_perf_report(
    model_name, batch_size, inference_and_compile_time, inference_time, expected_compile_time,
    expected_inference_time, comments, inference_time_cpu=None,
):
    compile_time = inference_and_compile_time - inference_time
    row = {"Model": model_name, "Setting": comments, "Inference Time (sec)": inference_time}
    with open(f"perf_{model_name}_{comments}_{time.strftime('%Y_%m_%d')}.csv", "w") as file:
        file.write(", ".join(row) + "\\n" + ", ".join(map(str, row.values())))
    profiler = BenchmarkProfiler()
    for step in ("run", "end_to_end_perf"):
        profiler.start(step)
        profiler.end(step)
    data, step = BenchmarkData(), "end_to_end_perf"
    data.add_measurement(profiler, 0, step, "inference_time_s", inference_time)
    data.add_measurement(profiler, 0, step, "compile_time_s", compile_time)
    data.add_measurement(profiler, 0, step, "throughput_iter_per_s", batch_size / inference_time)
    data.add_measurement(profiler, 0, step, "first_run_s", inference_and_compile_time)
    data.add_measurement(profiler, 0, step, "expected_inference_time_s", expected_inference_time)
    data.add_measurement(profiler, 0, step, "expected_compile_time_s", expected_compile_time)
    data.save_partial_run_json(
        profiler, run_type="end_to_end_perf", ml_model_name=model_name, batch_size=batch_size
    )
"""

_UTILITY_FUNCTIONS = """\
import time

import numpy as np


class Profiler:
    def __init__(self):
        self.start_times, self.times, self.disabled = {}, {}, False

    def disable(self):
        self.disabled = True

    def start(self, key, force_enable=False):
        if force_enable or not self.disabled:
            self.start_times[key] = time.time()

    def end(self, key, PERF_CNT=1, force_enable=False):
        if (force_enable or not self.disabled) and key in self.start_times:
            passed = time.time() - self.start_times[key]
            self.times.setdefault(key, []).append(passed / PERF_CNT)


profiler = Profiler()


def comp_pcc(golden, calculated, pcc=0.99, rtol=1e-05, atol=1e-04):
    calculated = calculated.astype(golden.dtype)
    if np.all(np.isnan(golden)) and np.all(np.isnan(calculated)):
        return True, 1.0
    if np.all(np.isnan(golden)) or np.all(np.isnan(calculated)):
        return False, 0.0
    if np.any(golden) != np.any(calculated):
        return False, 0.0
    # NaN and infinity become zero, so that the rest is checked.
    golden, calculated = (np.where(np.isfinite(x), x, 0) for x in (golden, calculated))
    if golden.shape == calculated.shape and np.array_equal(golden, calculated):
        return True, 1.0
    if 1 in (golden.size, calculated.size):
        golden, calculated = np.broadcast_arrays(golden.reshape(-1), calculated.reshape(-1))
    with np.errstate(all="ignore"):
        told = np.corrcoef(golden.reshape(-1), calculated.reshape(-1))[0, 1]
    if np.isnan(told):
        told = 1.0 if np.allclose(golden, calculated, rtol, atol) else 0.0
    return told >= pcc, told
"""

_UTILS_FOR_TESTING = """\
from models.common.utility_functions import comp_pcc


def assert_with_pcc(expected_pytorch_result, actual_pytorch_result, pcc=0.9999):
    assert list(expected_pytorch_result.shape) == list(actual_pytorch_result.shape), "shapes"
    pcc_passed, pcc_message = comp_pcc(expected_pytorch_result, actual_pytorch_result, pcc)
    assert pcc_passed, str(pcc_message)
    return pcc_passed, pcc_message


def check_with_pcc(expected_pytorch_result, actual_pytorch_result, pcc=0.9999):
    if expected_pytorch_result.shape != actual_pytorch_result.shape:
        return False, "shapes differ"
    passed, told = comp_pcc(expected_pytorch_result, actual_pytorch_result, pcc)
    return passed, str(told)
"""

_REALTIME = """\
import json
import statistics
from pathlib import Path


def profile_realtime_program(device, run_fn, *, collect_all=False):
    result = run_fn()
    told = json.loads(Path("numbers.json").read_text())["programs"]
    records = [
        {"runtime_id": number, "chip_id": chip, "duration_ns": ns, "kernel_sources": (source,)}
        for number, (source, chips) in enumerate(told, start=1)
        for chip, ns in enumerate(chips)
    ]
    records.append({"runtime_id": 0, "chip_id": 0, "duration_ns": 5e3, "kernel_sources": ()})
    if len(records) == 1:
        raise RuntimeError("Real-time profiler returned no valid program records.")
    return result, records if collect_all else records[0]


def profile_realtime_program_merged(device, run_fn):
    result, records = profile_realtime_program(device, run_fn, collect_all=True)
    merged = {}
    for record in records:
        if not record["runtime_id"]:
            continue
        known = merged.setdefault(record["runtime_id"], {**record, "duration_ns": 0.0})
        known["duration_ns"] = max(known["duration_ns"], record["duration_ns"])
    return result, merged


def assert_op_duration_merged(
    device, run_fn, kernel_path, *, expected_ns, margin, label, iters=1, verbose=False
):
    _, programs = profile_realtime_program_merged(device, lambda: [run_fn() for _ in range(iters)])
    matched = [
        entry["duration_ns"]
        for entry in programs.values()
        if any(kernel_path in source for source in entry["kernel_sources"])
    ]
    assert len(matched) == iters, f"expected {iters} programs matching {kernel_path}"
    median_ns = statistics.median(matched)
    lower, upper = expected_ns * (1 - margin), expected_ns * (1 + margin)
    assert lower <= median_ns <= upper, f"{label} device time {median_ns:.0f} ns outside band"
    return median_ns
"""

#: ``python3 -m tracy``: writes the report that ``numbers.json`` holds, for the command it is given.
_TRACY = """\
import json
import sys
import time
from pathlib import Path

words = sys.argv[1:]
folder = Path(words[words.index("-o") + 1])
now = f"2026_11_17_{time.monotonic_ns()}"
report = folder / "reports" / now / f"ops_perf_results_{now}.csv"
report.parent.mkdir(parents=True)
captures = json.loads(Path("numbers.json").read_text())["captures"]
command = words[-1]
report.write_text(next(text for name, text in captures.items() if name in command))
"""

FILES = {
    "profiling/common.py": _COMMON,
    "profiling/process_model_log.py": _PROCESS_MODEL_LOG,
    "models/perf/device_perf_utils.py": _DEVICE_PERF,
    "models/perf/benchmarking_utils.py": _BENCHMARKING,
    "models/perf/perf_utils.py": _PERF_UTILS,
    "models/common/utility_functions.py": _UTILITY_FUNCTIONS,
    "models/common/utils_for_testing.py": _UTILS_FOR_TESTING,
    "models/common/realtime_profiler_utils.py": _REALTIME,
    "tracy/__main__.py": _TRACY,
}
