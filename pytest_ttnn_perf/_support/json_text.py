"""JSON files for people: read with the place of each mistake."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from pytest_ttnn_perf._support.errors import DecodeError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

_WHITESPACE: Final = " \t\r\n"


def read_json(file: Path, decode: Callable[[object], T]) -> T:
    """Read ``file`` and decode it.

    Raises:
        InputError: unreadable, not JSON, or not what ``decode`` expects; with file and line.
    """
    return parse_json(read_text(file), decode, file=file)


def read_text(file: Path) -> str:
    """Read a UTF-8 file; any failure is an InputError that names the file."""
    try:
        return file.read_text(encoding="utf-8")
    except IsADirectoryError as cause:
        raise InputError(file, "expected a file, found a folder") from cause
    except UnicodeDecodeError as cause:
        raise InputError(file, f"not a text file: {cause.reason} at byte {cause.start}") from cause
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause


def parse_json(text: str, decode: Callable[[object], T], *, file: Path) -> T:
    """Parse and decode ``text``; ``file`` is where it came from, for the message."""
    try:
        document = loads(text)
    except json.JSONDecodeError as cause:
        problem = f"not valid JSON: {cause.msg}"
        if not text.strip():
            problem = "the file is empty"
        elif text.startswith("<<<<<<<", cause.doc.rfind("\n", 0, cause.pos) + 1):
            problem = "a merge conflict is not resolved here"
        raise InputError(file, problem, line=cause.lineno) from cause
    except ValueError as cause:
        raise InputError(file, f"not valid JSON: {cause}") from cause
    try:
        return decode(document)
    except DecodeError as cause:
        raise InputError(file, str(cause), line=line_of(text, cause.path)) from cause


def loads(text: str) -> object:
    """Parse JSON; whatever is wrong with it is a ValueError.

    A name that stands twice in one object is an error, not, as JSON has it, the last one's luck:
    it is what a careless merge leaves behind.
    """
    try:
        return json.loads(text, object_pairs_hook=_members)
    except RecursionError as cause:
        message = "nested too deeply"
        raise ValueError(message) from cause


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        message = f"{twice!r} stands twice in one object"
        raise ValueError(message)
    return members


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    r"""Return the line (from 1) on which the value at ``path`` begins; ``text`` is valid JSON.

    >>> line_of('{"a": [1,\n 2]}', ("a", 1))
    2
    """
    position = _skip(text, 0)
    for step in path:
        position = _enter(text, position, step)
    return text.count("\n", 0, position) + 1


def _enter(text: str, position: int, step: str | int) -> int:
    """Return where the member ``step`` of the container at ``position`` begins.

    A member that is not there (a missing field) is placed at its container.
    """
    container = position
    if text[position] not in "{[":
        return container
    is_object = text[position] == "{"
    position = _skip(text, position + 1)
    index = 0
    while text[position] not in "}]":
        name: str | int = index
        if is_object:
            name, position = _DECODER.raw_decode(text, position)
            position = _skip(text, position, also=":")
        if name == step:
            return position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position, also=",")
        index += 1
    return container


def _skip(text: str, position: int, *, also: str = "") -> int:
    while position < len(text) and text[position] in _WHITESPACE + also:
        position += 1
    return position


_DECODER: Final = json.JSONDecoder()
