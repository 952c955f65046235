"""Weights that copies of a model do not have to themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.kernels import (
    NO_DATA_PARALLELISM,
    data_parallel_ways,
    placed_weights,
)
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class WeightsNotReplicated(Rule):
    """With data parallelism, weights are cut among devices.

    ## What it finds
    Weights of matmuls and convolutions that are sharded over the mesh although the batch is shared
    among its devices.

    ## Why it matters
    A copy of the model that has only a part of its weights needs collectives to get at the rest.

    ## What to do
    Load weights with `ttnn.ReplicateTensorToMesh`, and shard only the inputs.

    ## When it is no problem
    Models that are too large for one device, and meshes with data parallelism along one dimension
    and tensor parallelism along the other, have to shard their weights.

    ## Where it looks
    The placements of second operands in the arguments of a report database. Data parallelism is the
    fact `data_parallel`, or an input that is sharded along its first dimension.
    """

    code: ClassVar[str] = "TTP702"
    name: ClassVar[str] = "weights-not-replicated"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[Input, ...]] = (Input.DEVICE,)

    weights: float = limit(0, unit="weights", source="data parallelism copies all weights")

    def check(self, subject: Subject) -> Answer:
        """Compare the number of weights that are cut with the limit."""
        if data_parallel_ways(subject) == 1:
            return not_applicable(NO_DATA_PARALLELISM)
        if subject.report is None:
            return not_measured(subject.why_absent(Input.REPORT))
        placed = list(placed_weights(subject.report))
        if not placed:
            return not_measured("the report does not tell how weights are placed on the mesh")
        cut = [each for each in placed if each.ways() > 1]
        if len(cut) <= self.weights:
            return clean(len(cut), limit=self.weights, unit="weights")
        return found(
            f"cut among devices: {len(cut)} of {counted(len(placed), 'weight')}",
            value=len(cut),
            limit=self.weights,
            unit="weights",
            evidence=[Evidence(each.name, each.ways(), "parts") for each in cut],
        )
