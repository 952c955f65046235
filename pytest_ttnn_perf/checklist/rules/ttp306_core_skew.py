"""Cores that wait for the slowest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf.checklist.rule import Rule, not_measured
from pytest_ttnn_perf.model.finding import Severity
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.subject import Subject


@dataclass(frozen=True, slots=True)
class CoreSkew(Rule):
    """Some cores of an op work much longer than others.

    ## What it finds
    Nothing yet: op tables are read without the times of single cores, so the rule always answers
    that it cannot tell.

    ## Why it matters
    An op ends with its slowest core. All others wait for it.

    ## What to do
    Choose a core grid that divides the tiles of the tensor, so that all cores get as many.

    ## When it is no problem
    Cores at the edge of a tensor always have a little less to do.

    ## Where it looks
    The shortest and the longest kernel time of a core, per op.
    """

    code: ClassVar[str] = "TTP306"
    name: ClassVar[str] = "core-skew"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    def check(self, subject: Subject) -> Answer:  # noqa: ARG002
        """Answer that times of cores are not known."""
        return not_measured("the capture does not tell times per core")
