"""Of a pipeline with many inputs a profiler is shown a few, and reads out after each few."""

from __future__ import annotations

from pytest_ttnn_perf.measure.frameworks import pipeline_of
from tests.harness.tt_cnn import Chip, Host, PipelineConfig, create_pipeline_from_config


def test_a_profiler_is_shown_as_many_inputs_as_overlap_and_all_are_served() -> None:
    configured = PipelineConfig(num_command_queues=2, all_transfers_on_separate_command_queue=True)
    pipeline = create_pipeline_from_config(configured, lambda number: number * number, Chip())
    pipeline.compile(Host(0))
    inputs = [Host(number) for number in range(5)]
    known = pipeline_of(pipeline, inputs, None, preallocate=False, cleanup=False)

    workload = known.workload(None)
    assert workload.part is not None
    assert (workload.inputs, workload.part.inputs) == (5, 2)
    read_out: list[bool] = []
    assert [each.data for each in known.serve(lambda: read_out.append(True))] == [0, 1, 4, 9, 16]
    assert len(read_out) == 2
