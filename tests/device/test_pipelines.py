"""Pipelines of TT-CNN on a device: what it does for an input, and what that takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of
from tests.device.rig import CONFTEST, UPDATE, Rig, play, sampled
from tests.device.script import Op
from tests.harness import tt_cnn

if TYPE_CHECKING:
    from tests.harness.project import Ran

#: The device of the stand-in for TT-CNN, on the one for TTNN: inputs are copied, then resharded.
CHIP = """
    import ttnn
    from tt_cnn import Host, Chip

    class Board(Chip):
        def __init__(self, device):
            self.device = device

        def allocate(self):
            import numpy as np

            ones = np.ones((32, 32), np.float32)
            return ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=self.device)

        def write(self, host, buffer, queue):
            ttnn.copy_host_to_device_tensor(host.data, buffer, cq_id=queue)

        def run(self, model, buffer):
            return model(ttnn.to_memory_config(buffer, ttnn.L1_MEMORY_CONFIG))

        def capture(self, model, buffer):
            trace = ttnn.begin_trace_capture(self.device, cq_id=0)
            output = self.run(model, buffer)
            ttnn.end_trace_capture(self.device, trace, cq_id=0)
            return trace, output

        def replay(self, trace):
            ttnn.execute_trace(self.device, trace, cq_id=0, blocking=False)

        def release(self, trace):
            ttnn.release_trace(self.device, trace)

        def read(self, buffer, queue, into=None):
            into = into or Host(None)
            into.data = buffer.data.copy()
            return into

        def synchronize(self):
            ttnn.synchronize_device(self.device)
"""
MODELS = """
    import numpy as np
    import pytest
    import ttnn
    from board import Board
    from tt_cnn import Host, PipelineConfig, create_pipeline_from_config

    OPENED = {"trace_region_size": 1 << 20, "num_command_queues": 2}
    CONFIGURED = {
        "untraced": PipelineConfig(use_trace=False),
        "traced": PipelineConfig(),
        "separate": PipelineConfig(True, 2, True),
        "preallocated": PipelineConfig(),
    }

    @pytest.mark.ttnn_perf(warmup=3, iterations=3)
    @pytest.mark.parametrize("device", [OPENED], indirect=True, ids=[""])
    @pytest.mark.parametrize("how", CONFIGURED)
    def test_cnn(ttnn_perf, device, how):
        board = Board(device)
        pipeline = create_pipeline_from_config(
            CONFIGURED[how], lambda x: ttnn.relu(ttnn.conv2d(x, x)), board
        )
        tensors = [ttnn.from_torch(np.full((32, 32), float(n))) for n in range(40)]
        inputs = [Host(tensor) for tensor in tensors]
        if how == "preallocated":
            pipeline.compile(inputs[0]).preallocate_output_tensors_on_host(40)
        outputs = ttnn_perf.measure_pipeline(pipeline, inputs, cleanup=True)
        assert len(outputs) == 40
        for number in (0, 3, 16):
            assert outputs[number].data[0, 0] == 32 * number * number
"""
OPS = (
    Op("to_memory_config", 1e4, gap_ns=0),
    Op("conv2d", 8e4, gap_ns=0),
    Op("relu", 1e4, gap_ns=0),
)


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, Ran]:
    """Return a run of pipelines in all their ways, on an idle machine."""
    rig = Rig(tmp_path_factory.mktemp("pipelines"))
    rig.write(conftest=CONFTEST, board=CHIP, test_models=MODELS)
    (rig.project / "tt_cnn.py").write_text(Path(tt_cnn.SOURCE).read_text())
    return rig, rig.pytest(play(ops=OPS, wall=2.0), *UPDATE)


def test_device_times_are_those_of_one_input(gated: tuple[Rig, Ran]) -> None:
    rig, ran = gated
    assert (ran.code, counts_of(ran)) == (0, "4 passed"), ran.text
    for how in ("untraced", "traced", "separate", "preallocated"):
        metrics = rig.metrics(f"test_models.py::test_cnn[{how}-]")
        device = sampled(metrics, "device")
        assert device["device_kernel_time"] == ("device", [1e5, 1e5, 1e5]), how
        assert device["op_count"] == ("device", [3.0]), how
        # Twice as much time of the host as of the device, for each input.
        assert min(metrics["throughput_time"]["samples"]) >= 2e5
        assert ("compile_time" not in metrics) == (how == "preallocated")
    assert "device_kernel_time_conv" in rig.metrics("test_models.py::test_cnn[untraced-]")
