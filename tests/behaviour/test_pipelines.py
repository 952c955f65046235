"""``measure_pipeline``: a pipeline of TT-CNN is compiled apart, and timed per input."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.measure.frameworks import pipeline_of
from tests.behaviour.model import counts_of, entry_of
from tests.harness import tt_cnn

if TYPE_CHECKING:
    from tests.harness.project import Project

HEAD = """
    import time

    import pytest
    from tt_cnn import *

    def made(model=lambda x: 2 * x, **config):
        return create_pipeline_from_config(PipelineConfig(**config), model, Chip())

    def hosts(count):
        return [Host(number) for number in range(count)]
"""
FACTS = {
    "use_trace": True,
    "num_command_queues": 1,
    "all_transfers_on_separate_command_queue": False,
    "pipeline_inputs": 8,
    "preallocated_outputs": False,
}


def write(project: Project, test: str) -> None:
    """Write the stand-in, and a test that begins as all do here."""
    (project.path / "tt_cnn.py").write_text(Path(tt_cnn.SOURCE).read_text())
    project.write(test_model=HEAD + test)


def test_rounds_are_timed_per_input_and_compiling_apart(project: Project) -> None:
    write(
        project,
        """
    @pytest.mark.ttnn_perf(warmup=3, iterations=5, batch=4)
    def test_model(ttnn_perf):
        pipeline = made(lambda x: time.sleep(0.002) or 2 * x)
        outputs = ttnn_perf.measure_pipeline(pipeline, hosts(8))
        assert [output.data for output in outputs] == [0, 2, 4, 6, 8, 10, 12, 14]
        log = pipeline.executor.device.log
        assert [log.count(what) for what in ("capture", "replay", "release")] == [1, 64, 0]
        pipeline.cleanup()
        """,
    )

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == "1 passed", ran.text
    entry = entry_of(project)
    assert entry["facts"] == FACTS
    metrics = entry["metrics"]
    assert set(metrics) == {"compile_time", "throughput_time", "samples_per_second"}
    rounds = metrics["throughput_time"]
    assert (len(rounds["warmup"]), len(rounds["samples"])) == (3, 5)
    # Each input sleeps for 2 ms: a round takes eight times as long, whatever the machine does.
    assert min(rounds["samples"]) >= 2e6
    assert metrics["samples_per_second"]["samples"] == [4e9 / ns for ns in rounds["samples"]]
    assert (len(metrics["compile_time"]["samples"]), metrics["compile_time"]["gated"]) == (1, False)
    assert set(project.stored()["test_model"]["metrics"]) == {
        "throughput_time",
        "samples_per_second",
    }


def taken(pipeline: Any, inputs: Any = (1,), config: Any = None, **flags: bool) -> Any:
    """Return what is known of a pipeline."""
    return pipeline_of(
        pipeline, inputs, config, **{"preallocate": False, "cleanup": False, **flags}
    )


TRACED = tt_cnn.Pipeline(tt_cnn.TracedModelExecutor(lambda x: x, tt_cnn.Chip()))


@pytest.mark.parametrize(
    ("arguments", "flags", "message"),
    [
        (
            (len,),
            {},
            "measure_pipeline takes a pipeline of TT-CNN: found builtin_function_or_method "
            "without compile, enqueue, pop_all()",
        ),
        (
            (TRACED, [1], tt_cnn.PipelineConfig(use_trace=False)),
            {},
            "config has use_trace=False, and TracedModelExecutor has use_trace=True: pass the "
            "one that the pipeline was made from",
        ),
    ],
)
def test_mistakes_are_named(
    arguments: tuple[Any, ...], flags: dict[str, bool], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        taken(*arguments, **flags)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("configured", "count", "sizes"),
    [
        ((True, 1, False), 3, [1, 1, 1]),
        ((True, 2, True), 2, [2]),
        ((True, 2, True), 5, [2, 3]),
    ],
)
def test_profilers_are_shown_few_inputs_and_all_are_served(
    configured: tuple[bool, int, bool], count: int, sizes: list[int]
) -> None:
    config = tt_cnn.PipelineConfig(*configured)
    made = tt_cnn.create_pipeline_from_config(config, lambda x: -x, tt_cnn.Chip())
    known = taken(made, [tt_cnn.Host(number) for number in range(count)])
    known.pipeline.compile(known.inputs[0])
    rooms: list[Counter[str]] = [Counter(made.executor.device.log)]

    outputs = known.serve(lambda: rooms.append(Counter(made.executor.device.log)))

    assert [output.data for output in outputs] == [-number for number in range(count)]
    served = [after["replay"] - before["replay"] for before, after in pairwise(rooms)]
    assert served == sizes
    workload = known.workload(None)
    assert workload.inputs == count
    assert (workload.part.inputs if workload.part else count) == sizes[0]
