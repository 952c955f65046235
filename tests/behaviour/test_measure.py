"""``ttnn_perf.measure`` under the gate: what is called, what is timed, what is kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, entry_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Passes whatever the times are: these tests are about what was called.
QUIET = ("--ttnn-perf", "--ttnn-perf-missing=ignore")


def write_body(project: Project, body: str, marker: str = "") -> None:
    """Write a test from the lines of its body."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    project.write(
        test_model=f"import gc\nimport pytest\n\n@pytest.mark.ttnn_perf({marker})\n"
        f"def test_model(ttnn_perf):\n{lines}\n"
    )


def test_warm_up_and_samples_are_kept_apart_and_the_last_result_returned(project: Project) -> None:
    write_body(
        project,
        """
calls = []
model = lambda x, by: calls.append(x) or len(calls) * by
result = ttnn_perf.measure(model, 1, by=10, sync=int)  # so that a sample is one call
assert (calls, result) == ([1] * 5, 50)
""",
        "warmup=2, iterations=3",
    )

    assert counts_of(project.pytest(*QUIET)) == "1 passed"
    wall_time = entry_of(project)["metrics"]["wall_time"]
    assert len(wall_time["warmup"]) == 2
    assert len(wall_time["samples"]) == 3
    assert (wall_time["unit"], wall_time["better"], wall_time["kind"]) == ("ns", "lower", "time")


def test_what_is_shorter_than_a_microsecond_is_sampled_in_loops(project: Project) -> None:
    write_body(
        project,
        """
calls = []
ttnn_perf.measure(lambda: calls.append(1), name="short")
assert len(calls) > 34, "how many, the fastest of all warm-up calls decides"
ttnn_perf.measure(lambda: sum(range(10_000)), name="long")
ttnn_perf.measure(calls.copy, name="set_up", setup=calls.clear)
""",
        "warmup=30, iterations=4",
    )

    ran = project.pytest(*QUIET)

    metrics = entry_of(project)["metrics"]
    assert {name: len(metrics[name]["samples"]) for name in ("short", "long", "set_up")} == {
        "short": 4,
        "long": 4,
        "set_up": 4,
    }
    assert re.fullmatch(r"each sample is the mean of \d+ calls", metrics["short"]["note"])
    assert [metrics[name].get("note") for name in ("long", "set_up")] == [None, None]
    assert f"note test_model.py::test_model: short: {metrics['short']['note']}" in ran.text


def test_first_two_calls_are_recorded_apart_and_not_gated(project: Project) -> None:
    write_body(project, "ttnn_perf.measure(int)\nttnn_perf.measure(int, name='again')", "warmup=2")

    project.pytest(*QUIET)

    entry = entry_of(project)
    metrics = entry["metrics"]
    assert list(metrics) == ["wall_time", "first_call_time", "second_call_time", "again"]
    firsts = [metrics["first_call_time"], metrics["second_call_time"]]
    assert [first["samples"][0] for first in firsts] == metrics["wall_time"]["warmup"]
    assert [first["gated"] for first in firsts] == [False, False]
    assert list(entry["verdicts"]) == ["wall_time", "again"]


@pytest.mark.parametrize(
    ("supplied", "arguments"),
    [("None", "(1, 2)"), ("(3, 4, 5)", "(3, 4, 5)"), ("[3, 4]", "([3, 4],)"), ("()", "()")],
    ids=["nothing", "a tuple", "one argument", "no arguments"],
)
def test_setup_may_supply_the_arguments(project: Project, supplied: str, arguments: str) -> None:
    write_body(
        project,
        f"""
seen = []
ttnn_perf.measure(lambda *a: seen.append(a), 1, 2, setup=lambda: {supplied})
assert seen == [{arguments}] * 3
""",
        "warmup=1, iterations=2",
    )

    assert counts_of(project.pytest(*QUIET)) == "1 passed"


#: A clock that stands still unless something takes time.
CLOCK = """
now = [0]
advance = lambda by: lambda: now.__setitem__(0, now[0] + by)
clock = lambda: now[0]
"""


