"""All analyses of a capture at a glance: the main figure of each, and which could not be made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.checklist.analyses.headline import is_fraction
from pytest_ttnn_perf.records.finding import AnalysisOutcome
from pytest_ttnn_perf.report.analysis import value_text
from pytest_ttnn_perf.report.checklist import step_line
from pytest_ttnn_perf.report.layout import NAME
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, format_fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.analyses.headline import Headline
    from pytest_ttnn_perf.records.finding import Analysis
    from pytest_ttnn_perf.records.region import StepTime
    from pytest_ttnn_perf.report.layout import Block


@dataclass(frozen=True, slots=True)
class Entry:
    """An analysis of a region; ``headline`` is None where it was not made."""

    region: str
    analysis: Analysis
    headline: Headline | None

    @property
    def is_first(self) -> bool:
        """Whether it says what holds the program back: in a sentence, before all others."""
        return self.analysis.name == "bottlenecks"

    @property
    def figure(self) -> str:
        """The number alone, with a unit that is none of a fraction."""
        if self.headline is None:
            return ""
        value, unit = self.headline.value, self.headline.unit
        return format_fraction(value) if is_fraction(unit) else value_text(value, unit)

    @property
    def what(self) -> str:
        """What the number is of."""
        if self.headline is None:
            return ""
        at_most = " at most" if self.headline.at_most else ""
        of = f"{self.headline.unit}{at_most}" if is_fraction(self.headline.unit) else ""
        label = ", ".join(filter(None, (self.headline.section, self.headline.label)))
        return ": ".join(filter(None, (of, " ".join(label.split()))))


@dataclass(frozen=True, slots=True)
class Overview:
    """All analyses of a capture, what a step of each region takes, and notes on the capture."""

    entries: tuple[Entry, ...]
    regions: Mapping[str, StepTime]
    notes: tuple[str, ...]


class Commands(NamedTuple):
    """What to type for more: all of one analysis, and what to do about it."""

    analyze: Callable[[str], str]
    check: str


_COLUMNS: Final[Columns[Entry]] = Columns(
    Column("analysis", lambda e: e.analysis.name, "analysis"),
    Column("outcome", lambda e: e.analysis.outcome.value),
    Column("reason", lambda e: e.analysis.reason),
    Column("section", lambda e: (e.headline and e.headline.section) or None),
    Column("label", lambda e: e.headline and e.headline.label),
    Column("value", lambda e: e.headline and e.headline.value),
    Column("unit", lambda e: e.headline and e.headline.unit),
    Column("at_most", lambda e: e.headline and e.headline.at_most),
    Column("region", lambda e: e.region),
    Column("", lambda e: e.figure, "figure", right=True),
    Column("", lambda e: e.what, "what", fit=NAME),
)


def overview_listing(overview: Overview, commands: Commands) -> Listing:
    """Lay out the main figure of each analysis, region by region, what weighs most first."""
    entries = sorted(overview.entries, key=_order)
    made = [entry for entry in entries if entry.headline is not None]
    lines: list[Block] = [f"note: {note}" for note in overview.notes]
    for block in _blocks(made, overview.regions):
        lines += ["", *block] if lines else block
    lines += [""] if lines else []
    lines += _not_made(entries)
    if made:
        name = next((entry for entry in made if not entry.is_first), made[0]).analysis.name
        lines += [f"more on one, such as {name}: {commands.analyze(name)}"]
    lines += [f"what to do: {commands.check}"]
    document = {
        "analyses": _COLUMNS.objects(entries),
        "bottlenecks": [
            {"region": entry.region, "sentence": _sentence(entry)}
            for entry in made
            if entry.is_first
        ],
        "notes": list(overview.notes),
    }
    return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(entries))


def _blocks(made: Sequence[Entry], times: Mapping[str, StepTime]) -> Iterator[list[Block]]:
    """Yield what there is on each region, and then on what is of none."""
    for region in dict.fromkeys([*times, *(entry.region for entry in made)]):
        own = [entry for entry in made if entry.region == region]
        block: list[Block] = []
        if times:
            block.append(step_line(times[region]) if region in times else "of the report:")
        block += [f"bottlenecks: {_sentence(entry)}" for entry in own if entry.is_first]
        table = _COLUMNS.table(entry for entry in own if not entry.is_first)
        yield [*block, "", *table] if block and table else [*block, *table]


def _order(entry: Entry) -> tuple[bool, float]:
    return not entry.is_first, -entry.headline.weight if entry.headline else 0.0


def _sentence(entry: Entry) -> str:
    """Return what holds a region back, which is what this analysis notes first."""
    return entry.analysis.notes[0]


def _not_made(entries: Sequence[Entry]) -> Iterator[str]:
    """Say in one line for each reason which analyses were not made, and of which regions."""
    asked = Counter(entry.analysis.name for entry in entries)
    for outcome in (AnalysisOutcome.NOT_MEASURED, AnalysisOutcome.NOT_APPLICABLE):
        reasons: dict[str, dict[str, list[str]]] = {}
        for entry in entries:
            if entry.analysis.outcome is outcome:
                names = reasons.setdefault(_short(entry.analysis.reason or ""), {})
                names.setdefault(entry.analysis.name, []).append(entry.region)
        for reason, names in reasons.items():
            listed = (
                name if len(where) == asked[name] else f"{name} ({', '.join(where)})"
                for name, where in names.items()
            )
            yield f"{outcome.value} {', '.join(listed)}: {reason}"


def _short(reason: str) -> str:
    """Leave out why nothing else than what is needed will do."""
    return reason.partition(":")[0] if reason.startswith("needs ") else reason
