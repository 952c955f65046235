"""The users' ground: a project of tt-metal's shape, in which the gate must work unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PYTEST_INI = """\
[pytest]
timeout = 300
minversion = 7.2
addopts = --import-mode=importlib -vvs -rA --durations=25
    --junitxml=generated/test_reports/most_recent_tests.xml
empty_parameter_set_mark = skip
markers =
    models_performance_bare_metal: mark model for performance on bare metal
"""

_CONFTEST = """\
import os
import random
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="function")
def reset_seeds():
    np.random.seed(213919)
    random.seed(213919)
    yield


def device_options(device_params):
    import ttnn

    options = dict(device_params)
    fabric_config = options.pop("fabric_config", None)
    if fabric_config:
        ttnn.set_fabric_config(fabric_config)
    blackhole = ttnn.get_arch_name() == "blackhole"
    axis = ttnn.DispatchCoreAxis.COL if blackhole else ttnn.DispatchCoreAxis.ROW
    kind = ttnn.DispatchCoreType.WORKER
    options["dispatch_core_config"] = ttnn.DispatchCoreConfig(kind, axis)
    return options


@pytest.fixture(scope="function")
def device_params(request):
    return getattr(request, "param", {})


def opened(request, device_params):
    import ttnn

    device_id = request.config.getoption("device_id")
    assert device_id < ttnn.GetNumPCIeDevices(), "CreateDevice not supported for non-mmio device"
    device = ttnn.CreateDevice(device_id=device_id, **device_options(device_params))
    ttnn.SetDefaultDevice(device)
    yield device
    ttnn.close_device(device)


@pytest.fixture(scope="function")
def device(request, device_params):
    yield from opened(request, device_params)


@pytest.fixture(scope="function")
def mesh_device(request, device_params):
    import ttnn

    ids = ttnn.get_device_ids()
    wanted = getattr(request, "param", (1, len(ids)))
    if wanted[0] * wanted[1] > len(ids):
        pytest.skip("Requested more devices than available. Test not applicable for machine")
    shape = ttnn.MeshShape(*wanted)
    mesh_device = ttnn.open_mesh_device(mesh_shape=shape, **device_options(device_params))
    yield mesh_device
    ttnn.close_mesh_device(mesh_device)
    del mesh_device


@pytest.fixture(autouse=True)
def reset_default_device():
    import ttnn

    device = ttnn.GetDefaultDevice()
    yield
    ttnn.SetDefaultDevice(device)


@pytest.fixture(scope="function", autouse=True)
def record_test_timestamp(record_property):
    record_property("start_timestamp", datetime.now().isoformat())
    yield
    record_property("end_timestamp", datetime.now().isoformat())


ALL_ARCHS = {"wormhole_b0", "blackhole", "invalid"}


def pytest_addoption(parser):
    import ttnn

    parser.addoption("--tt-arch", choices=[*ALL_ARCHS], default=ttnn.get_arch_name())
    parser.addoption("--device-id", type=int, default=0)
    parser.addoption("--metal-timeout", action="store", default=None)


def pytest_configure(config):
    Path("generated").mkdir(exist_ok=True)
    xmlpath = config.option.xmlpath
    # Serial runs in a CI job must not overwrite each other's report.
    if xmlpath and os.getenv("CI") == "true":
        stem, suffix = os.path.splitext(xmlpath)
        config.option.xmlpath = f"{stem}_{datetime.now():%Y%m%d_%H%M%S}{suffix}"
"""

_MODEL = """\
import numpy as np

import ttnn


class Mlp:
    def __init__(self, device, batch):
        random = np.random.default_rng(213919)
        self.x = random.standard_normal((batch, 64)).astype(np.float32)
        self.first = random.standard_normal((64, 64)).astype(np.float32) / 8
        self.second = random.standard_normal((64, 32)).astype(np.float32) / 8
        put = lambda a: ttnn.from_torch(a, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        self.input, self.weights = put(self.x), (put(self.first), put(self.second))

    def golden(self):
        return np.maximum(self.x @ self.first, 0) @ self.second

    def __call__(self, x):
        return ttnn.matmul(ttnn.relu(ttnn.linear(x, self.weights[0])), self.weights[1])
"""

_TEST_MLP = """\
import pytest

import ttnn
from models.mlp.tt.mlp import Mlp

# As many test files do, while being collected.
NUM_DEVICES = ttnn.get_num_devices()


@pytest.mark.ttnn_perf(warmup=1, iterations=5, pcc=0.99)
@pytest.mark.parametrize("batch", [8, 32])
def test_mlp(ttnn_perf, device, reset_seeds, batch):
    model = Mlp(device, batch)
    output = ttnn_perf.measure(model, model.input)
    ttnn_perf.check_pcc(model.golden(), output.to_numpy())


@pytest.mark.skipif(ttnn.get_arch_name() != "blackhole", reason="only for Blackhole")
def test_blackhole_only(ttnn_perf, device):
    model = Mlp(device, 8)
    ttnn_perf.measure(model, model.input)


@pytest.mark.ttnn_perf(warmup=1, iterations=5)
@pytest.mark.parametrize("mesh_device", [(1, 2)], indirect=True)
def test_mlp_on_a_mesh(ttnn_perf, mesh_device):
    model = Mlp(mesh_device, 8)
    ttnn_perf.measure(model, model.input)
"""

_TEST_TRACED = """\
import pytest

import ttnn
from models.mlp.tt.mlp import Mlp


@pytest.mark.ttnn_perf(warmup=1, iterations=5, pcc=0.99)
@pytest.mark.parametrize(
    "device_params", [{"trace_region_size": 65536, "num_command_queues": 2}], indirect=True
)
def test_mlp_traced(ttnn_perf, device):
    model = Mlp(device, 8)
    model(model.input)  # compiles: a trace can hold only what has run
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    output = model(model.input)
    ttnn.end_trace_capture(device, trace, cq_id=0)
    ttnn.synchronize_device(device)
    ttnn_perf.measure(ttnn.execute_trace, device, trace, cq_id=0, blocking=False)
    ttnn_perf.check_pcc(model.golden(), output.to_numpy())
    ttnn.release_trace(device, trace)
"""

FILES = {
    "pytest.ini": _PYTEST_INI,
    "conftest.py": _CONFTEST,
    "models/mlp/tt/mlp.py": _MODEL,
    "models/mlp/tests/test_mlp.py": _TEST_MLP,
    "models/mlp/tests/test_mlp_traced.py": _TEST_TRACED,
}


def ground(path: Path) -> Path:
    """Write the project into a folder; run it from there with ``python -m pytest``."""
    for name, text in FILES.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return path
