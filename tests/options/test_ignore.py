"""``--ttnn-perf-ignore`` and ``ignore``: some rules are not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.findings import WARNING, checklist_of, write_model
from tests.behaviour.model import MODEL, configure, counts_of, refusal_of

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.mark.parametrize("codes", ["TTP701", "ttp7"])
def test_rules_that_are_named_are_not_asked(project: Project, codes: str) -> None:
    write_model(project)

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-ignore", codes)

    assert counts_of(ran) == "1 passed"
    assert checklist_of(ran)[0] == f"{MODEL}: {WARNING}"


def test_ignore_has_the_last_word(project: Project) -> None:
    write_model(project)

    ran = project.pytest(
        "--ttnn-perf-update=new", "--ttnn-perf-select=TTP7,TTP902", "--ttnn-perf-ignore=TTP701"
    )

    assert counts_of(ran) == "1 passed"
    assert checklist_of(ran)[0] == f"{MODEL}: {WARNING}"


def test_ignoring_all_rules_is_refused_with_the_option_for_it(project: Project) -> None:
    write_model(project)

    assert refusal_of(project.pytest("--ttnn-perf", "--ttnn-perf-ignore", "TTP")) == (
        "ignore: TTP leaves no rule; to do without the checklist, use --ttnn-perf-checklist off"
    )


def test_ignore_has_its_twin(project: Project) -> None:
    write_model(project)
    configure(project, 'ignore = ["TTP701"]')

    assert counts_of(project.pytest("--ttnn-perf-update=new")) == "1 passed"
    assert counts_of(project.pytest("--ttnn-perf", "--ttnn-perf-ignore=TTP1")) == "1 failed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--ttnn-perf-ignore=TTP99"],
            "ignore: no rule begins with 'TTP99'; `ttnn-perf rules` lists them",
        ),
        (
            ["--ttnn-perf-select=TTP701", "--ttnn-perf-ignore=TTP6,TTP7"],
            "ignore: TTP6, TTP7 leaves none of the rules that select names",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    project: Project, arguments: list[str], message: str
) -> None:
    write_model(project)

    assert refusal_of(project.pytest("--ttnn-perf", *arguments)) == message
