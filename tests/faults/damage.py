"""Ways in which a file can be wrong, as functions that make it so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

DEEP = "[" * 100_000
#: Larger than any float, and more digits than Python turns into a number.
HUGE, ENDLESS = "1" + "0" * 400, "1" * 5000


class Damage(NamedTuple):
    """What the file holds instead (a function of its text), and what the refusal says."""

    content: str | bytes
    says: tuple[str, ...]


#: What any reader must refuse, whatever the file should be.
ANY_FILE = {
    "empty": Damage("", (":1: ", "the file is empty")),
    "not UTF-8": Damage(b'{"format": 1, "x": "\xff"}', ("not a text file", "at byte 20")),
    "nested deeply": Damage(DEEP, ("nested too deeply",)),
    "a list": Damage("[1, 2]", (":1: ", "expected an object, found a list of 2")),
    "a byte-order mark": Damage(b"\xef\xbb\xbf{}", (":1: ", "not valid JSON", "BOM")),
    "a merge conflict": Damage("{\n<<<<<<< HEAD\n", (":2: a merge conflict is not",)),
    "no format": Damage("{}", (":1: ", "['format']", "the field is missing")),
    "format of words": Damage('{"format": "1"}', ("expected a whole number", "found '1'")),
    "newer format": Damage('{\n"format": 99}', (":2: ", " or older", "format 99")),
    "endless number": Damage(f'{{"format": {ENDLESS}}}', ("not valid JSON",)),
}  # fmt: skip


def damage(file: Path, content: str | bytes) -> None:
    """Put ``content`` in the place of ``file``."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def replaced(text: str, path: tuple[str | int, ...], literal: str | None) -> str:
    """Return a JSON document, laid out for people, with ``literal`` at ``path``; None deletes.

    The literal is text and need not be JSON.
    """
    document: Any = json.loads(text)
    container = document
    for step in path[:-1]:
        container = container[step]
    if literal is None:
        del container[path[-1]]
        return json.dumps(document, indent=2)
    container[path[-1]] = "THE LITERAL"
    return json.dumps(document, indent=2).replace('"THE LITERAL"', literal)
