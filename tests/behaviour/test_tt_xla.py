"""tt-xla: how a model was compiled is observed, compared, and asked about by rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.analysis.readers.test_cpp_report import HEADER, ROW
from tests.behaviour.model import counts_of, entry_of, failure_of
from tests.harness.fake_packages import write_package

if TYPE_CHECKING:
    from tests.harness.project import Project

#: As in the fork of pytorch-xla: options go through the inner module, and replace those before.
TORCH_XLA = """
import os
from types import ModuleType, SimpleNamespace

in_force = {}

def _set(options):
    in_force.clear()
    in_force.update({name: str(value) for name, value in options.items()})

_XLAC = ModuleType("_XLAC")
_XLAC._set_custom_compile_options = _set

def set_custom_compile_options(options=None):
    _XLAC._set_custom_compile_options({} if options is None else options)

def compile(f=None, custom_compile_options=None):
    if custom_compile_options:
        _XLAC._set_custom_compile_options(custom_compile_options)
    return f

runtime = SimpleNamespace(
    set_device_type=lambda kind: os.environ.__setitem__("PJRT_DEVICE", kind)
)
"""
TORCH = """
class nn:
    class Module:
        dtype = "torch.float32"
        def parameters(self):
            yield self
        def to(self, dtype):
            self.dtype = dtype
            return self
"""
JAX = """
def jit(fun=None, *, compiler_options=None, static_argnames=()):
    return fun if fun is not None else lambda function: function
"""
#: The first call compiles; the second captures a trace, if there is to be one.
HEAD = """
    import pytest
    import torch
    import torch_xla

    class Model(torch.nn.Module):
        def __init__(self):
            self.calls = []
        def __call__(self, x):
            traced = torch_xla.in_force.get("enable_trace", "").lower() == "true"
            step = {0: "compile", 1: "capture" if traced else "run"}.get(len(self.calls), "run")
            self.calls.append(step)
            return x
"""
LEVEL = "optimization_level"
DEFAULTS = {
    "optimization_level": 0,
    "enable_trace": False,
    "enable_bfp8_conversion": False,
    "TT_RUNTIME_TRACE_REGION_SIZE": None,
    "TT_RUNTIME_ENABLE_PROGRAM_CACHE": None,
}


@pytest.fixture
def xla(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project with stand-ins for torch_xla, torch and jax."""
    for name, source in {"torch_xla": TORCH_XLA, "torch": TORCH, "jax": JAX}.items():
        write_package(project.path / "packages", name, None, source)
    project.pytester.syspathinsert(project.path / "packages")
    for name in ("PJRT_DEVICE", "TT_RUNTIME_TRACE_REGION_SIZE", "TT_RUNTIME_ENABLE_PROGRAM_CACHE"):
        monkeypatch.setenv(name, "")  # so that it is as before afterwards
        monkeypatch.delenv(name)
    return project


def write(project: Project, *lines: str, head: str = HEAD) -> None:
    """Write a test of these lines, which records a number."""
    body = "".join(f"        {line}\n" for line in lines)
    recording = '        ttnn_perf.record("latency", 12.5, unit="ms")\n'
    project.write(test_model=f"{head}\n    def test_model(ttnn_perf):\n{recording}{body}")


def gated(project: Project, *options: str) -> dict[str, Any]:
    """Return what a run records of the test."""
    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore", *options)
    assert counts_of(ran) in {"1 passed", "1 failed"}, ran.text
    return entry_of(project)


@pytest.mark.parametrize(
    ("line", "observed"),
    [
        ("torch_xla.set_custom_compile_options({'optimization_level': '2'})",
         {"optimization_level": 2}),
        ("torch_xla.set_custom_compile_options({'enable_trace': 'true', 'math_fidelity': 'hifi4'})",
         {"enable_trace": True, "math_fidelity": "hifi4"}),
        ("torch_xla.compile(len, custom_compile_options={'enable_bfp8_conversion': True})",
         {"enable_bfp8_conversion": True}),
        ("torch_xla.set_custom_compile_options({'export_path': 'x', 'dump_inputs': True,"
         " 'ttnn_perf_metrics_enabled': True})", {}),
        ("torch_xla.set_custom_compile_options({'optimization_level': 1});"
         " torch_xla.set_custom_compile_options()", {}),
        ("torch_xla.runtime.set_device_type('TT')", {}),
        ("torch_xla.set_custom_compile_options({'enable_optimizer': True})",
         {"enable_optimizer": True}),
        ("import jax; jax.jit(len, compiler_options={'optimization_level': '1'}); jax.jit(len)",
         {"optimization_level": 1}),
    ],
)  # fmt: skip
def test_compile_options_are_observed_however_they_are_given(
    xla: Project, line: str, observed: dict[str, object]
) -> None:
    write(xla, line)

    # Without levels, an older release says what it has.
    usual = {k: v for k, v in DEFAULTS.items() if "enable_optimizer" not in observed or k != LEVEL}
    assert gated(xla)["configuration"] == {**usual, **observed}


