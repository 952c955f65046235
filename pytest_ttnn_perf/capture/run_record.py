"""Run records: the JSON document of a finished run, or the journal of one that was cut short."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import DecodeError, InputError
from pytest_ttnn_perf._support.json_text import loads, parse_json, read_text
from pytest_ttnn_perf.model.encoding.runs import decode_run

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.observation import Run


#: How the first line of a journal ends.
JOURNAL_MARK: Final = '"journal": true}'


def read_run(file: Path) -> Run:
    """Read a run record.

    A journal has one line for the run and one per test; its last line may be cut off, which says
    that the run was killed while writing it, and costs that test only.

    Raises:
        InputError: with file, line and what was expected.
    """
    text = read_text(file)
    if _is_journal(text):
        return _read_journal(file, text)
    return parse_json(text, decode_run, file=file)


def is_run_record(head: str) -> bool:
    """Tell whether a text begins as a run record or a journal does."""
    return _is_journal(head) or (head.lstrip().startswith("{") and '"format"' in head)


def _is_journal(text: str) -> bool:
    heading = text.partition("\n")[0]
    return heading.startswith("{") and heading.endswith(JOURNAL_MARK)


def _read_journal(file: Path, text: str) -> Run:
    heading, *lines = text.splitlines()
    tests: dict[str, object] = {}
    for number, line in enumerate(lines, start=2):
        entry = _object(line)
        if entry is None and number <= len(lines):
            raise InputError(file, "expected one test of the run's journal", line=number)
        tests.update(entry or {})
    try:
        return replace(decode_run({**(_object(heading) or {}), "tests": tests}), complete=False)
    except DecodeError as cause:
        raise InputError(file, str(cause)) from cause


def _object(line: str) -> dict[str, object] | None:
    try:
        entry = loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
