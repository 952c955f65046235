"""``--ttnn-perf-select`` and ``select``: only some rules are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.findings import ERROR, WARNING, checklist_of, write_model
from tests.behaviour.model import MODEL, configure, counts_of, entry_of, failure_of, refusal_of

if TYPE_CHECKING:
    from tests.harness.project import Project


def asked(project: Project) -> set[str]:
    """Return the codes of all rules that the newest record has an answer of, or none."""
    entry = entry_of(project)
    answered = {finding["code"] for finding in entry["findings"]}
    return answered.union(*(each["codes"] for each in entry["unanswered"]))


@pytest.mark.parametrize("codes", ["ttp902", " TTP9 "])
def test_only_the_rules_that_are_named_are_asked(project: Project, codes: str) -> None:
    write_model(project)

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-select", codes)

    assert counts_of(ran) == "1 passed"
    assert checklist_of(ran)[0] == f"{MODEL}: {WARNING}"
    assert {code[:4] for code in asked(project)} == {"TTP9"}


def test_select_has_its_twin(project: Project) -> None:
    write_model(project)
    configure(project, 'select = ["ttp9"]')

    assert counts_of(project.pytest("--ttnn-perf-update=new")) == "1 passed"

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-select=TTP7")
    assert failure_of(ran).splitlines()[0] == ERROR
    assert checklist_of(ran) == [], "a failure is told once"


def test_a_code_that_no_rule_begins_with_is_refused(project: Project) -> None:
    write_model(project)

    project.pytest("--ttnn-perf", "--ttnn-perf-select=TTP701,TTP20")
    assert asked(project) == {"TTP701", "TTP201", "TTP202", "TTP203"}

    message = refusal_of(project.pytest("--ttnn-perf", "--ttnn-perf-select=TTP2,TTP22"))
    assert message == (
        "select: no rule begins with 'TTP22'; `ttnn-perf rules` lists them; did you mean TTP202?"
    )
