"""Any record of a capture, laid out: its fields line by line, its lists of records as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a terminal shows of a long list; JSON and CSV have all of it.
_MOST_ROWS: Final = 40
_WIDEST: Final = 48


def record_listing(record: object, *, name: str, kind: str) -> Listing:
    """Lay out the record that was read from the file ``name``, which is ``kind``."""
    document = {"kind": kind, **_members(plain(record))}
    lines = [f"{name}: {kind}"]
    rows: list[dict[str, Any]] = []
    for place, value in _sections("", {f: v for f, v in document.items() if f != "kind"}):
        if _is_table(value):
            lines += ["", f"{place}:", *_table(value)]
            rows = rows or value
        elif value not in (None, [], {}, ""):
            lines.append(f"{place}: {_cell(value, widest=10 * _WIDEST)}")
    headings = tuple(dict.fromkeys(column for row in rows for column in row))
    cells = tuple(tuple(_csv(row.get(column)) for column in headings) for row in rows)
    return Listing(tuple(lines), document, headings, cells)


def _sections(place: str, members: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, and after each table the tables that stand in its rows."""
    for field, value in members.items():
        path = f"{place} {field}".strip()
        rows = list(value.values()) if isinstance(value, dict) else value
        if not _is_table(rows):
            yield path, value
            continue
        inner = {column for row in rows for column, cell in row.items() if _is_table(cell)}
        yield path, [{c: v for c, v in row.items() if c not in inner} for row in rows]
        for number, row in enumerate(rows[:_MOST_ROWS], start=1):
            nested = {column: row[column] for column in row if column in inner}
            yield from _sections(f"{path} {number}", nested)


def plain(value: object) -> Any:
    """Return records, enums and tuples as plain JSON."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {field: plain(member) for field, member in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple, frozenset, set)):
        return [plain(member) for member in value]
    return value


def _members(document: Any) -> dict[str, Any]:
    return document if isinstance(document, dict) else {"value": document}


def _is_table(value: object) -> bool:
    """Tell a list of records, which are all of one kind."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    told = {column for row in rows for column, value in row.items() if value not in (None, [], {})}
    headings = [
        column for column in dict.fromkeys(c for row in rows for c in row) if column in told
    ]
    shown = [[_cell(row.get(column)) for column in headings] for row in rows[:_MOST_ROWS]]
    more = len(rows) - _MOST_ROWS
    lines = table_lines(headings, shown)
    return [*lines, f"... and {more} more; --format json has them"] if more > 0 else lines


def _cell(value: object, *, widest: int = _WIDEST) -> str:
    text = _text(value).replace("\n", " ")
    return text if len(text) <= widest else text[: widest - 1] + "…"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        known = {key: member for key, member in value.items() if member is not None}
        return ", ".join(f"{key} {_text(member)}" for key, member in known.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _csv(value: object) -> object:
    return _text(value) if isinstance(value, (dict, list)) else value
