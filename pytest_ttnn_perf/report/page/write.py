"""A page as one HTML document: nothing in it is loaded from elsewhere, and no text is markup."""

from __future__ import annotations

import base64
import hashlib
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import digits
from pytest_ttnn_perf.report.page.data import main_metric, page_json, shown, tone

if TYPE_CHECKING:
    from pytest_ttnn_perf.report.page.contents import Page, PageHistory, PageMetric, PageTest

_ASSETS: Final = Path(__file__).parent / "assets"
#: One script, in the order in which its parts are read: a part uses what those above it declare.
_SCRIPTS: Final = (
    "data", "words", "elements", "scales", "charts", "state",
    "history", "samples", "waterfall", "journal", "treemap", "roofline", "timeline",
    "findings",
    "attention", "table", "test", "overview", "keyboard", "start",
)  # fmt: skip
#: The size of a sparkline, in its own pixels.
_WIDTH: Final = 120
_HEIGHT: Final = 20


def page_html(page: Page) -> str:
    """Return the document."""
    import jinja2  # a page is written at most once in a run
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(_ASSETS), finalize=_finalized,
    )  # fmt: skip
    style, script = _asset("page.css"), _script()
    return environment.get_template("page.html.jinja").render(
        page=page,
        rows=[_row(test) for test in page.tests],
        tone=tone,
        data=Markup(page_json(page)),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """A test as it is shown without scripts; ``points`` are those of its sparkline."""

    test: PageTest
    tone: str
    metric: PageMetric | None
    value: str
    baseline: str
    points: str
    told: str


def _row(test: PageTest) -> _Row:
    place = main_metric(test)
    metric = None if place is None else test.metrics[place]
    return _Row(
        test=test,
        tone="bad" if test.failed else tone(test.outcome),
        metric=metric,
        value=_amount(metric, metric.value) if metric else "",
        baseline=_amount(metric, metric.baseline) if metric else "",
        points=_points(metric.history) if metric else "",
        told=_told(test),
    )


def _told(test: PageTest) -> str:
    """Return the summary of a test, or else what its metrics say that are not as before."""
    others = (one for one in test.metrics if one.gated and tone(one.outcome) != "good")
    return test.summary or "\n".join(one.sentence for one in others if one.sentence)


def _amount(metric: PageMetric, value: float | None) -> str:
    return "" if value is None else f"{digits(value * metric.scale)} {metric.unit}".strip()


def _points(history: PageHistory) -> str:
    """Return the corners of a line through the values of a history; none for less than two."""
    values = [value for value in history.values if isfinite(value)]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    across, up = _WIDTH / (len(values) - 1), (_HEIGHT - 4) / ((high - low) or 1)
    return " ".join(
        f"{place * across:.0f},{_HEIGHT - 2 - (value - low) * up:.0f}"
        for place, value in enumerate(values)
    )


def _finalized(value: object) -> object:
    """Return what is written for a value of the template: texts without what cannot be seen."""
    return shown(value) if type(value) is str else value


def _script() -> str:
    parts = (f"// {name}.js\n{_asset(f'script/{name}.js')}" for name in _SCRIPTS)
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what a content security policy knows an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
