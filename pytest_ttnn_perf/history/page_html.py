"""The page as one HTML document: self-contained, and no text is markup."""

from __future__ import annotations

import base64
import hashlib
import json
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from pytest_ttnn_perf.core.observation import Outcome
from pytest_ttnn_perf.core.text import digits, visible
from pytest_ttnn_perf.report.sentences import ACCEPTED

#: A part of a page, as the scripts get it: plain text, and numbers in the unit of their name.
Part = dict[str, Any]


class PageHistory(Struct, frozen=True):
    """Numbers of one metric, run after run, as parallel columns.

    ``runs`` are places in the page's runs. ``marks`` say what a run did to the baseline: accepted,
    stored, or nothing (""). ``outcomes`` are those of its verdicts ("" where there was none).
    """

    runs: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    outcomes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    changes: tuple[Part, ...] = ()


class PageMetric(Struct, frozen=True):
    """One metric of a test: its numbers and its verdict.

    ``scale`` is what numbers are multiplied by to be shown in ``unit`` (1e-6 and ms for
    nanoseconds). ``baseline`` is the middle of the baseline, ``limit`` what it may be at worst;
    both are None where there is no such thing. ``better`` is lower, higher or equal. ``sentence``
    is the verdict as the terminal has it, and ``change`` its change as read (minus is lower): it
    may be without what the machine did to all tests, so it does not follow from the two numbers.
    """

    name: str
    unit: str
    scale: float
    better: str
    outcome: str
    sentence: str
    value: float | None = None
    baseline: float | None = None
    limit: float | None = None
    target: float | None = None
    gated: bool = True
    why_ungated: str = ""
    samples: tuple[float, ...] = ()
    confirmations: tuple[tuple[float, ...], ...] = ()
    history: PageHistory = PageHistory()
    change: float | None = None


class PageTest(Struct, frozen=True):
    """One test; ``worst`` sorts tests, 0 is the worst."""

    id: str
    outcome: str
    failed: bool
    worst: int
    key: str
    setting: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    by_op: str = ""
    commands: tuple[str, ...] = ()
    metrics: tuple[PageMetric, ...] = ()
    findings: tuple[Part, ...] = ()
    waterfalls: tuple[dict[str, Any], ...] = ()
    regions: tuple[Part, ...] = ()
    timelines: tuple[Part, ...] = ()
    visualizer: str = ""
    trace: str = ""


class Page(Struct, frozen=True):
    """A page: ``facts`` head it, ``notes`` limit it."""

    title: str
    headline: str
    failed: bool
    facts: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, int], ...]
    runs: tuple[Part, ...]
    tests: tuple[PageTest, ...]
    differences: tuple[Part, ...] = ()
    trends: tuple[Part, ...] = ()
    sweeps: tuple[Part, ...] = ()
    journals: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


#: How outcomes of metrics and words for tests are coloured, the worst first. Tests that failed
#: have the colour of that, whatever else is said of them.
TONES: Final = {
    "ERROR": "bad",
    Outcome.REGRESSED.value: "bad",
    Outcome.NO_DATA.value: "unsure",
    Outcome.TOO_NOISY.value: "unsure",
    Outcome.SHIFTED.value: "unsure",
    Outcome.NOT_COMPARABLE.value: "unsure",
    Outcome.NO_BASELINE.value: "unsure",
    "FINDING": "unsure",
    Outcome.IMPROVED.value: "better",
    ACCEPTED: "good",
    Outcome.WITHIN.value: "good",
}
_RANKS: Final = {outcome: rank for rank, outcome in enumerate(TONES)}
#: What would end a script element, or a line in older scripts, as JSON spells it as well.
_SPELT: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page_json(page: Page) -> str:
    """The page as JSON that is safe in a script element."""
    document = to_builtins(page)
    for test, written in zip(page.tests, document["tests"], strict=True):
        written["main"] = main_metric(test)
        for history in (metric["history"] for metric in written["metrics"]):
            # How far each run is ahead of its own place: equal for runs in a row.
            history["runs"] = [run - place for place, run in enumerate(history["runs"])]
            for name in ("runs", "outcomes", "marks"):
                history[name] = [(each, len([*same])) for each, same in groupby(history[name])]
    whole = _plain({"page": document, "tones": TONES})
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_SPELT)


def _plain(value: Any) -> Any:
    """Escape texts, round to seven digits, and replace infinities by None."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float):
        if not isfinite(value):
            return None
        # Whole numbers may be counts, and what is short of 1 never reads as 1.
        rounded = value if value.is_integer() else float(f"{value:.7g}")
        rounded = value if rounded == 1 else rounded
        return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [*map(_plain, value)] if isinstance(value, (list, tuple)) else value


def tone(outcome: str) -> str:
    """The colour class of an outcome; "none" if unknown."""
    return TONES.get(_canonical(outcome), "none")


def main_metric(test: PageTest) -> int | None:
    """Index of the metric that represents a test: the worst gated one."""

    def rank(place: int) -> tuple[bool, int]:
        metric = test.metrics[place]
        return not metric.gated, _RANKS.get(_canonical(metric.outcome), len(_RANKS))

    return min(range(len(test.metrics)), key=rank, default=None)


def shown(text: str) -> str:
    """Escape invisible characters; keep lines."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def _canonical(outcome: str) -> str:
    return outcome.upper().replace(" ", "_")


_ASSETS: Final = Path(__file__).parent / "assets"
#: One script, in the order in which its parts are read.
_SCRIPTS: Final = ("data", "charts", "page")


def page_html(page: Page) -> str:
    """Return the document."""
    import jinja2  # a page is written at most once in a run
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(_ASSETS),
        finalize=lambda value: shown(value) if type(value) is str else value,
    )  # fmt: skip
    style = (_ASSETS / "page.css").read_text(encoding="utf-8")
    files = (_ASSETS / "script" / f"{name}.js" for name in _SCRIPTS)
    script = "\n".join(f"// {file.name}\n{file.read_text(encoding='utf-8')}" for file in files)
    script = f'(() => {{\n"use strict";\n{script}}})();\n'
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


def _row(test: PageTest) -> Part:
    """Return a test as the template needs it without scripts."""
    place = main_metric(test)
    metric = None if place is None else test.metrics[place]
    others = (one for one in test.metrics if one.gated and tone(one.outcome) != "good")
    return {
        "test": test,
        "tone": "bad" if test.failed else tone(test.outcome),
        "metric": metric,
        "value": _amount(metric, metric.value) if metric else "",
        "baseline": _amount(metric, metric.baseline) if metric else "",
        "summary": test.summary or "\n".join(one.sentence for one in others if one.sentence),
    }


def _amount(metric: PageMetric, value: float | None) -> str:
    return "" if value is None else f"{digits(value * metric.scale)} {metric.unit}".strip()


def _hash(text: str) -> str:
    """Hash of an inline style or script for the security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
