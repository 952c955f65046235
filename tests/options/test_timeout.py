"""``--ttnn-perf-timeout`` and ``timeout``: how long a worker may say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of, failure_of, outcomes
from tests.behaviour.turns import IN_WORKERS, id_of, latencies, write_turns

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Seconds: longer than a worker takes to start, however busy the machine is.
SILENCE = 60
HANGS = "import time_flies; time_flies.hang()"


@pytest.mark.usefixtures("time_flies")
def test_worker_that_is_silent_for_longer_is_killed(project: Project) -> None:
    configure(project, f"timeout = {SILENCE}", file="ttnn_perf.toml")
    write_turns(project, hangs=[HANGS], next=latencies(10))

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore", *IN_WORKERS)

    assert counts_of(ran) == "1 failed, 1 passed"
    said = failure_of(ran, "test_model[hangs]").splitlines()[0]
    assert said.startswith(f"its worker hung: no sign of life for {SILENCE} s, killed; log: ")
    assert outcomes(project, id_of("next")) == {"latency": "NO_BASELINE"}


@pytest.mark.usefixtures("time_flies")
def test_so_is_one_that_measures_a_suspect_again(project: Project) -> None:
    configure(project, "timeout = 0")
    write_turns(project, hangs=latencies(10))
    project.pytest("--ttnn-perf-update=new")
    write_turns(project, hangs=[*latencies(20), HANGS])

    ran = project.pytest("--ttnn-perf", f"--ttnn-perf-timeout={SILENCE}", *IN_WORKERS)

    assert counts_of(ran) == "1 failed"
    said = failure_of(ran, "test_model[hangs]").splitlines()[0]
    assert said.startswith(
        "NO_DATA: latency 20.00 ms, baseline 10.00 ms: 100.0 % slower, which could not be "
        "confirmed: confirm pass 1: its worker hung: no sign of life for "
        f"{SILENCE} s, killed; log: "
    )


def test_zero_waits_for_ever(project: Project) -> None:
    configure(project, "timeout = 1")
    write_turns(project, slow=["time.sleep(3); ttnn_perf.record('latency', 10.0, unit='ms')"])

    arguments = ("--ttnn-perf-timeout", "0", "--ttnn-perf-missing=ignore")
    ran = project.pytest("--ttnn-perf", *arguments, *IN_WORKERS)

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
