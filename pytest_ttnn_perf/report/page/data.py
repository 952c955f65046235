"""A page as JSON, to stand inside a document: what a browser draws it from."""

from __future__ import annotations

import dataclasses
import json
import math
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import defaults_of
from pytest_ttnn_perf._base.text import visible
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.page.contents import PageHistory, PageMetric, PageTest
from pytest_ttnn_perf.report.sentences import ACCEPTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.report.page.contents import Page

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
#: There are many of these.
_MANY: Final = (PageTest, PageMetric)
#: What would end a script element, or a line in older scripts, as JSON spells it as well.
_SPELT: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page_json(page: Page) -> str:
    """Return a page as JSON that can stand in a script element, whatever its texts are.

    A member is a field, a tuple is a list. Shorter than that: fractions have seven digits, tests
    and metrics lack fields that have their default, histories are as ``_history`` writes them.
    """
    defaults = {one.__name__: _plain(defaults_of(one)) for one in _MANY}
    document = {"page": _plain(page), "tones": TONES, "defaults": defaults}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_SPELT)


def tone(outcome: str) -> str:
    """Return how an outcome is coloured; what is no outcome of the gate has no colour.

    >>> tone("NO_BASELINE"), tone("skipped")
    ('unsure', 'none')
    """
    return TONES.get(_canonical(outcome), "none")


def main_metric(test: PageTest) -> int | None:
    """Return the place of the metric that stands for a test: gated, and the worst of these."""
    if not test.metrics:
        return None
    return min(range(len(test.metrics)), key=lambda place: _rank(test.metrics[place]))


def shown(text: str) -> str:
    """Return a text in which all that cannot be seen is spelt out; its lines are kept."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def _rank(metric: PageMetric) -> tuple[bool, int]:
    return not metric.gated, _RANKS.get(_canonical(metric.outcome), len(_RANKS))


def _canonical(outcome: str) -> str:
    return outcome.upper().replace(" ", "_")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float):
        return _short(value)
    if isinstance(value, PageHistory):
        return _history(value)
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if dataclasses.is_dataclass(value):
        return _record(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


def _record(record: Any) -> dict[str, Any]:
    found = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    if isinstance(record, _MANY):
        defaults = defaults_of(type(record))
        found = {
            n: value for n, value in found.items() if n not in defaults or value != defaults[n]
        }
    if isinstance(record, PageTest):
        found["main"] = main_metric(record)
    return {name: _plain(value) for name, value in found.items()}


def _short(value: float) -> float | int | None:
    """Return a fraction with seven digits, more than are ever shown; None where it is no number.

    >>> _short(12_410_000.25), _short(16_777_217.0), _short(0.99999998), _short(float("nan"))
    (12410000, 16777217, 0.99999998, None)
    """
    if not math.isfinite(value):
        return None
    # A count is told whole, and what is short of 1 never reads as 1.
    rounded = value if value.is_integer() else float(f"{value:.7g}")
    if rounded == 1 != value:
        return value
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _history(history: PageHistory) -> dict[str, Any]:
    """Return a history with ``[value, count]`` for values in a row that are equal.

    Of runs, it is how far each is ahead of its own place: equal for runs in a row.
    """
    ahead = (run - place for place, run in enumerate(history.runs))
    return {
        "runs_ahead": _repeated(ahead),
        "values": [_short(float(value)) for value in history.values],
        "outcomes": _repeated(map(shown, history.outcomes)),
        "marks": _repeated(map(shown, history.marks)),
        "changes": _plain(history.changes),
    }


def _repeated(values: Iterable[Any]) -> list[tuple[Any, int]]:
    return [(value, len(list(equal))) for value, equal in groupby(values)]
