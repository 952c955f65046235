"""Weights that copies of a model do not have to themselves."""

from __future__ import annotations

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.kernels import (
    NO_DATA_PARALLELISM,
    data_parallel_ways,
    weights_on_mesh,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity, Subject


@rule("TTP702", "weights-not-replicated", Severity.INFO, Input.DEVICE)
def weights_not_replicated(
    subject: Subject, *, weights: Limit = Limit(0, "weights", "data parallelism copies all weights")
) -> Answer:
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
    if data_parallel_ways(subject) == 1:
        return Answer.not_applicable(NO_DATA_PARALLELISM)
    if subject.report is None:
        return Answer.not_measured(subject.why_absent(Input.REPORT))
    placed = list(weights_on_mesh(subject.report))
    if not placed:
        return Answer.not_measured("the report does not say how weights are placed on the mesh")
    cut = [weight for weight in placed if weight.ways() > 1]
    return weights.at_most(
        len(cut),
        f"cut among devices: {len(cut)} of {counted(len(placed), 'weight')}",
        (Evidence(weight.name, weight.ways(), "parts") for weight in cut),
    )
