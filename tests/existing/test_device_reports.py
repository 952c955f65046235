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
    write_project(project, RUN.format(names=names, body="\n    ".join(body)))


def metric(project: Project, name: str = "device_kernel_time") -> dict[str, Any]:
    found: dict[str, Any] = entry_of(project, TEST)["metrics"][name]
    return found


def printed(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"told (\S+)", text)]


@pytest.mark.parametrize(
    ("call", "name", "agrees"),
    [
        ("'pytest test_signposts.py', 'a', 1, ['DEVICE KERNEL'], 1, has_signposts=True", "", True),
        ("'pytest test_signposts.py', 'a', 1, ['DEVICE KERNEL'], 1", "", True),
        (
            "'pytest test_signposts.py', 'a', 1, ['DEVICE KERNEL'], 1, op_name='Conv2d'",
            ".conv2d",
            True,
        ),
        # The helper adds up two devices that run side by side: 2.5 ms, the slower takes 1.5 ms.
        ("'pytest test_mesh.py', 'a', 1, ['DEVICE KERNEL'], 1", "", False),
    ],
    ids=["signposts", "all", "one op", "two devices"],
)
def test_metric_is_the_number_of_the_helper(
    project: Project, call: str, name: str, agrees: bool
) -> None:
    write(
        project,
        "run_device_perf",
        f"results = run_device_perf({call})",
        "print('told', results['AVG DEVICE KERNEL DURATION [ns]'])",
    )

    ran = project.pytest("--ttnn-perf-update=new", "-s")

    (told,) = printed(ran.text)
    (sample,) = metric(project, f"device_kernel_time{name}")["samples"]
    assert (sample == pytest.approx(told, rel=1e-9)) is agrees
    if not agrees:
        assert (told, sample) == (2.5e6, 1.5e6)


def test_mean_of_an_op_is_that_of_its_samples_without_the_warm_up(project: Project) -> None:
    write(
        project,
        "run_device_perf_detailed",
        "results = run_device_perf_detailed('pytest test_op.py', 'a', ['DEVICE KERNEL'],",
        "    op_name='AllGather', warmup_iters=1)",
        "print('told', results['DEVICE KERNEL']['AVG'])",
    )

    ran = project.pytest("--ttnn-perf-update=new", "-s")

    samples = metric(project, "device_kernel_time.allgather")["samples"]
    assert samples == [1_010_000, 1_000_000, 990_000]
    assert printed(ran.text) == [pytest.approx(sum(samples) / 3)]


@pytest.mark.long
def test_what_was_measured_is_kept_where_the_helper_asserts(project: Project) -> None:
    write(project, "run_model_device_perf_test", HELD)
    project.pytest("--ttnn-perf-update=new")
    change_numbers(project, 1.3)

    ran = project.pytest("--ttnn-perf")

    assert counts_of(ran) == "1 failed"
    assert entry_of(project, TEST)["raised"].startswith("AssertionError: Some performance metrics")
    found = metric(project)
    assert (found["samples"], found["target"]) == ([5_200_000], 4_000_000)


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


@pytest.mark.long
def test_faster_is_red_as_the_helper_has_it_unless_that_is_changed(project: Project) -> None:
    write(project, "run_model_device_perf_test", HELD)
    project.pytest("--ttnn-perf-update=new")
    change_numbers(project, 0.8)

    assert counts_of(project.pytest("--ttnn-perf")) == "1 failed"


@pytest.mark.long
def test_report_without_the_signposts_is_no_data(project: Project) -> None:
    write(
        project,
        "run_device_perf",
        "try:",
        "    run_device_perf('pytest test_plain.py', 'a', 1, ['DEVICE KERNEL'], 1, "
        "has_signposts=True)",
        "except IndexError:",
        "    pass",
    )

    ran = project.pytest("--ttnn-perf")

    assert counts_of(ran) == "1 failed"
    assert "NO_DATA: device_kernel_time" in ran.text
    assert "the report has no signpost 'start'; its signposts: none" in ran.text


@pytest.mark.long
def test_expected_sum_of_devices_is_no_target_of_the_slowest(project: Project) -> None:
    call = "run_model_device_perf_test('pytest test_mesh.py', 2_500_000, 'unet', 'unet')"
    write(project, "run_model_device_perf_test", call)

    project.pytest("--ttnn-perf-update=new")

    found = metric(project)
    assert (found["samples"], found.get("target")) == ([1_500_000], None)


def test_what_a_report_tells_again_is_not_gated_twice(project: Project) -> None:
    write_project(project, IDIOMS[0].text)

    project.pytest("--ttnn-perf-update=new")

    told = metric(project, "AVG DEVICE KERNEL DURATION [ns].device_perf")
    assert told["samples"] == metric(project)["samples"]
    assert (told["gated"], told["why_ungated"]) == (
        False,
        "device_kernel_time is gated, from the same report",
    )
