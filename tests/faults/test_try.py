"""``ttnn-perf try`` in processes of its own that are interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.experiments.journal import Decision, read_steps
from tests.faults.test_ab import SIGNAL, assert_nothing_left
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path


def test_ctrl_c_keeps_what_there_is_and_says_how_to_go_on(tmp_path: Path) -> None:
    """In the second round, in the working tree's own worker, with something staged."""
    versions = Versions(tmp_path)
    ends = SIGNAL.format(number=3, name="SIGINT")
    versions.model(a={"latency": 10.0}, ends=ends)
    versions.commit("Start")
    versions.model(a={"latency": 5.0}, ends=ends)
    versions.write("new.txt", "staged")
    versions.git("add", "new.txt")
    before = versions.state()

    ran = versions.command("try", "-m", "half of it")

    assert ran.code == 7
    lines = ran.text.splitlines()
    assert lines[:3] == [
        "CANNOT_TELL: half of it",
        "  interrupted: rounds that are complete: 1; it takes 3 to judge",
        "compared with 9238387 Start (1 round)",
    ]
    assert "measure longer: the same command, until it is done" in lines
    after = versions.state()
    assert (after[:2], after[3:]) == (before[:2], before[3:]), "index, files, stash: untouched"
    assert_nothing_left(versions, ran)
    (step,) = read_steps(versions.root / ".ttnn_perf")
    assert (step.decision, step.rounds) == (Decision.CANNOT_TELL, 1)
