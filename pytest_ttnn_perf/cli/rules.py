"""``ttnn-perf rules [CODE]``: the optimization checklist, explained."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted, did_you_mean, inert
from pytest_ttnn_perf.analysis.checklist.plan import Span, Start, span_of
from pytest_ttnn_perf.analysis.checklist.plan_start import noise_ns
from pytest_ttnn_perf.analysis.checklist.runner import all_rules
from pytest_ttnn_perf.analysis.checklist.track_record import PAIRS, spread_from, spread_of
from pytest_ttnn_perf.experiments.tried_rules import ratios_by_rule, tried_rules
from pytest_ttnn_perf.report.layout import BELOW, DROPPED, NAME
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, Result
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.track_record import Pair
    from pytest_ttnn_perf.experiments.tried_rules import Tried
    from pytest_ttnn_perf.records.finding import Severity


def run(options: argparse.Namespace) -> Result:
    """Return all rules, or one of them with its page.

    Raises:
        UsageError: there is no such rule.
    """
    pages, code = rule_pages(), options.code
    if code is None:
        return Result(rules_listing(pages).text(options.format))
    for page in pages:
        if code.upper() in {page.code, page.name.upper()}:
            tried = tried_rules(project_settings().artifacts)
            own = tuple(one for one in tried if one.code == page.code)
            return Result(rule_listing(replace(page, tried=own)).text(options.format))
    message = f"no rule is called {code!r}; `ttnn-perf rules` lists them"
    message += did_you_mean(code.upper(), [page.code for page in pages])
    raise UsageError(message)


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A limit of a rule, and where its figure comes from."""

    name: str
    default: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class RulePage:
    """All that is known of a rule; ``text`` is Markdown, its first line what the rule finds.

    ``tried`` is what it promised of changes that were made here, and what these brought.
    """

    code: str
    name: str
    severity: Severity
    step: str
    text: str
    limits: tuple[LimitRow, ...] = ()
    tried: tuple[Tried, ...] = ()

    @property
    def summary(self) -> str:
        """What it finds, in one line."""
        return self.text.partition("\n")[0]

    def markdown(self) -> str:
        """Return the page as it is published."""
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the page, in Markdown."""
        yield f"# {self.code} {self.name}"
        yield ""
        yield from f"{self.severity.value}, {self.step}. {self.text}".splitlines()
        if self.limits:
            yield ""
            yield "## Limits"
            yield ""
            yield f"Set in `[tool.ttnn_perf.rules.{self.code}]`."
            yield ""
            yield "| limit | default | unit | from |"
            yield "|---|---|---|---|"
            for row in self.limits:
                yield f"| `{row.name}` | {row.default:g} | {row.unit} | {row.source} |"
        if _SAVES in self.text:
            yield from _track_record(self.code)
        if self.tried:
            yield from _tried_lines(self.code, self.tried)


#: The heading of rules that say what doing as they say would save.
_SAVES: Final = "## What it saves"


def _track_record(code: str) -> Iterator[str]:
    """Yield what estimates of a rule were worth where somebody did as it says."""
    spread, pairs = spread_of(code), [pair for pair in PAIRS if pair.code == code]
    yield from ("", "## Track record", "")
    rests = "changes of other kinds, as none of this kind is known"
    if spread.pairs:
        rests = f"{counted(spread.pairs, 'change')} of this kind, beside others"
    yield (
        f"80 % of such changes are expected to save {spread.low:.2f} to {spread.high:.2f} times "
        f"the estimate, and no more than their ops take. This rests on {rests}: see "
        "[plans](../explanation/plan.md#intervals)."
    )
    if pairs:
        yield ""
        yield "Each is judged by the interval that follows from all others."
        yield ""
        yield "| change | captures | estimated | gained | ÷ estimate | |"
        yield "|---|---|---:|---:|---:|---|"
        yield from map(_pair_row, pairs)


def _pair_row(pair: Pair) -> str:
    spread = spread_from(pair.code, [other for other in PAIRS if other is not pair])
    captures = " → ".join(f"`{name}`" for name in pair.captures.split(" → "))
    ratio, inside = pair.ratio, "promised nothing"
    if ratio is not None:
        inside = "inside" if spread.low <= ratio <= spread.high else "**missed**"
    return (
        f"| {pair.change} | {captures} | {pair.estimated_us:,.1f} µs | {pair.gained_us:,.1f} µs "
        f"| {'–' if ratio is None else f'{ratio:.2f}'} | {inside} |"
    )


def _tried_lines(code: str, tried: Sequence[Tried]) -> Iterator[str]:
    """Yield what it promised of changes that were tried here, and what plans make of that."""
    spans = [_promised(code, one) for one in tried]
    inside = [
        low <= one.measured_us * 1e3 <= high
        for one, (low, _, high) in zip(tried, spans, strict=True)
    ]
    now = spread_of(code, ratios_by_rule(tried).get(code, ()))
    yield from ("", "## Track record here", "")
    yield f"{sum(inside)} of {counted(len(tried), 'prediction')} for steps of `ttnn-perf try` held."
    yield (
        f"With them, plans expect {now.expected:.2f} times the estimate, and {now.low:.2f} to "
        f"{now.high:.2f} times of four in five changes."
    )
    yield ""
    yield "| change | metric | predicted | 80 % interval | measured | |"
    yield "|---|---|---:|---:|---:|---|"
    for one, span, held in zip(tried, spans, inside, strict=True):
        yield (
            f"| {inert(one.change) or '-'} | {inert(one.metric)} | {one.estimate_us:,.1f} µs "
            f"| {span.low_ns / 1e3:,.1f} to {span.high_ns / 1e3:,.1f} µs "
            f"| {one.measured_us:,.1f} µs | {'inside' if held else '**missed**'} |"
        )


def _promised(code: str, tried: Tried) -> Span:
    """Return what a plan promises of a change, before anything is known of steps here."""
    before, estimate = tried.before_us * 1e3, tried.estimate_us * 1e3
    if tried.at_most:
        return Span(0.0, None, estimate)
    start = Start("", before, noise_ns=noise_ns(before), repeats=tried.rounds)
    outcomes = [estimate * ratio for ratio in spread_of(code).ratios]
    return span_of(outcomes, estimate, start.noise_of(estimate))


def rules_listing(pages: Sequence[RulePage]) -> Listing:
    """Lay all rules out."""
    columns: Columns[RulePage] = Columns(
        Column("code", lambda page: page.code, "code"),
        Column("name", lambda page: page.name, "name", fit=NAME),
        Column("severity", lambda page: page.severity.value, "severity"),
        Column("step", lambda page: page.step, "step", fit=DROPPED[1]),
        Column("finds", lambda page: page.summary, "finds", fit=BELOW),
    )
    document = {"rules": columns.objects(pages)}
    return Listing(tuple(columns.table(pages)), document, columns.names, columns.rows(pages))


def rule_listing(page: RulePage) -> Listing:
    """Lay one rule out with its page."""
    headings = ("code", "name", "severity", "step", "limit", "default", "unit", "from")
    first = (page.code, page.name, page.severity.value, page.step)
    rows = tuple((*first, *asdict(row).values()) for row in page.limits) or ((*first, *[""] * 4),)
    document = {**asdict(page), "severity": page.severity.value}
    return Listing(tuple(page.lines()), document, headings, rows)


def rule_pages() -> tuple[RulePage, ...]:
    """Return what is known of every rule."""
    return tuple(
        RulePage(
            rule.code,
            rule.name,
            rule.severity,
            rule.step,
            rule.page,
            tuple(
                LimitRow(name, float(limit.value), limit.unit, limit.source)
                for name, limit in rule.limits.items()
            ),
        )
        for rule in all_rules()
    )
