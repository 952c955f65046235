"""A result in three shapes: lines for people, a document for programs, rows for spreadsheets."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pytest_ttnn_perf.report.tables import csv_text


@dataclass(frozen=True, slots=True)
class Listing:
    """What a command prints. ``document`` is plain JSON; ``rows`` are under ``headings``."""

    lines: tuple[str, ...]
    document: object
    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def text(self, shape: str) -> str:
        """Return the result as ``table``, ``json`` or ``csv``."""
        if shape == "json":
            return json.dumps(self.document, indent=2) + "\n"
        if shape == "csv":
            return csv_text(self.headings, self.rows)
        return "".join(f"{line}\n" for line in self.lines)
