"""``waive``: what a project does without, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.findings import ERROR, checklist_of, write_model
from tests.behaviour.model import MODEL, configure, counts_of, entry_of, refusal_of

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_a_waived_error_fails_nothing_and_says_why_by_the_reason_of_the_test(
    project: Project,
) -> None:
    write_model(project, 'waive={"TTP701": "the last batch is padded"}')
    configure(project, "[tool.ttnn_perf.rules.TTP701]", 'waive = "ours"')

    ran = project.pytest("--ttnn-perf-update=new", "-v")

    assert counts_of(ran) == "1 passed"
    assert checklist_of(ran)[0] == f"{MODEL}: {ERROR}; waived: the last batch is padded"
    assert "checklist: 1 warning" in ran.text
    waived = {each["code"]: each.get("waived") for each in entry_of(project)["findings"]}
    assert waived["TTP701"] == "the last batch is padded"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["[tool.ttnn_perf.rules.TTP203]", 'waive = " "'],
            "[tool.ttnn_perf] rules.TTP203.waive: expected the reason to do without the rule, "
            "found ' '",
        ),
        (
            ["[tool.ttnn_perf.rules.TTP203]", "shares = 0.1"],
            "rules.TTP203: it has no limit 'shares'; its limits: share",
        ),
        (
            ["[tool.ttnn_perf.rules.TTP999]", "share = 0.1"],
            "rules.TTP999: there is no such rule; `ttnn-perf rules` lists them; "
            "did you mean TTP909?",
        ),
    ],
)
def test_what_a_project_cannot_mean_is_refused(
    project: Project, lines: list[str], message: str
) -> None:
    write_model(project)
    configure(project, *lines)

    assert refusal_of(project.pytest("--ttnn-perf")).endswith(message)
