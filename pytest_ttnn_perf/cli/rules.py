"""``ttnn-perf rules [CODE]``: the optimization checklist, explained."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import did_you_mean
from pytest_ttnn_perf.analysis.checklist.runner import all_rules
from pytest_ttnn_perf.report.layout import BELOW, DROPPED, NAME
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

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
            return Result(rule_listing(page).text(options.format))
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
    """All that is known of a rule; ``text`` is Markdown, its first line what the rule finds."""

    code: str
    name: str
    severity: Severity
    step: str
    text: str
    limits: tuple[LimitRow, ...] = ()

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