def test_clock_of_a_simulated_device_tells_the_time_on_any_machine(project: Project) -> None:
    body = f"""{CLOCK}
ttnn_perf.measure(advance(50), clock=clock)
ttnn_perf.measure(advance(50), sync=advance(60), pipelined=3, clock=clock)
with ttnn_perf.region("load", clock=clock):
    now[0] += 7
"""
    write_body(project, body, "warmup=3, iterations=2, pcc=0.9")

    ran = project.pytest(*QUIET)

    metrics = entry_of(project)["metrics"]
    samples = {name: (metric["source"], metric["samples"]) for name, metric in metrics.items()}
    assert samples == {
        "sim_time": ("sim", [50, 50]),
        "sim_throughput_time": ("sim", [70, 70]),
        "load": ("sim", [7]),
    }
    assert "checklist" not in ran.text  # what the host does meanwhile does not matter


def test_pipelined_calls_share_one_synchronisation(project: Project) -> None:
    write_body(
        project,
        """
log = []
say = lambda word: lambda: log.append(word)
ttnn_perf.measure(say("call"), sync=say("sync"), pipelined=3)
assert log == ["sync", "call", "sync"] + ["sync", "call", "call", "call", "sync"] * 2
ttnn_perf.measure(int)
ttnn_perf.measure(int, pipelined=2, name="streamed")
""",
        "warmup=1, iterations=2",
    )

    assert counts_of(project.pytest(*QUIET)) == "1 passed"
    metrics = entry_of(project)["metrics"]
    assert {name: len(metric["samples"]) for name, metric in metrics.items()} == {
        "throughput_time": 2,
        "first_call_time": 1,
        "wall_time": 2,
        "streamed": 2,
    }


@pytest.mark.parametrize(
    ("good_calls", "warmup", "samples"), [(0, 0, 0), (1, 1, 0), (2, 2, 0), (4, 2, 2)]
)
def test_callable_that_raises_leaves_what_was_measured_until_then(
    project: Project, good_calls: int, warmup: int, samples: int
) -> None:
    write_body(
        project,
        f"""
ttnn_perf.record("loaded", 7, kind="count")
calls = [1] * {good_calls}
ttnn_perf.measure(calls.pop, sync=int)
""",
        "warmup=2, iterations=3",
    )

    ran = project.pytest(*QUIET)

    assert counts_of(ran) == "1 failed"
    entry = entry_of(project)
    assert entry["raised"] == "IndexError: pop from empty list"
    assert entry["metrics"]["loaded"]["samples"] == [7]
    assert len(entry["metrics"]["wall_time"].get("warmup", [])) == warmup
    assert len(entry["metrics"]["wall_time"]["samples"]) == samples
    (verdict,) = entry["verdicts"].values()
    assert verdict["sentence"] == f"nothing was judged: the test raised {entry['raised']}"


def test_synchronisation_is_part_of_the_time_and_setup_is_not(project: Project) -> None:
    write_body(
        project,
        f"{CLOCK}ttnn_perf.measure(advance(5), setup=advance(1000), sync=advance(20), clock=clock)",
        "warmup=1, iterations=2",
    )

    project.pytest(*QUIET)

    sim_time = entry_of(project)["metrics"]["sim_time"]
    assert (sim_time["warmup"], sim_time["samples"]) == ([25], [25, 25])


def test_a_wrong_call_shows_the_line_of_the_test_and_none_of_ours(project: Project) -> None:
    project.write(
        test_model="""
            def model(x=1): pass

            def test_typo(ttnn_perf):
                ttnn_perf.measure(model, iteratoins=3)

            def test_region(ttnn_perf):
                with ttnn_perf.region():
                    pass

            def test_model_raises(ttnn_perf):
                ttnn_perf.measure(lambda: [][0])
        """
    )
    for option in ("--ttnn-perf", "--strict-markers"):
        ran = project.pytest(option)
        assert counts_of(ran) == "3 failed"
        assert "unexpected keyword argument 'iteratoins'; did you mean iterations?" in ran.text
        assert "IndexError: list index out of range" in ran.text
        assert "pytest_ttnn_perf/" not in ran.text
        assert "contextlib" not in ran.text
