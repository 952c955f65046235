"""A page as one HTML file."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.report.page.contents import Page


def page_html(page: Page) -> str:
    """Return a page that opens without anything else."""
    data = json.dumps(asdict(page), separators=(",", ":")).replace("<", "\\u003c")
    head = f'<head><meta charset="utf-8"><title>{escape(page.title)}</title></head>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">{head}'
        f"<body><h1>{escape(page.headline)}</h1>\n"
        f'<script type="application/json" id="page">{data}</script></body></html>\n'
    )
