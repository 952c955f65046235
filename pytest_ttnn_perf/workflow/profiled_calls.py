"""Calls of a model that a profiler looks at, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.device.profilers import ProfilerError
from pytest_ttnn_perf.measure.sampling import Timings, measure
from pytest_ttnn_perf.model.profile import Profile

if TYPE_CHECKING:
    from pytest_ttnn_perf.device.profilers import Profiler
    from pytest_ttnn_perf.measure.sampling import Workload

#: A profiler slows a model down and fills up: few calls tell what a device does.
PROFILED_ITERATIONS: Final = 3


def profiled(profiler: Profiler, workload: Workload, result: Any) -> tuple[Profile, Any]:
    """Call a warm model some times and profile each call; return the last result as well."""
    iterations = []
    timings = Timings()  # nobody asks for them
    try:
        profiler.begin()
        for _ in range(PROFILED_ITERATIONS):
            result = None
            result = measure(workload, timings, warmup=0, iterations=1)
            iterations.append(profiler.take())
    except ProfilerError as error:
        if result is None:
            result = measure(workload, timings, warmup=0, iterations=1)
        return Profile(problem=str(error)), result
    finally:
        profiler.end()
    return Profile(tuple(iterations)), result
