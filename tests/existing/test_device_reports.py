"""Reports of profiled children: the helper's own window, kept also where its assertion fires."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of, entry_of
from tests.existing.idioms import IDIOMS, change_numbers, write_project

if TYPE_CHECKING:
    from tests.harness.project import Project

TEST = "test_model.py::test_model"
RUN = """
import pytest
from models.perf.device_perf_utils import {names}

@pytest.mark.ttnn_perf
def test_model():
    {body}
"""
HELD = "run_model_device_perf_test('pytest test_plain.py', 4_000_000, 'unet', 'unet')"


def write(project: Project, names: str, *body: str) -> None:
    write_project(project, source(names, *body))


def source(names: str, *body: str) -> str:
    return RUN.format(names=names, body="\n    ".join(body))


def metric(
    project: Project, name: str = "device_kernel_time", file: str = "test_model"
) -> dict[str, Any]:
    found: dict[str, Any] = entry_of(project, f"{file}.py::test_model")["metrics"][name]
    return found


#: How a helper is called, and the metric of the number that it returns.
CALLS = {
    "signposts": (
        "'pytest test_signposts.py', 'a', 1, ['DEVICE KERNEL'], 1, has_signposts=True", "",
    ),
    "all": ("'pytest test_signposts.py', 'a', 1, ['DEVICE KERNEL'], 1", ""),
    "one_op": (
        "'pytest test_signposts.py', 'a', 1, ['DEVICE KERNEL'], 1, op_name='Conv2d'", ".conv2d",
    ),
    "two_devices": ("'pytest test_mesh.py', 'a', 1, ['DEVICE KERNEL'], 1", ""),
}  # fmt: skip
NO_SIGNPOSTS = (
    "try:",
    "    run_device_perf('pytest test_plain.py', 'a', 1, ['DEVICE KERNEL'], 1, has_signposts=True)",
    "except IndexError:",
    "    pass",
)
MEAN = (
    "results = run_device_perf_detailed('pytest test_op.py', 'a', ['DEVICE KERNEL'],",
    "    op_name='AllGather', warmup_iters=1)",
    "print('mean told', results['DEVICE KERNEL']['AVG'])",
)


def test_metrics_are_the_numbers_of_the_helper(project: Project) -> None:
    calls = {
        f"test_{name}": source(
            "run_device_perf",
            f"results = run_device_perf({call})",
            f"print('{name} told', results['AVG DEVICE KERNEL DURATION [ns]'])",
        )
        for name, (call, _) in CALLS.items()
    }
    sum_of_two = "run_model_device_perf_test('pytest test_mesh.py', 2_500_000, 'unet', 'unet')"
    write_project(
        project,
        IDIOMS[0].text,
        **calls,
        test_mean=source("run_device_perf_detailed", *MEAN),
        test_expected=source("run_model_device_perf_test", sum_of_two),
        test_without=source("run_device_perf", *NO_SIGNPOSTS),
    )

    ran = project.pytest("--ttnn-perf-update=new", "-s")

    assert counts_of(ran) == "1 failed, 7 passed", ran.text
    told = {name: float(number) for name, number in re.findall(r"(\S+) told (\S+)", ran.text)}
    samples = {
        name: metric(project, f"device_kernel_time{of}", f"test_{name}")["samples"]
        for name, (_, of) in CALLS.items()
    }
    # The helper adds up two devices that run side by side: the slower takes 1.5 ms.
    assert (told.pop("two_devices"), samples.pop("two_devices")) == (2.5e6, [1.5e6])
    mean = metric(project, "device_kernel_time.allgather", "test_mean")["samples"]
    # Without the warm-up: 3, 1 and 1 ms, of which the median would be 1.
    assert mean == [pytest.approx(told.pop("mean"))] == [pytest.approx(5e6 / 3)]
    assert samples == {name: [pytest.approx(number)] for name, number in told.items()}
    expected = metric(project, file="test_expected")
    assert (expected["samples"], expected.get("target")) == ([1_500_000], None)

    again = metric(project, "AVG DEVICE KERNEL DURATION [ns].device_perf")
    assert again["samples"] == metric(project)["samples"]
    assert (again["gated"], again["why_ungated"]) == (
        False,
        "device_kernel_time is gated, from the same report",
    )
    assert "NO_DATA: device_kernel_time" in ran.text
    assert "the report has no signpost 'start'; its signposts: none" in ran.text


OF_NO_PROGRAM = """
import pytest
from models.common.realtime_profiler_utils import profile_realtime_program_merged

@pytest.mark.ttnn_perf
def test_model():
    _, programs = profile_realtime_program_merged(None, lambda: None)
    print("told", sum(each["duration_ns"] for each in programs.values()))
"""


def test_records_of_no_program_do_not_count(project: Project) -> None:
    write_project(project, OF_NO_PROGRAM)
    ran = project.pytest("--ttnn-perf-update=new", "-s")
    assert "told 50000" in ran.text
    assert metric(project, "realtime_program_time")["samples"] == [50_000]


def test_assertion_of_a_helper_becomes_a_target(project: Project) -> None:
    write(project, "run_model_device_perf_test", HELD)
    config = project.path / "ttnn_perf.toml"
    config.write_text(config.read_text() + "helper_asserts = 'target'\n")
    project.pytest("--ttnn-perf-update=new")

    change_numbers(project, 0.8)
    faster = project.pytest("--ttnn-perf")
    assert counts_of(faster) == "1 passed"
    line = f"target {TEST}: device_kernel_time 3.200 ms, target 4.000 ms: reached"
    assert line in faster.text.splitlines()

    change_numbers(project, 1.3)
    slower = project.pytest("--ttnn-perf")
    assert counts_of(slower) == "1 failed"
    assert "REGRESSED: device_kernel_time" in slower.text


def test_a_test_of_tt_cnn_names_its_model(project: Project) -> None:
    helper = """
from types import SimpleNamespace

def run_device_perf_test(config):
    results = run_device_perf(config.test_command, 'vgg', 1, ['DEVICE KERNEL'], config.batch_size)
    check_device_perf(results, 0.02, {'AVG DEVICE KERNEL SAMPLES/S': config.expected}, True)
"""
    config = "test_command='pytest test_op.py', model_name='vgg', batch_size=2, expected=1333.3"
    call = f"run_device_perf_test(SimpleNamespace({config}))"
    text = source("run_device_perf, check_device_perf", call)
    write_project(project, IDIOMS[0].text, test_vgg=text.replace("\n@", f"{helper}\n@", 1))

    ran = project.pytest("--ttnn-perf-update=new")

    assert metric(project, file="test_vgg")["samples"], ran.text
    environment = entry_of(project, "test_vgg.py::test_model")["environment"]
    assert (environment["ml_model_name"], environment["batch_size"]) == ("vgg", 2)
