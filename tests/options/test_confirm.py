"""``--ttnn-perf-confirm`` and ``confirm``: how often a suspect is measured again, and what for."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, entry_of, failure_of
from tests.behaviour.turns import id_of, latencies, write_turns
from tests.harness.project import QUICK, Ran, clean

if TYPE_CHECKING:
    from tests.harness.project import Project

#: In workers, with the option's default or what the configuration says of it.
GATE = (*QUICK, "--ttnn-perf-isolate", "process", "--ttnn-perf")


def gate(project: Project, *arguments: str) -> Ran:
    """Run the gate without the confirm option that the harness gives every run."""
    result = project.pytester.runpytest_inprocess(*GATE, *arguments)
    return Ran(int(result.ret), clean("\n".join(result.outlines)), "\n".join(result.errlines))


def ran(project: Project, name: str) -> int:
    """Return how often a test was executed since it was written."""
    return int((project.path / f"{name}.turn").read_text())


def sessions(project: Project, name: str) -> list[float]:
    """Return the medians of the stored sessions."""
    stored = project.stored()[f"test_model[{name}]"]["metrics"]["latency"]["sessions"]
    return [session[0] for session in stored]


def counting(project: Project, name: str) -> list[float]:
    """Return the medians of the sessions that the next run is compared with."""
    since = project.stored()[f"test_model[{name}]"]["metrics"]["latency"]["since"]
    return sessions(project, name)[since:]


#: What tests with a baseline of 10 ms measure from now on, and how often they are executed.
TURNS = {
    "confirmed": ((21, 22, 23, 24, 25), 5),
    "cleared": ((20, 19, 10), 3),
    "gain": ((5, 5.1, 5.2, 5.1, 5.2), 5),
    "lucky": ((8.5, 10.1), 2),
    "accident": ((5, 10.1), 2),
}


def test_what_is_in_question_is_decided_in_fresh_processes(project: Project) -> None:
    """Suspects, gains and new tests are measured again, as often as it takes to tell."""
    # As many again that stay as they were, or the whole machine would look different.
    steady = {f"steady_{number}": latencies(10) for number in range(8)}
    write_turns(project, **dict.fromkeys(TURNS, latencies(10)), **steady)
    project.pytest("--ttnn-perf-update=new")
    now = {name: latencies(*values) for name, (values, _) in TURNS.items()}
    write_turns(project, **now, new=latencies(10, 11, 12, 13), **steady)
    note = "open('pids', 'a').write(f'{os.getpid()} ')"
    project.write(conftest=f"import os\ndef pytest_runtest_setup(): {note}")

    done = gate(project, "-q", "--ttnn-perf-update=improved")

    assert counts_of(done) == "1 failed, 13 passed"
    assert {name: ran(project, name) for name in TURNS} == {n: r for n, (_, r) in TURNS.items()}
    assert len(set((project.path / "pids").read_text().split())) == 5
    # The confirm passes decide, by their mean.
    sentence = r"REGRESSED: latency 13\d\.\d % slower, limit .* \(23\.\d+ ms, baseline 10\.00 ms\)"
    assert re.match(sentence, failure_of(done, "test_model[confirmed]"))
    cleared = entry_of(project, id_of("cleared"))
    assert cleared["verdicts"]["latency"]["outcome"] == "WITHIN"
    latency = cleared["metrics"]["latency"]
    assert (latency["samples"], latency["confirmations"]) == ([20], [[19], [10]])
    assert {name: counting(project, name) for name in (*TURNS, "new")} == {
        "confirmed": [10],
        "cleared": [10],
        "gain": [5, 5.1, 5.2, 5.1, 5.2],
        "lucky": [10, 8.5],
        "accident": [10],
        "new": [10, 11, 12],
    }
    # What happens is said while it happens.
    lines = done.text.splitlines()
    latency_of = f"{id_of('cleared')}: latency"
    told = [
        f"ttnn-perf: {latency_of} 100.0 % slower: to be measured again",
        "confirm 1/4: 6 tests and 8 controls again in a fresh process",
        "confirm 2/4: 4 tests and 8 controls again in a fresh process",
        f"confirm 2/4, {latency_of} 10.00 ms, baseline 10.00 ms: within its limit now",
    ]
    places = [lines.index(each) for each in told]
    assert places == sorted(places)


def test_controls_that_are_unlike_the_suspect_are_noted(project: Project) -> None:
    """Where quiet tests alone are there, they may not show what slowed a noisy one."""
    steady = {f"steady_{number}": latencies(10) for number in range(3)}
    write_turns(project, wild=latencies(10), alike=latencies(10), **steady)
    project.pytest("--ttnn-perf-update=new")
    (file,) = (project.path / "baselines").rglob("test_model.json")
    document = json.loads(file.read_text())
    for test, stored in document["tests"].items():
        values = (8, 12, 10, 8, 12) if "wild" in test else (10, 10, 10, 10, 10)
        (latency,) = stored["metrics"].values()
        latency["sessions"] = [[value, 0.01, 5, f"night-{n}"] for n, value in enumerate(values)]
    file.write_text(json.dumps(document))
    write_turns(project, wild=latencies(40), alike=latencies(40), **steady)

    done = gate(project, "-q", "-v")

    notes = [entry_of(project, id_of(name))["metrics"]["latency"].get("note") for name in
             ("wild", "alike")]  # fmt: skip
    assert notes == ["its controls are unlike it: what slows it may not slow them", None]
    assert f"note {id_of('wild')}: latency: {notes[0]}" in clean(done.text)
