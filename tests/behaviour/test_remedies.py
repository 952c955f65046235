"""Every printed remedy resolves what it is printed for: each is run as it stands."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_ttnn_perf.experiments.try_change import commands
from pytest_ttnn_perf.report.tables import fitted
from tests.behaviour.model import configure, metric, write_latency, write_model
from tests.behaviour.turns import IN_WORKERS, latencies, write_turns
from tests.harness.benchmarks import complete_run
from tests.harness.captures import capture, op
from tests.harness.git import git_in
from tests.harness.project import Project, Ran
from tests.harness.workshop import Workshop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    #: Asked of the project after its remedy: what went wrong, or nothing.
    Check = Callable[[Project, Ran], bool]


def passes(project: Project, _: Ran) -> bool:
    return project.pytest("--ttnn-perf").code == 0


def answers(_: Project, ran: Ran) -> bool:
    return ran.code == 0 and bool(ran.text)


def writes(_: Project, ran: Ran) -> bool:
    return ran.code == 0 and "wrote baselines/" in ran.text


def appends(project: Project, _: Ran) -> bool:
    return all(
        len(one["sessions"]) == 2
        for test in project.stored().values()
        for one in test["metrics"].values()
    )


def has_no_orphan(project: Project, _: Ran) -> bool:
    return "without a test" not in project.pytest("--ttnn-perf").text


def is_fresh(project: Project, _: Ran) -> bool:
    return "stale" not in project.pytest("--ttnn-perf").text


def finds_it(_: Project, ran: Ran) -> bool:
    return ran.code == 1 and "REGRESSED" in ran.text


def is_judged(_: Project, ran: Ran) -> bool:
    return "NO_BASELINE" in ran.text


def known(project: Project, *milliseconds: float) -> None:
    """Store a baseline of the model."""
    write_latency(project, *milliseconds)
    assert project.pytest("--ttnn-perf-update=new").code == 0


def slower(project: Project) -> Ran:
    known(project, 10.0, 10.1)
    write_latency(project, 15.0, 15.1)
    return project.pytest("--ttnn-perf")


def several_slower(project: Project) -> Ran:
    write_turns(project, a=latencies(10.0, 15.0), b=latencies(20.0, 35.0), c=latencies(30.0, 15.0))
    assert project.pytest("--ttnn-perf-update=new").code == 0
    return project.pytest("--ttnn-perf", "-p", "no:randomly")


def faster(project: Project) -> Ran:
    known(project, 10.0, 10.1)
    write_latency(project, 5.0, 5.1)
    return project.pytest("--ttnn-perf")


def new(project: Project) -> Ran:
    write_latency(project, 10.0, 10.1)
    return project.pytest("--ttnn-perf")


def gated_record(project: Project) -> Ran:
    slower(project)
    return project.cli("gate", newest(project))


def too_noisy(project: Project) -> Ran:
    configure(project, 'too_noisy = "fail"')
    known(project, 5.0, 10.0, 15.0, 20.0)
    return project.pytest("--ttnn-perf")


def redefined(project: Project) -> Ran:
    write_model(project, latency=metric(10.0, unit="ms"))
    assert project.pytest("--ttnn-perf-update=new").code == 0
    write_model(project, latency=metric(10.0, unit="s"))
    return project.pytest("--ttnn-perf")


def counted_anew(project: Project) -> Ran:
    write_model(project, ops=metric(7, unit="", kind="count", better="equal"))
    assert project.pytest("--ttnn-perf-update=new").code == 0
    write_model(project, ops=metric(8, unit="", kind="count", better="equal"))
    return project.pytest("--ttnn-perf")


def no_longer_recorded(project: Project) -> Ran:
    write_model(project, latency=metric(10.0), rate=metric(10.0))
    assert project.pytest("--ttnn-perf-update=new").code == 0
    write_latency(project, 10.0)
    return project.pytest("--ttnn-perf")


def gone(project: Project) -> Ran:
    project.write(test_model=GONE)
    assert project.pytest("--ttnn-perf-update=new").code == 0
    project.write(test_model=GONE.replace("test_old", "test_new"))
    return project.pytest("--ttnn-perf")


BELOW = "def test_model(ttnn_perf): ttnn_perf.accuracy('top1', 0.9, at_least=0.99)"
#: What only the author knows.
GAPS = {"OLD": "test_model.py::test_old", "NEW": "test_model.py::test_new"}
GONE = """
    def test_model(ttnn_perf):
        ttnn_perf.record("latency", [10.0, 10.1], unit="ms")

    def test_old(ttnn_perf):
        ttnn_perf.record("latency", [90.0, 90.1], unit="ms")
