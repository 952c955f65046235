"""The page as one HTML document: self-contained, and no text is markup.

A page is plain data, as its template and its scripts read it: see ``page.py``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from math import isfinite
from pathlib import Path
from typing import Any, Final

from pytest_ttnn_perf.core.observation import Outcome
from pytest_ttnn_perf.core.text import visible
from pytest_ttnn_perf.report.sentences import ACCEPTED

#: A page or a part of it: plain text, and numbers in the unit of their name.
Part = dict[str, Any]

#: How outcomes of metrics and words for tests are coloured, the worst first. Tests that failed
#: have the colour of that, whatever else is said of them.
TONES: Final = {
    "ERROR": "bad",
    Outcome.REGRESSED.value: "bad",
    "BELOW_LIMIT": "bad",
    "ABOVE_LIMIT": "bad",
    Outcome.NO_DATA.value: "unsure",
    Outcome.TOO_NOISY.value: "unsure",
    Outcome.SHIFTED.value: "unsure",
    Outcome.NOT_COMPARABLE.value: "unsure",
    Outcome.NO_BASELINE.value: "unsure",
    "FINDING": "unsure",
    Outcome.IMPROVED.value: "better",
    ACCEPTED: "good",
    "OUT_OF_MEMORY": "none",
    Outcome.WITHIN.value: "good",
    "RECORDED": "none",
}
_RANKS: Final = {outcome: rank for rank, outcome in enumerate(TONES)}
#: What would end a script element, or a line in older scripts, as JSON spells it as well.
_SPELT: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page_json(page: Part) -> str:
    """The page as JSON that is safe in a script element."""
    tests = [{**test, "main": main_metric(test)} for test in page["tests"]]
    whole = _plain({"page": {**page, "tests": tests}, "tones": TONES})
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_SPELT)


def _plain(value: Any) -> Any:
    """Escape texts, and replace infinities by None."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [*map(_plain, value)] if isinstance(value, (list, tuple)) else value


def main_metric(test: Part) -> int | None:
    """Index of the worst gated metric, or of the longest region."""
    metrics = test["metrics"]
    first = metrics[0]["name"].partition(".")[0] if metrics else ""

    def rank(place: int) -> tuple[bool, int, float]:
        metric = metrics[place]
        is_region = not metric["gated"] and metric["name"].partition(".")[0] == first
        size = (metric["value"] or 0.0) if is_region else 0.0
        return not metric["gated"], _RANKS.get(metric["outcome"], len(_RANKS)), -size

    return min(range(len(metrics)), key=rank, default=None)


def shown(text: str) -> str:
    """Escape invisible characters; keep lines."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


_ASSETS: Final = Path(__file__).parent / "assets"
#: One script, in the order in which its parts are read.
_SCRIPTS: Final = ("data", "charts", "page")


def page_html(page: Part) -> str:
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
        data=Markup(page_json(page)),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _hash(text: str) -> str:
    """Hash of an inline style or script for the security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
