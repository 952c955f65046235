"""What the checklist says of tests in a run, beside what the gate says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.behaviour.findings import checklist_of
from tests.behaviour.model import counts_of, entry_of, failure_of

if TYPE_CHECKING:
    from tests.harness.project import Project


def write_pcc(project: Project, call: str) -> None:
    project.write(
        test_model=f"""
            import numpy as np

            def test_model(ttnn_perf):
                up = np.arange(4.0)
                ttnn_perf.{call}
        """
    )


def outcome_of(project: Project, code: str) -> str:
    (found,) = (each for each in entry_of(project)["findings"] if each["code"] == code)
    return str(found["outcome"])


def test_a_drop_is_a_verdict_that_can_be_accepted(project: Project) -> None:
    write_pcc(project, "check_pcc(up, up)")
    project.pytest("--ttnn-perf-update=new")
    assert entry_of(project)["verdicts"]["pcc"]["outcome"] == "NO_BASELINE"
    write_pcc(project, "check_pcc(up, up + np.array([0, 0.2, 0, 0]))")

    dropped = project.pytest("--ttnn-perf", "--ttnn-perf-json=run.json")
    assert counts_of(dropped) == "1 failed"
    assert outcome_of(project, "TTP904") == "FOUND"
    assert checklist_of(dropped) == []

    gated = json.loads(project.cli("gate", "run.json", "--format", "json").text)
    assert [each["code"] for each in gated["findings"]] == ["TTP904"]

    accepted = project.pytest("--ttnn-perf-update=all", "--ttnn-perf-reason", "cheaper")
    assert counts_of(accepted) == "1 passed"
    # The record of the drop is judged by what is accepted now.
    anew = project.cli("gate", "run.json", "--format", "json")
    assert (anew.code, json.loads(anew.text)["findings"]) == (0, [])
    assert counts_of(project.pytest("--ttnn-perf")) == "1 passed"
    assert outcome_of(project, "TTP904") == "CLEAN"


def test_a_rule_that_raises_fails_its_test_and_no_other(project: Project) -> None:
    project.write(
        conftest="""
            from pytest_ttnn_perf.core.errors import RuleError
            from pytest_ttnn_perf.core.finding import Rule

            def broken(self, subject):
                if self.code == "TTP902" and subject.observation.test.endswith("test_model"):
                    raise RuleError(self.code, ValueError("seven is no eight"))
                return check(self, subject)

            check, Rule.check = Rule.check, broken
        """,
        test_model="""
            def test_model(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")

            def test_other(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")
        """,
    )

    ran = project.pytest_process("--ttnn-perf-update=new")

    assert counts_of(ran) == "1 failed, 1 passed"
    assert failure_of(ran).splitlines()[0] == (
        "rule TTP902 raised ValueError: seven is no eight: a defect of ttnn-perf; ignore the rule "
        "to go on"
    )
