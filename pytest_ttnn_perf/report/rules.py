"""Rules laid out: a table of all, and the page of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.finding import Severity


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
        return "\n".join(self._markdown()) + "\n"

    def _markdown(self) -> Iterator[str]:
        yield f"# {self.code} {self.name}"
        yield ""
        yield f"{self.severity.value}, {self.step}. {self.text}"
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
    headings = ("code", "name", "severity", "step", "finds")
    rows = tuple((p.code, p.name, p.severity.value, p.step, p.summary) for p in pages)
    document = {"rules": [dict(zip(headings, row, strict=True)) for row in rows]}
    return Listing(tuple(table_lines(headings, rows)), document, headings, rows)


def rule_listing(page: RulePage) -> Listing:
    """Lay one rule out with its page."""
    headings = ("code", "name", "severity", "step", "limit", "default", "unit", "from")
    first = (page.code, page.name, page.severity.value, page.step)
    rows = tuple((*first, *asdict(row).values()) for row in page.limits) or ((*first, *[""] * 4),)
    document = {**asdict(page), "severity": page.severity.value}
    return Listing(tuple(page.markdown().splitlines()), document, headings, rows)
