"""Tables for the terminal, and the same rows as CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def table_lines(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()
) -> list[str]:
    """Lay rows out under their headings; the columns in ``right`` are aligned to the right."""
    from tabulate import tabulate

    align = ["right" if index in right else "left" for index in range(len(headings))]
    text = tabulate(
        rows, headers=headings, tablefmt="simple", disable_numparse=True, colalign=align
    )
    return [line.rstrip() for line in text.splitlines()]


def csv_text(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV with a heading."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue()
