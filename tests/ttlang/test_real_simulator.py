"""A real kernel in tt-lang's own simulator, gated as a script and in a suite of tests."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tests.behaviour.model import counts_of, outcomes
from tests.docs.pages import Reader
from tests.harness.project import QUICK
from tests.ttlang.page import PAGE, write_page

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

ADD = "test_add.py::test_add"
BASELINE = "test_add.json"
#: A time that no run of the kernel comes near: whatever the machine does, none is slower.
LONG_NS = 3_600_000_000_000


def gate(project: Project, *arguments: str) -> Ran:
    """Run the gate in workers, without confirm passes: no verdict here is about time.

    Rules on how it was measured stay out as well: a busy machine is a finding.
    """
    options = ("--ttnn-perf", "--ttnn-perf-isolate=process", "--ttnn-perf-confirm=0")
    arguments = ("--ttnn-perf-ignore=TTP0", *arguments)
    return project.run(sys.executable, "-m", "pytest", *QUICK, *options, *arguments)


def test_the_page_shows_what_its_commands_print(project: Project) -> None:
    write_page(project)
    differences = [
        f"$ {command}\nnot printed, or not in this order: {missing}\n{output}"
        for command, missing, output in Reader(project.path).follow(PAGE)
        if missing
    ]
    assert not differences, "\n".join(differences)


def test_a_script_that_is_wrong_stores_nothing_and_traces_of_ops_alone_are_none(
    project: Project,
) -> None:
    write_page(project)
    kernel = project.path / "kernel.py"
    source = kernel.read_text()
    command = ("run", "--update=new", "--ttnn-perf-confirm=0", "--", sys.executable, "kernel.py")
    kernel.write_text(source.replace("a_block + b_block", "a_block - b_block"))
    ran = project.cli_process(*command)
    assert ran.code == 1
    assert "kernel.py ended with exit code 1" in ran.text
    kernel.write_text(source.replace("    add(a, b, out)\n", "    out = ttnn.add(a, b)\n"))
    ran = project.cli_process(*command)
    assert (ran.code, "no @ttl.operation was called" in ran.text) == (1, True)
    assert not list(project.path.glob("baselines/*/*.json"))


def test_a_kernel_in_a_suite_is_gated_by_its_counts_and_its_pcc(project: Project) -> None:
    write_page(project)

    ran = gate(project, "--ttnn-perf-update=new")

    assert (ran.code, counts_of(ran)) == (0, "1 passed"), ran.text + ran.errors
    file = project.baseline(BASELINE)
    document = json.loads(file.read_text())
    metrics: dict[str, Any] = document["tests"]["test_add"]["metrics"]
    counters = {name: metric for name, metric in metrics.items() if name.startswith("sim_")}
    assert metrics.keys() - counters.keys() == {"wall_time", "pcc"}
    assert {(each["source"], each["better"]) for each in counters.values()} == {("sim", "equal")}
    counts = {name: each["sessions"][0][0] for name, each in counters.items()}
    # Four nodes with three kernels each; 256 by 256 elements are 64 tiles.
    assert (counts["sim_operations"], counts["sim_kernels"]) == (1, 12)
    assert (counts["sim_dram_read_tiles_a"], counts["sim_dram_read_tiles"]) == (64, 128)
    assert counts["sim_dram_write_tiles_out"] == 64

    metrics["wall_time"]["sessions"] = [[LONG_NS, 0, 1]]
    file.write_text(json.dumps(document))
    ran = gate(project)
    assert (ran.code, counts_of(ran)) == (0, "1 passed"), ran.text + ran.errors
    found = outcomes(project, ADD)
    assert len(found) > 50
    assert {outcome for name, outcome in found.items() if name != "wall_time"} == {"WITHIN"}

    # As much work as before, and wrong.
    kernel = project.path / "kernel.py"
    kernel.write_text(kernel.read_text().replace("a_block + b_block", "a_block - b_block"))
    ran = gate(project)
    assert (ran.code, counts_of(ran)) == (1, "1 failed"), ran.text + ran.errors
    found = outcomes(project, ADD)
    wrong = {name for name, outcome in found.items() if outcome != "WITHIN"}
    assert wrong - {"wall_time"} == {"pcc"}
