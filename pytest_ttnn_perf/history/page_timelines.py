"""What a page shows of when ops ran: one step of each region, shortened where it is long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, visible
from pytest_ttnn_perf.analysis.ops.names import op_name
from pytest_ttnn_perf.analysis.ops.regions import middle_steps, regions_of
from pytest_ttnn_perf.analysis.ops.timeline import Alignment, Clock, timeline_of
from pytest_ttnn_perf.report.numbers import format_ns
from pytest_ttnn_perf.report.page.contents import PageLane, PageTimeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.timeline import Span, Timeline
    from pytest_ttnn_perf.records.ops import OpTable

#: Spans on a page, and of one timeline: a drawing shows no more, and a page must still open.
_ALL, _LEAST, _MOST = 30_000, 200, 4_000
#: Where all devices pause for so many times as long as they work, pauses are drawn shorter.
_MOSTLY_PAUSES: Final = 2.0
#: From so many microseconds on, two decimals of one are enough.
_LONG_US: Final = 10_000.0
_KERNEL, _WAITS = "k", "w"


def most_spans(timelines: int) -> int:
    """Return how many spans each timeline of a page may have.

    >>> most_spans(1), most_spans(20), most_spans(1000)
    (4000, 1500, 200)
    """
    return max(_LEAST, min(_MOST, _ALL // max(timelines, 1)))


class DrawnTimelines(NamedTuple):
    """Timelines, and what is to be known of their times."""

    timelines: tuple[PageTimeline, ...]
    notes: tuple[str, ...]


def timelines_of(table: OpTable, *, most: int) -> DrawnTimelines:
    """Return when the ops of a capture ran: of each region in its middle step."""
    drawn: list[PageTimeline] = []
    notes: dict[str, None] = {}
    for region in regions_of(table).regions:
        timeline = timeline_of(table, middle_steps(table, region)[0])
        drawn.append(_drawn(table, timeline, region.name, most))
        if timeline.clock is not Clock.CYCLES:
            notes[f"timelines: starts are {timeline.clock.value}"] = None
        if timeline.alignment is not Alignment.ALONE:
            notes[f"timelines: devices are put {timeline.alignment.value}"] = None
    return DrawnTimelines(tuple(drawn), tuple(notes))


def _drawn(table: OpTable, timeline: Timeline, region: str, most: int) -> PageTimeline:
    shortened: list[str] = []
    each = most // max(len(timeline.lanes), 1)
    longest = max(map(len, timeline.lanes.values()), default=0)
    lanes = {device: spans[:each] for device, spans in timeline.lanes.items()}
    if longest > each:
        shortened.append(f"the first {each} of {longest} ops of each device")
    drawn, told = _with_short_pauses(lanes)
    shortened += told
    names: dict[str, int] = {}
    return PageTimeline(
        region=visible(region),
        lanes=tuple(_lane(table, device, spans, names) for device, spans in drawn.items()),
        names=tuple(names),
        shortened="; ".join(shortened),
    )


def _lane(table: OpTable, device: int, spans: Sequence[Span], names: dict[str, int]) -> PageLane:
    parts = list(_parts(spans))
    decimals = 2 if spans and spans[-1].end_ns / 1000 > _LONG_US else 3
    ops = [table.op(span.row) for span, _, _, _ in parts]
    texts = [visible(op_name(op.signature, op.attributes)) for op in ops]
    return PageLane(
        device=f"device {device}",
        starts_us=tuple(round(start / 1000, decimals) for _, start, _, _ in parts),
        durations_us=tuple(round(ns / 1000, 3) for _, _, ns, _ in parts),
        names=tuple(names.setdefault(text, len(names)) for text in texts),
        kinds="".join(kind for _, _, _, kind in parts),
    )


def _parts(spans: Sequence[Span]) -> Iterator[tuple[Span, float, float, str]]:
    """Yield what is drawn: a collective is first waiting for others, then their exchange."""
    for span in spans:
        if span.waits_ns > 0:
            yield span, span.start_ns, span.waits_ns, _WAITS
        if span.kernel_ns > span.waits_ns:
            left_ns = span.kernel_ns - span.waits_ns
            yield span, span.start_ns + span.waits_ns, left_ns, _KERNEL


def _with_short_pauses(
    lanes: Mapping[int, Sequence[Span]],
) -> tuple[Mapping[int, Sequence[Span]], list[str]]:
    """Cut pauses of all devices, where these are most of the time; say which, and how much."""
    ordered = sorted((s for spans in lanes.values() for s in spans), key=lambda s: s.start_ns)
    pauses: list[tuple[float, float]] = []
    until_ns = ordered[0].end_ns if ordered else 0.0
    for span in ordered[1:]:
        if span.start_ns > until_ns:
            pauses.append((span.start_ns, span.start_ns - until_ns))
        until_ns = max(until_ns, span.end_ns)
    paused_ns = sum(ns for _, ns in pauses)
    worked_ns = until_ns - paused_ns - (ordered[0].start_ns if ordered else 0.0)
    if paused_ns <= _MOSTLY_PAUSES * worked_ns:
        return lanes, []
    most_ns = worked_ns / len(pauses)
    cut = [(start, ns - most_ns) for start, ns in pauses if ns > most_ns]
    left_out_ns = sum(ns for _, ns in cut)
    told = (
        f"{counted(len(cut), 'pause')} of more than {format_ns(most_ns)} drawn as that long: "
        f"{format_ns(left_out_ns)} left out"
    )
    return {device: list(_earlier(spans, cut)) for device, spans in lanes.items()}, [told]


def _earlier(spans: Sequence[Span], cut: Sequence[tuple[float, float]]) -> Iterator[Span]:
    """Yield spans without the pauses that end before them."""
    place, gone_ns = 0, 0.0
    for span in spans:
        while place < len(cut) and cut[place][0] <= span.start_ns:
            gone_ns += cut[place][1]
            place += 1
        yield span._replace(start_ns=span.start_ns - gone_ns)