def test_another_option_is_another_configuration_and_what_is_stated_wins(xla: Project) -> None:
    write(xla, "torch_xla.set_custom_compile_options({'optimization_level': '1'})")
    xla.pytest("--ttnn-perf-update=new")
    write(xla, "torch_xla.set_custom_compile_options({'optimization_level': 2})")

    assert failure_of(xla.pytest("--ttnn-perf")).splitlines()[0] == (
        "NOT_COMPARABLE: latency 12.50 ms was measured in another configuration: "
        "optimization_level is 2, in the baseline 1"
    )
    write(
        xla,
        "torch_xla.set_custom_compile_options({'optimization_level': 2})",
        "ttnn_perf.facts(optimization_level=1)",
    )
    assert counts_of(xla.pytest("--ttnn-perf")) == "1 passed"


INPUT = "x = SimpleNamespace(dtype='torch.float32')"
LATE = "os.environ['TT_RUNTIME_TRACE_REGION_SIZE'] = '10000000'"
TRACED = "torch_xla.set_custom_compile_options({'enable_trace': True})"
MORE = HEAD + "    import os\n    from types import SimpleNamespace\n"


def test_formats_of_inputs_and_variables_that_come_late_are_noticed(xla: Project) -> None:
    model = "ttnn_perf.measure(Model().to('torch.bfloat16'), x, iterations=3)"
    write(xla, TRACED, LATE, INPUT, model, head=MORE)

    entry = gated(xla)

    assert entry["configuration"]["torch_input_dtype"] == "float32"
    (found,) = (each for each in entry["findings"] if each["code"] == "TTP105")
    assert found["reason"] == "the model is bfloat16, and its inputs are float32"
    assert entry["environment"]["set_after_import"] == "TT_RUNTIME_TRACE_REGION_SIZE"
    (reason,) = (each["reason"] for each in entry["unanswered"] if "TTP405" in each["codes"])
    assert reason.startswith("TT_RUNTIME_TRACE_REGION_SIZE was set after torch_xla was imported")


def test_a_trace_that_does_not_fit_names_the_variable(xla: Project) -> None:
    error = "trace buffers of size 8192B on Device 1, but only 0B is allocated for trace"
    write(xla, TRACED, f"raise RuntimeError({error!r})")

    ran = xla.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    advice = "before torch_xla is imported, set TT_RUNTIME_TRACE_REGION_SIZE=8192"
    assert advice in " ".join(ran.text.split())


def test_a_sweep_over_levels_has_the_time_to_compile_beside_the_time_to_run(xla: Project) -> None:
    xla.write(
        test_model=f"""{HEAD}
    @pytest.mark.ttnn_perf(sweep={{"level": [0, 1]}}, iterations=3)
    def test_model(ttnn_perf, level):
        torch_xla.set_custom_compile_options({{"optimization_level": level}})
        ttnn_perf.measure(Model(), 1)
"""
    )

    ran = xla.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    (headings,) = (line for line in ran.text.splitlines() if line.startswith("  level "))
    assert headings.split()[:3] == ["level", "wall_time", "first_call_time"]


def test_a_report_of_the_runtime_gives_device_times_and_what_the_host_adds(xla: Project) -> None:
    (xla.path / "cpp_device_perf_report.csv").write_text(HEADER + ROW)
    lines = ["import time", "ttnn_perf.measure(time.sleep, 0.001, iterations=3)"]
    write(xla, TRACED, *lines, "ttnn_perf.attach('cpp_device_perf_report.csv')")

    entry = gated(xla)

    assert entry["metrics"]["device_kernel_time"]["samples"] == [1800]
    (found,) = (each for each in entry["findings"] if each["code"] == "TTP404")
    assert "of a call, the slowest device works" in found["reason"]
