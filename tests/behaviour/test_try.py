"""``ttnn-perf try`` says what to do with a change, and does none of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.experiments import try_change
from pytest_ttnn_perf.experiments.journal import (
    Decision,
    Prediction,
    read_steps,
    steps_of_branch,
    ways_of,
)
from tests.harness.project import run_command
from tests.harness.versions import Versions
from tests.harness.workshop import TEST, Workshop

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.core.observation import Observation


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_in_processes_of_their_own_both_sides_run_their_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = Versions(tmp_path)
    versions.model(a={"latency": 10.0})
    versions.commit("Start")
    versions.model(a={"latency": 5.0})
    versions.write("src/new.py", "")
    before = versions.state()

    ran = versions.command("try", "-m", "half of it", "--rounds=3", "--format=json")

    told = json.loads(ran.text)
    assert (ran.code, told["decision"], told["rounds"]) == (0, "KEEP", 3), ran.errors
    assert len(versions.processes()) == 6, "no more than ab"
    assert told["effects"][0]["low"] <= -0.5 <= told["effects"][0]["high"]
    assert told["commands"]["commit it"].startswith("git add -- src/new.py && git commit -a -m")
    after = versions.state()
    assert (after[:2], after[3:]) == (before[:2], before[3:]), "index, files, stash: untouched"
    assert versions.left_behind() == []

    monkeypatch.chdir(versions.root)
    again = run_command("try", "-m", "once more")
    assert again.code == 2
    assert "nothing to try: the working tree is the same as kept step 'half of it'" in again.errors

    versions.git("restore", f"--source={told['state']['commit']}", "--", ":/")
    assert versions.state()[1] == before[1], "a state can be restored from its commit"

    versions.write("test_model.py", (versions.root / "test_model.py").read_text() + "# other\n")
    refused = run_command("try", "-m", "other", "test_model.py")
    assert refused.code == 1
    assert refused.text.splitlines()[:2] == [
        "NOT_COMPARABLE: other",
        "  test edited: test_model.py",
    ]
    assert len(versions.processes()) == 6, "nothing is measured in vain"

    journal = run_command("journal")
    assert "test_model.py::test_model[a] latency: 10.00 ms → 5.000 ms (-50.0 %)" in journal.text
    assert run_command("journal", "test_other.py").errors == (
        "ttnn-perf: no step has measured test_other.py; steps have measured: "
        "test_model.py::test_model[a]\n"
    )


def test_a_lower_pcc_that_holds_its_limit_is_told_and_kept(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.edit("model.py", "bfloat16", "bfloat8_b")
    tried = workshop.attempt("bfloat8_b weights", monkeypatch)
    pcc = next(e for e in tried.step.effects if e.metric == "pcc")
    assert tried.step.decision is Decision.KEEP
    assert pcc.before is not None
    assert pcc.after is not None
    assert pcc.before > pcc.after >= (pcc.at_least or 1)
    assert tried.step.situations[TEST].by_op is not None


def test_settings_that_a_change_may_be_about_are_told_and_others_cannot_be_compared(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.edit(
        "model.py", "CORES = 8", 'FACTS = {"num_command_queues": 1, "size": 8}\nCORES = 8'
    )
    workshop.commit("Facts")
    workshop.edit("model.py", '"num_command_queues": 1', '"num_command_queues": 2')
    workshop.edit("model.py", "CORES = 8", "CORES = 16")
    tried = workshop.attempt("two queues", monkeypatch)
    assert tried.step.decision is Decision.KEEP

    workshop.edit("model.py", '"size": 8', '"size": 4')
    tried = workshop.attempt("smaller", monkeypatch)
    assert tried.step.decision is Decision.CANNOT_TELL
    assert "cannot be compared: size is 4, in kept 8" in tried.step.reasons[0]


def test_a_baseline_that_was_accepted_is_no_part_of_a_step(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.edit("model.py", "CORES = 8", "CORES = 16")
    assert workshop.attempt("16 cores", monkeypatch).step.is_kept
    workshop.write("baselines/example.json", '{"accepted": 1}\n')
    workshop.commit("16 cores, accepted")
    workshop.edit("model.py", "CORES = 16", "CORES = 32")
    workshop.write("new.py", "")
    workshop.commit("32 cores")
    assert workshop.attempt("32 cores", monkeypatch).step.decision is Decision.NOT_COMPARABLE
    tried = workshop.attempt("32 cores", monkeypatch, base="HEAD~1")
    assert tried.step.is_kept
    assert tried.new_files == (), "it is committed: no command has it"


def test_a_working_tree_that_is_edited_meanwhile(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.edit("model.py", "CORES = 8", "CORES = 16")
    observe = Workshop.observe

    def edit_and_observe(self: Workshop, tree: Path, *, checklist: bool) -> Observation:
        (self.root / "written_by_a_test.txt").write_text("no part of it")
        if tree == self.root and not checklist:
            (self.root / "model.py").write_text((tree / "model.py").read_text() + "#\n")
        return observe(self, tree, checklist=checklist)

    monkeypatch.setattr(Workshop, "observe", edit_and_observe)
    made = Prediction(TEST, ("TTP305",), "sim_time", predicted_ns=9.0, measured_ns=1.0)
    monkeypatch.setattr(try_change, "predictions_of", lambda *_: (made,))
    tried = workshop.attempt("16 cores", monkeypatch)
    assert tried.step.predictions == (), "nobody knows of what"
    assert tried.step.decision is Decision.CANNOT_TELL
    assert tried.step.reasons == ("the working tree was edited while it was measured",)


def test_with_what_a_change_is_compared(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def words(**asked: object) -> str:
        return workshop.attempt("a step", monkeypatch, **asked).base.words

    with pytest.raises(UsageError, match="nothing to try: the working tree is as committed, and"):
        words()
    workshop.git("branch", "main")
    workshop.edit("model.py", "CORES = 8", "CORES = 16")
    assert words().endswith(" Start")
    workshop.edit("model.py", "CORES = 16", "CORES = 32")
    workshop.write("new.py", "")
    tried = workshop.attempt("a step", monkeypatch)
    assert tried.base.words == "kept step 'a step'", "kept, and not committed"
    assert tried.new_files == ("new.py",)
    assert words(base="HEAD").endswith(" Start"), "as asked"
    workshop.commit("More cores")
    with pytest.raises(UsageError, match="the working tree is the same as kept step 'a step'"):
        words()
    workshop.edit("model.py", "CORES = 32", "CORES = 64")
    assert words().endswith(" More cores"), "committed since"

    for file in (workshop.root / ".ttnn_perf/steps").iterdir():
        file.unlink()
    workshop.commit("All cores")
    assert words().endswith(" Start, where the branch begins"), "all is committed"


def test_a_step_that_was_kept_elsewhere_or_is_gone_is_no_base(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.git("branch", "main")
    workshop.edit("model.py", "NEEDLESS = 2", "NEEDLESS = 1")
    workshop.commit("Another way")
    workshop.edit("model.py", "CORES = 8", "CORES = 16")
    assert workshop.attempt("kept elsewhere", monkeypatch).step.is_kept
    workshop.git("checkout", "--quiet", "--force", "main")
    workshop.edit("model.py", "CORES = 8", "CORES = 32")
    assert workshop.attempt("on main", monkeypatch).base.words.endswith(" Start")

    for name in workshop.git("for-each-ref", "refs/ttnn-perf", "--format=%(refname)").split():
        workshop.git("update-ref", "-d", name)
    workshop.git("gc", "--quiet", "--prune=now")
    workshop.edit("model.py", "CORES = 32", "CORES = 64")
    tried = workshop.attempt("what git has thrown away", monkeypatch)
    assert tried.base.words.endswith(" Start")


def test_a_kept_step_that_was_discarded_is_no_base_and_counts_nothing(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.edit("model.py", "CORES = 8", "CORES = 16")
    workshop.attempt("16 cores", monkeypatch)
    workshop.edit("model.py", "CORES = 16", "CORES = 32")
    assert workshop.attempt("32 cores", monkeypatch).base.words == "kept step '16 cores'"

    workshop.git("checkout", "--quiet", ".")
    workshop.write("notes.py", "")
    workshop.commit("Notes")
    workshop.edit("model.py", "NEEDLESS = 2", "NEEDLESS = 1")
    tried = workshop.attempt("one less", monkeypatch)

    assert tried.base.words.endswith(" Notes")
    assert tried.remarks[0] == "kept step '32 cores' is not in this tree"
    steps, gone = steps_of_branch(workshop.root, read_steps(workshop.root / ".ttnn_perf"))
    (way,) = ways_of(steps, gone)
    assert [part.leads for part in way.parts] == [False, False, True]

    workshop.git("stash", "--quiet")
    with pytest.raises(UsageError, match="the working tree is as committed, and no step was kept"):
        workshop.attempt("nothing", monkeypatch)


def test_a_test_that_fails_is_to_be_reverted_for_that_and_for_nothing_that_follows(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = "return output", "return output * np.nan"
    workshop.edit("model.py", before, after)
    step = workshop.attempt("broken", monkeypatch).step
    assert (step.decision, step.refusals) == (Decision.REVERT, ())
    why = "pcc is not a finite number: actual holds"
    assert step.reasons[0].startswith(f"{TEST} failed: round 1: {why}")

    workshop.commit("Broken")
    workshop.edit("model.py", after, before)
    step = workshop.attempt("mended", monkeypatch).step
    assert step.decision is Decision.CANNOT_TELL
    assert any(why in reason for reason in step.reasons)
