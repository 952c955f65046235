"""pytest-xdist inside workers: nothing is lost, doubled or measured side by side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.behaviour.model import counts_of, entry_of, record_of
from tests.behaviour.turns import IN_WORKERS, id_of, latencies, write_turns

if TYPE_CHECKING:
    from tests.behaviour.turns import Turn
    from tests.harness.project import Project, Ran

pytest.importorskip("xdist", reason="pytest-xdist is not installed")

NOISY = "wall times measured side by side are noisy; timed sections take turns, everything else"


def gate(project: Project, *arguments: str) -> Ran:
    """Run the gate in workers, with two confirm passes."""
    return project.pytest("--ttnn-perf", *IN_WORKERS, *arguments)


def executed(project: Project, *names: str) -> list[int]:
    """Return how often each test was executed since it was written."""
    return [int((project.path / f"{name}.turn").read_text()) for name in names]


def test_failures_suspects_and_crashes_end_as_they_would_in_one_process(project: Project) -> None:
    names = ("slow", "cleared", "broken", "fine", "new", "lost", "lost_and_new", "after")
    known = [name for name in names if "new" not in name]
    write_turns(project, **dict.fromkeys(known, latencies(10)))
    project.pytest("--ttnn-perf-update=new")
    numbers = {"slow": (20,), "cleared": (20, 10), "fine": (10,), "new": (10,), "after": (10,)}
    later: dict[str, list[Turn]] = {name: latencies(*ms) for name, ms in numbers.items()}
    dying: list[Turn] = ["import os; os._exit(3)"]
    later |= {"broken": ["assert False"], "lost": dying, "lost_and_new": dying}
    write_turns(project, **{name: later[name] for name in names})

    ran = gate(project, "-n", "2", "--junitxml=junit.xml", "--ttnn-perf-confirm=1")

    assert (ran.code, counts_of(ran)) == (1, "5 failed, 3 passed")
    assert executed(project, "slow", "cleared", "broken", "new") == [2, 2, 1, 1]
    record = record_of(project)
    assert entry_of(project, id_of("slow"))["verdicts"]["latency"]["confirmed"] == [20]
    found = {
        name: next(iter(record["tests"][id_of(name)]["verdicts"].values()))["outcome"]
        for name in names
        if name != "lost_and_new"
    }
    assert found == {
        "slow": "REGRESSED", "cleared": "WITHIN", "broken": "NO_DATA", "fine": "WITHIN",
        "new": "NO_BASELINE", "lost": "NO_DATA", "after": "WITHIN",
    }  # fmt: skip
    (heading,) = [line for line in ran.text.splitlines() if "confirm 1/1:" in line]
    assert heading == "confirm 1/1: 2 tests and 2 controls again in a fresh process"
    (suite,) = ET.parse(project.path / "junit.xml").getroot()
    assert suite.attrib["tests"] == "8"
    for name in ("lost", "lost_and_new"):
        assert f"crashed while running '{id_of(name)}'" in ran.text
    # What no process told of is known to be measured by its baseline alone.
    assert id_of("lost_and_new") not in record["tests"]


#: Notes which process of pytest-xdist's a test ran in, and what of ours its children would inherit.
WHERE = """
    import json, os, pytest

    @pytest.mark.parametrize("number", range(2))
    def test_where(ttnn_perf, request, number):
        ttnn_perf.record("latency", 10.0, unit="ms")
        worker = getattr(request.config, "workerinput", {}).get("workerid", "")
        ours = {"TTNN_PERF_ASSIGNMENT", "TTNN_PERF_SHARE"} & set(os.environ)
        with open("where", "a") as stream:
            print(json.dumps([request.node.nodeid, worker, list(ours)]), file=stream)
"""


def test_it_distributes_in_its_own_way_and_passes_nothing_of_ours_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "2")
    # Inside another distributed run it is its own.
    for name, value in (("WORKER", "gw7"), ("WORKER_COUNT", "9"), ("TESTRUNUID", "outer")):
        monkeypatch.setenv(f"PYTEST_XDIST_{name}", value)
    project.write(test_one=WHERE, test_two=WHERE)

    ran = gate(project, "--ttnn-perf-missing=ignore", "-n", "auto", "--dist", "loadfile")

    assert (ran.code, counts_of(ran)) == (0, "4 passed")
    names = [f"test_{file}.py::test_where[{number}]" for file in ("one", "two") for number in "01"]
    assert sorted(record_of(project)["tests"]) == names
    noted = sorted(map(json.loads, (project.path / "where").read_text().splitlines()))
    assert [name for name, _, _ in noted] == names
    workers = [worker for _, worker, _ in noted]
    assert set(workers) == {"gw0", "gw1"}
    assert workers[0] == workers[1] != workers[2] == workers[3]
    assert [ours for _, _, ours in noted] == [[]] * 4
    assert f"ttnn-perf: -n auto: {NOISY} runs beside them" in ran.text.splitlines()


#: Two tests that meet before each timed section, and note when it begins and ends.
MEETING = """
    import os, time
    from pathlib import Path

    import pytest

    def meet(place, name):
        Path(f"{place}.{name}").touch()
        deadline = time.monotonic() + 300
        while len(list(Path().glob(f"{place}.*"))) < 2:
            assert time.monotonic() < deadline, f"alone at {place}"
            time.sleep(0.001)

    def work():
        start = time.monotonic_ns()
        time.sleep(0.03)
        with open("sections", "a") as stream:
            print(os.getpid(), start, time.monotonic_ns(), file=stream)

    @pytest.fixture(params=["left", "right"])
    def name(request):
        meet("setup", request.param)
        return request.param
"""
#: In one test each kind of timed section, entered by both processes at once.
MEASURED = """
    def test_model(ttnn_perf, name):
        meet("measure", name)
        ttnn_perf.measure(work, warmup=1, iterations=3)
        meet("pipelined", name)
        ttnn_perf.measure(work, warmup=1, iterations=2, pipelined=2)
        meet("region", name)
        with ttnn_perf.region("block"):
            work()
        meet("nested", name)
        with ttnn_perf.region("around"):
            ttnn_perf.measure(work, name="inside", warmup=1, iterations=2)
"""


def timed(project: Project) -> dict[int, list[tuple[int, int]]]:
    """Return when each process was in a timed section."""
    found: dict[int, list[tuple[int, int]]] = {}
    for line in (project.path / "sections").read_text().splitlines():
        process, start, end = map(int, line.split())
        found.setdefault(process, []).append((start, end))
    return found


def test_timed_sections_take_turns_and_nothing_else_does(project: Project) -> None:
    project.write(test_model=MEETING + MEASURED)

    ran = gate(project, "-n", "2", "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "2 passed"
    one, other = timed(project).values()
    assert len(one) == len(other) == 4 + 5 + 1 + 3
    assert all(end <= begin or finish <= start for start, end in one for begin, finish in other)