"""


def stale(project: Project) -> Ran:
    known(project, 10.0, 10.1)
    file = project.baseline()
    document = json.loads(file.read_text())
    document["tests"]["test_model"]["accepted"]["at"] = "2024-02-29T12:00:00Z"
    file.write_text(json.dumps(document))
    return project.pytest("--ttnn-perf")


def moved_machine(project: Project) -> Ran:
    write_turns(project, **{name: latencies(10.0, 15.0) for name in "abcde"})
    assert project.pytest("--ttnn-perf-update=new").code == 0
    return project.pytest(*IN_WORKERS, "--ttnn-perf")


def nothing_known(project: Project) -> Ran:
    write_latency(project, 10.0)
    return project.cli("status")


def failed_before(project: Project) -> Ran:
    slower(project)
    return project.cli("status")


def wrong_file(project: Project) -> Ran:
    (project.path / "ops.csv").write_text(capture(op("MatmulDeviceOperation", 99_000)))
    return project.cli("gate", "ops.csv")


def found_in_capture(project: Project) -> Ran:
    convs = (op("Conv2dDeviceOperation", 99_000, cores=16) for _ in range(3))
    (project.path / "ops.csv").write_text(capture(*convs))
    return project.cli("check", "ops.csv")


def imported(project: Project) -> Ran:
    (project.path / "demo.json").write_text(json.dumps(complete_run()))
    (project.path / "baselines").mkdir()
    return project.cli("import", "demo.json", "--json", "run.json")


def slower_than_a_commit(project: Project) -> Ran:
    known(project, 10.0)
    write_latency(project, 10.0)
    (project.path / ".gitignore").write_text(".ttnn_perf\n__pycache__\n")
    for words in ("init -q -b main", "add -A", "commit -q -m fast", "commit -q --allow-empty -m b"):
        git_in(project.path, *words.split())
    write_latency(project, 15.0)
    return project.pytest("--ttnn-perf")


def below_limit(project: Project) -> Ran:
    project.write(test_model=BELOW)
    ran = project.pytest("--ttnn-perf-update=all", "--ttnn-perf-reason", "why")
    assert "fix the model, or change the limit in the test; no update accepts this" in ran.text
    return ran


def raised(project: Project) -> Ran:
    known(project, 10.0)
    project.write(test_model="def test_model(ttnn_perf): raise ValueError('x')")
    return project.pytest("--ttnn-perf")


def never_run(project: Project) -> Ran:
    known(project, 10.0)
    shutil.rmtree(project.path / ".ttnn_perf")
    return project.cli("explain", "test_model.py::test_model")


class Scene(NamedTuple):
    """What prints remedies, and each of them: its advice, then how it resolves the matter."""

    play: Callable[[Project], Ran]
    remedies: dict[str, Check]


SCENES = [
    Scene(slower, {"accept": passes}),
    Scene(slower_than_a_commit, {"compare": finds_it, "accept": passes}),
    Scene(several_slower, {"accept all 2 regressions": writes, "accept": writes, "keep": answers}),
    Scene(gated_record, {"accept": passes}),
    Scene(new, {"record": passes}),
    Scene(faster, {"keep": passes}),
    Scene(too_noisy, {"quiet the machine, or append this run to its baseline": appends}),
    Scene(redefined, {"correct the metric's definition in the test, or accept": passes}),
    Scene(counted_anew, {"accept": passes}),
    Scene(no_longer_recorded, {"record it again, or forget it": passes}),
    Scene(
        gone,
        {
            "remove those that are gone": has_no_orphan,
            "keep those of renamed tests": passes,
            "record": passes,
        },
    ),
    Scene(stale, {"begin anew": is_fresh}),
    Scene(moved_machine, {"accept the slower times": passes}),
    Scene(nothing_known, {"next": passes}),
    Scene(failed_before, {"next": answers}),
    Scene(wrong_file, {"expected a run record, found an ops_perf_results CSV": answers}),
    Scene(found_in_capture, {"see": answers}),
    Scene(below_limit, {}),
    Scene(raised, {}),
    Scene(never_run, {"no run is recorded here: make one": passes}),
    Scene(imported, {"judge it": is_judged}),
]


def newest(project: Project) -> str:
    runs = (project.path / ".ttnn_perf" / "runs").glob("*.json")
    return str(max(runs, key=lambda file: file.stat().st_mtime_ns).relative_to(project.path))


def printed(ran: Ran) -> list[tuple[str, str]]:
    """Return what is advised, with the command; one that has a gap to fill in is none."""
    found = re.findall(
        r"^(?:.*(?:; |::test_model: |\.csv: ))?(.+?)(?::| with) ((?:pytest|ttnn-perf) .*)$",
        ran.text + ran.errors,
        flags=re.MULTILINE,
    )
    return [(advice.strip(), command) for advice, command in dict.fromkeys(found)]


def run(project: Project, command: str) -> Ran:
    record = newest(project) if "RUN-ID" in command else ""
    words = shlex.split(command.replace(".ttnn_perf/runs/RUN-ID.json", record))
    words = [GAPS.get(word, word) for word in words]
    ran = Ran(0, "")
    for _, part in groupby(words, lambda word: word == "&&"):
        name, *rest = part
        if name != "&&":
            ran = {"pytest": project.pytest, "ttnn-perf": project.cli}[name](*rest)
    return ran


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.play.__name__)
def test_each_command_resolves_what_it_is_printed_for(
    scene: Scene, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp_path = tmp_path_factory.mktemp("copies")
    ran = scene.play(project)
    found = [each for each in printed(ran) if each[1] != "ttnn-perf ab REF"]
    assert {advice for advice, _ in found} == set(scene.remedies), ran.text
    before = shutil.copytree(project.path, tmp_path / "before")
    for advice, command in found:
        assert scene.remedies[advice](project, run(project, command)), command
        for path in project.path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(before, project.path, dirs_exist_ok=True)


@pytest.mark.parametrize(
    ("needless", "advice", "left"),
    [
        (1, "commit it", []),
        (3, "revert it", [" M accelerator.py"]),
    ],
)
def test_what_was_tried_is_kept_or_reverted_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needless: int, advice: str, left: list[str]
) -> None:
    workshop = Workshop(tmp_path)
    workshop.edit("model.py", "NEEDLESS = 2", f"NEEDLESS = {needless}")
    workshop.write("new 0.py", "new\n")
    tried = workshop.attempt("another number", monkeypatch)
    if advice == "revert it":
        workshop.write("accelerator.py", "edited since\n")
    place = workshop.root / "baselines"
    printed = commands(tried, place)
    assert list(printed) == [advice]

    (command,) = fitted(f"{advice}: {printed[advice]}", 80)
    subprocess.run(["bash", "-c", command.partition(": ")[2]], cwd=place, check=True)

    assert workshop.git("status", "--short").splitlines() == left
