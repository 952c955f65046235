"""``--ttnn-perf-confirm`` and ``confirm``: how often a suspect is measured again, and what for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    entry_of,
    failure_of,
    outcomes,
)
from tests.behaviour.turns import id_of, latencies, write_turns
from tests.harness.project import QUICK, Ran, clean

if TYPE_CHECKING:
    from tests.behaviour.turns import Turn
    from tests.harness.project import Project

#: In workers, with the option's default or what the configuration says of it.
GATE = (*QUICK, "--ttnn-perf-isolate", "process", "--ttnn-perf")


def gate(project: Project, *arguments: str) -> Ran:
    """Run the gate without the confirm option that the harness gives every run."""
    result = project.pytester.runpytest_inprocess(*GATE, *arguments)
    return Ran(int(result.ret), clean("\n".join(result.outlines)), "\n".join(result.errlines))


def write_baseline(project: Project, *milliseconds: float, name: str = "model") -> None:
    """Store a session for each number given."""
    for each in milliseconds:
        write_turns(project, **{name: latencies(each)})
        project.pytest("--ttnn-perf-update=improved")


def ran(project: Project, name: str = "model") -> int:
    """Return how often a test was executed since it was written."""
    return int((project.path / f"{name}.turn").read_text())


def said(ran: Ran) -> list[str]:
    """Return what was said between the results, the header apart."""
    lines = [line for line in ran.text.splitlines() if line.startswith("ttnn-perf: ")]
    return [line.removeprefix("ttnn-perf: ") for line in lines[1:]]


def sessions(project: Project, name: str = "model") -> list[float]:
    """Return the medians of the stored sessions."""
    stored = project.stored()[f"test_model[{name}]"]["metrics"]["latency"]["sessions"]
    return [session[0] for session in stored]


def counting(project: Project, name: str) -> list[float]:
    """Return the medians of the sessions that the next run is compared with."""
    since = project.stored()[f"test_model[{name}]"]["metrics"]["latency"]["since"]
    return sessions(project, name)[since:]


def test_suspect_fails_once_that_many_fresh_processes_agree(project: Project) -> None:
    write_baseline(project, 10)
    write_turns(project, model=latencies(21, 22, 23, 24))

    done = gate(project)

    assert counts_of(done) == "1 failed"
    # All measurements count: what is told is their mean.
    assert failure_of(done, "test_model[model]").splitlines()[0] == (
        "REGRESSED: latency 21.98 ms, baseline 10.00 ms: 119.8 % slower, limit 9.1 % "
        "(1 sample against 1 session; confirm passes: 22.00 ms, 23.00 ms; nothing to compare the "
        "machine with; sample noise assumed; one run seen)"
    )
    assert ran(project) == 3
    assert entry_of(project, id_of("model"))["metrics"]["latency"]["machine"] == [None] * 3


def test_what_the_machine_does_to_controls_is_not_held_against_a_suspect(project: Project) -> None:
    """It got slower after the first tests had run: the last of them is slow in every pass."""
    names = [f"t{number}" for number in range(9)]
    write_turns(project, **{name: latencies(10) for name in names})
    project.pytest("--ttnn-perf-update=new")
    turns: dict[str, list[Turn]] = {name: latencies(10, 12) for name in names[:-1]}
    write_turns(project, **turns, t8=latencies(12))

    done = gate(project, "--ttnn-perf-json=run.json")

    assert counts_of(done) == "9 passed"
    assert "8 controls: 19.9 % slower than their baselines" in said(done)
    verdict = entry_of(project, id_of("t8"))["verdicts"]["latency"]
    assert (verdict["outcome"], verdict["observed"]) == ("WITHIN", 12)
    machine = entry_of(project, id_of("t8"))["metrics"]["latency"]["machine"]
    assert (machine[0], verdict["machine"]) == (0, pytest.approx(machine[1]))
    assert project.cli("gate", "run.json").code == 0


def test_what_happens_is_said_while_it_happens(project: Project) -> None:
    write_turns(project, model=latencies(10), other=latencies(10))
    project.pytest("--ttnn-perf-update=new")
    write_turns(project, model=latencies(20, 19, 10), other=latencies(10))

    done = gate(project, "-q")

    assert done.text.splitlines()[:8] == [
        f"ttnn-perf: {id_of('model')}: latency 100.0 % slower: to be measured again",
        ".",
        "ttnn-perf: confirm pass 1 of 2: measuring 1 test and 1 control again in a fresh process",
        "ttnn-perf: 1 control: as fast as its baseline",
        f"ttnn-perf: {id_of('model')}: latency 19.00 ms, baseline 10.00 ms: beyond its limit again",
        "ttnn-perf: confirm pass 2 of 2: measuring 1 test and 1 control again in a fresh process",
        "ttnn-perf: 1 control: as fast as its baseline",
        f"ttnn-perf: {id_of('model')}: latency 10.00 ms, baseline 10.00 ms: within its limit now",
    ]
    assert done.text.splitlines()[8].split() == [".", "[100%]"]
    assert outcomes(project, id_of("model")) == {"latency": "WITHIN"}
    latency = entry_of(project, id_of("model"))["metrics"]["latency"]
    assert (latency["samples"], latency["confirmations"]) == ([20], [[19], [10]])


@pytest.mark.parametrize(("passes", "stored"), [("2", [10, 11, 12])])
def test_new_baseline_has_a_session_for_every_process(
    project: Project, passes: str, stored: list[float]
) -> None:
    write_turns(project, model=latencies(10, 11, 12, 13))
    note = "open('pids', 'a').write(f'{os.getpid()} ')"
    project.write(conftest=f"import os\ndef pytest_runtest_setup(): {note}")

    done = gate(project, "--ttnn-perf-update=new", "--ttnn-perf-confirm", passes)

    assert counts_of(done) == "1 passed"
    assert sessions(project) == stored
    assert len(set((project.path / "pids").read_text().split())) == len(stored)
    assert said(done) == [
        f"confirm pass {number} of {passes}: measuring 1 test again in a fresh process"
        for number in range(1, int(passes) + 1)
    ]


@pytest.mark.parametrize(
    ("arguments", "turns", "expected"),
    [
        (
            ["--ttnn-perf-update=improved"],
            {"confirmed": (5, 5.1, 5.2), "lucky": (9, 10.1), "accident": (5, 10.1)},
            {"confirmed": [5, 5.1, 5.2], "lucky": [10, 9], "accident": [10]},
        ),
    ],
    ids=["gain"],
)
def test_change_is_written_once_it_is_confirmed(
    project: Project,
    arguments: list[str],
    turns: dict[str, tuple[float, ...]],
    expected: dict[str, list[float]],
) -> None:
    # As many again that stay as they were, or the whole machine would look different.
    steady = {f"steady_{number}": latencies(10) for number in range(8)}
    write_turns(project, **dict.fromkeys(turns, latencies(10)), **steady)
    project.pytest("--ttnn-perf-update=new")
    write_turns(project, **{name: latencies(*ms) for name, ms in turns.items()}, **steady)

    done = gate(project, *arguments)

    assert counts_of(done) == "11 passed"
    assert {name: ran(project, name) for name in turns} == {n: len(t) for n, t in turns.items()}
    assert {name: counting(project, name) for name in turns} == expected


def test_inline_runs_are_judged_at_once(project: Project) -> None:
    write_baseline(project, 10)
    write_turns(project, model=latencies(20))

    inline = ("--ttnn-perf-isolate", "inline", "--ttnn-perf-confirm", "2")
    done = gate(project, *inline)

    assert (counts_of(done), ran(project), said(done)) == ("1 failed", 1, [])
