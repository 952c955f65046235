"""A batch that does not divide among devices."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.kernels import NO_DATA_PARALLELISM, data_parallel_ways
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP701", "batch-not-divisible", Severity.ERROR, Input.DEVICE)
def batch_not_divisible(
    subject: Subject, *, left_over: Limit = Limit(0, "samples", "devices run in step")
) -> Answer:
    """The batch does not divide among the devices.

    ## What it finds
    With data parallelism, the samples that are left over when the batch is shared evenly.

    ## Why it matters
    All devices run the same program at the same time. Samples that are left over are dropped,
    padded, or leave the other devices idle for a whole pass.

    ## What to do
    Use a batch that is a multiple of the number of devices that share it.

    ## When it is no problem
    Without data parallelism the rule does not apply: with tensor parallelism, all devices work on
    the whole batch.

    ## Where it looks
    `batch` of the marker, else the fact `batch` or `batch_size`; and the fact `data_parallel`,
    which is the number of devices that share the batch or true for all of them. Without that fact,
    inputs that a report database says to be sharded along their first dimension.
    """
    ways = data_parallel_ways(subject)
    if ways == 1:
        return Answer.not_applicable(NO_DATA_PARALLELISM)
    if not ways:
        return Answer.not_measured("it is not known how many devices share the batch")
    batch = _batch(subject)
    if batch is None:
        return Answer.not_measured("the batch is not known: give it as batch= in the marker")
    left = batch % ways
    return left_over.at_most(left, f"a batch of {batch} among {ways} devices leaves {left} over")


def _batch(subject: Subject) -> int | None:
    marked = subject.observation.environment if subject.observation is not None else {}
    stated = (marked.get("batch"), subject.facts.get("batch"), subject.facts.get("batch_size"))
    numbers = (fact for fact in stated if isinstance(fact, int) and not isinstance(fact, bool))
    return next((number for number in numbers if number > 0), None)
