"""A real kernel in tt-lang's own simulator, gated in worker processes as its author would."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of, failure_of, outcomes
from tests.harness.project import QUICK
from tests.ttlang.page import lines_of, printed, shown_after, write_page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project, Ran

ADD = "test_add.py::test_add"
BASELINE = "test_add.json"
#: A time that no run of the kernel comes near: whatever the machine does, none is slower.
LONG_NS = 3_600_000_000_000


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the baselines of the unchanged kernel are kept: recording them takes seconds."""
    return tmp_path_factory.mktemp("kept") / "baselines"


@pytest.fixture
def recorded(project: Project, kept: Path) -> Project:
    """Return the project of the page, with a baseline in which only the clock does not count."""
    write_page(project)
    baselines = project.path / "baselines"
    if not kept.exists():
        ran = gate(project, "--ttnn-perf-update=new")
        assert ran.code == 0, ran.text + ran.errors
        file = project.baseline(BASELINE)
        document = json.loads(file.read_text())
        document["tests"]["test_add"]["metrics"]["wall_time"]["sessions"] = [[LONG_NS, 0, 1]]
        file.write_text(json.dumps(document))
        baselines.rename(kept)
    shutil.copytree(kept, baselines)
    return project


def gate(project: Project, *arguments: str) -> Ran:
    """Run the gate in workers, without confirm passes: no verdict here is about time.

    Rules on how it was measured stay out as well: a busy machine is a finding.
    """
    options = ("--ttnn-perf", "--ttnn-perf-isolate=process", "--ttnn-perf-confirm=0")
    arguments = ("--ttnn-perf-ignore=TTP0", *arguments)
    return project.run(sys.executable, "-m", "pytest", *QUICK, *options, *arguments)


def change(project: Project, before: str, after: str) -> None:
    """Change the kernel."""
    file = project.path / "kernel.py"
    source = file.read_text()
    assert before in source
    file.write_text(source.replace(before, after))


def verdicts(project: Project) -> dict[str, str]:
    """Return the verdicts of the newest run, but for that of the clock."""
    return {name: found for name, found in outcomes(project, ADD).items() if name != "wall_time"}


def test_counters_are_recorded_beside_wall_time_and_pcc(project: Project) -> None:
    write_page(project)

    ran = gate(project, "-v", "--ttnn-perf-update=new")

    assert (ran.code, counts_of(ran)) == (0, "1 passed"), ran.text + ran.errors
    assert set(shown_after("## Record, gate")) <= set(printed(ran))
    metrics: dict[str, Any] = project.stored(BASELINE)["test_add"]["metrics"]
    counters = {name: metric for name, metric in metrics.items() if name.startswith("sim_")}
    assert metrics.keys() - counters.keys() == {"wall_time", "pcc"}
    assert {(each["source"], each["better"]) for each in counters.values()} == {("sim", "equal")}
    counts = {name: each["sessions"][0][0] for name, each in counters.items()}
    # Four nodes with three kernels each; 256 by 256 elements are 64 tiles.
    assert (counts["sim_operations"], counts["sim_kernels"]) == (1, 12)
    assert (counts["sim_dram_read_tiles_a"], counts["sim_dram_read_tiles"]) == (64, 128)
    assert counts["sim_dram_write_tiles_out"] == 64


def test_same_kernel_counts_the_same(recorded: Project) -> None:
    ran = gate(recorded, "-v")

    assert (ran.code, counts_of(ran)) == (0, "1 passed"), ran.text + ran.errors
    assert set(shown_after("the same kernel passes")) <= set(printed(ran))
    assert len(verdicts(recorded)) > 50
    assert set(verdicts(recorded).values()) == {"WITHIN"}


@pytest.mark.parametrize(
    ("before", "after", "words", "counter"),
    [
        ("block_count=2", "block_count=1", "hold one block", "sim_stall_ticks 1664, baseline 1648"),
        ("BLOCK = 2", "BLOCK = 1", "Smaller blocks", "sim_tensor_reads 128, baseline 32"),
    ],
    ids=["single-buffer", "small-blocks"],
)
def test_changed_kernel_is_caught_though_its_result_is_right(
    recorded: Project, before: str, after: str, words: str, counter: str
) -> None:
    change(recorded, before, after)

    ran = gate(recorded)

    assert (ran.code, counts_of(ran)) == (1, "1 failed"), ran.text + ran.errors
    failure = lines_of(failure_of(ran, "test_add"))
    assert f"REGRESSED: {counter}: it must not change" in failure
    assert failure == shown_after(words)
    found = verdicts(recorded)
    changed = {line.split()[1] for line in failure if line.startswith("REGRESSED: ")}
    assert {name for name, outcome in found.items() if outcome != "WITHIN"} == changed
    assert found["pcc"] == "WITHIN"


def test_kernel_that_computes_something_else_fails_on_pcc(recorded: Project) -> None:
    change(recorded, "a_block + b_block", "a_block - b_block")

    ran = gate(recorded)

    assert (ran.code, counts_of(ran)) == (1, "1 failed"), ran.text + ran.errors
    assert lines_of(failure_of(ran, "test_add")) == shown_after("A wrong kernel")
    assert {name for name, outcome in verdicts(recorded).items() if outcome != "WITHIN"} == {"pcc"}
