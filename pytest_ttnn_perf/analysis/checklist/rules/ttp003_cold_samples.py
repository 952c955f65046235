"""Samples that were taken before the model was warm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, Trouble, found_troubles, rule
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.metric import Kind, Source, median

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation

#: Times of one call each, which are meant to be cold.
_COLD: Final = frozenset({"first_call_time", "second_call_time", "call_time", "compile_time"})
#: Times of a measured callable, whose warm-up is known even where there was none.
_WARMED: Final = frozenset({"wall_time", "throughput_time"})
#: Fewer samples do not tell which of them is off.
_ENOUGH: Final = 3


@rule("TTP003", "cold-samples", Severity.WARNING, Input.TEST)
def cold_samples(
    observation: Observation,
    facts: Mapping[str, Scalar],
    *,
    warmup: Limit = Limit(3, "warm-up calls", "tt-xla and tt-lang warm up three times"),
    first: Limit = Limit(1.5, "x the median", "a call that compiles takes several times as long"),
) -> Answer:
    """The samples may have been taken from a cold model.

    ## What it finds
    A program cache that grew while samples were taken, a first sample far above the others, or
    fewer warm-up calls than a model needs.

    ## Why it matters
    The first call compiles, the second may capture a trace or fill caches. Their time is not the
    model's, and differs from run to run.

    ## What to do
    Leave `warmup` at 3 or more, and warm the model up with the shapes that are measured.

    ## When it is no problem
    When the cold call itself is what is measured: `first_call_time` is recorded for that, and left
    out here, as is the time of a whole test.

    ## Where it looks
    The warm-up and the samples of the times that the test measured, and the number of programs in
    the cache before and after them.
    """
    timed = [observed for observed in observation.metrics.values() if _is_sampled(observed)]
    if not timed:
        return Answer.not_applicable("no time was sampled")
    troubles = [
        *_growth({**observation.environment, **facts}),
        *_first_samples(timed, first),
        *_warmups(timed, warmup),
    ]
    if troubles:
        return found_troubles(troubles)
    known = [len(observed.warmup) for observed in timed if _is_warmed(observed)]
    return warmup.clean(min(known, default=None))


def _first_samples(timed: Sequence[MetricObservation], limit: Limit) -> Iterator[Trouble]:
    for observed in timed:
        first, *others = observed.samples
        usual = median(others) if len(observed.samples) >= _ENOUGH else 0.0
        if usual > 0 and first / usual > limit.value:
            ratio = first / usual
            text = f"the first sample of {observed.metric.name} is {ratio:.2f} x the median"
            yield Trouble(text, ratio, limit.value, limit.unit)


def _warmups(timed: Sequence[MetricObservation], limit: Limit) -> Iterator[Trouble]:
    for observed in timed:
        count = len(observed.warmup)
        if _is_warmed(observed) and count < limit.value:
            text = f"{observed.metric.name} was sampled after {counted(count, 'warm-up call')}"
            yield Trouble(text, count, limit.value, limit.unit)


def _is_sampled(observed: MetricObservation) -> bool:
    metric = observed.metric
    timed = metric.kind is Kind.TIME and metric.source is Source.WALL
    return timed and bool(observed.samples) and metric.name not in _COLD


def _is_warmed(observed: MetricObservation) -> bool:
    return bool(observed.warmup) or observed.metric.name in _WARMED


def _growth(environment: Mapping[str, Scalar]) -> Iterator[Trouble]:
    before = environment.get("program_cache_entries_before")
    after = environment.get("program_cache_entries_after")
    if isinstance(before, int) and isinstance(after, int) and after > before:
        text = f"the program cache grew from {before} to {after} while samples were taken"
        yield Trouble(text, after - before, 0, "programs")
