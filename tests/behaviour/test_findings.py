"""What the checklist says of tests in a run, beside what the gate says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, failure_of

if TYPE_CHECKING:
    from tests.harness.project import Project


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
