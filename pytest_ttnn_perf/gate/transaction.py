"""Change several baseline files: all of them, or none.

Before the first file is touched, the content of all is written to ``.undo.json``, which is removed
after the last one. A command that finds it (a killed one left it) puts everything back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from pytest_ttnn_perf.core.codec import Coding, Value, decode, decode_format, encode
from pytest_ttnn_perf.core.errors import InputError, WriteError
from pytest_ttnn_perf.core.files import (
    encoded,
    read_json,
    remove_empty,
    remove_file,
    remove_unfinished,
    write_bytes,
    write_text,
)
from pytest_ttnn_perf.gate.store import UNDO
from pytest_ttnn_perf.machine.git import is_tracked

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT: Final = 1
_MOST_NAMED: Final = 3


def _read_place(value: Value) -> str:
    # No file but a baseline or an op table is ever put back.
    place = PurePosixPath(value.string())
    try:
        named = b"\0" not in os.fsencode(place)
    except UnicodeEncodeError:  # half a surrogate pair
        named = False
    inside = named and not place.is_absolute() and ".." not in place.parts
    if not inside or place.suffix not in {".json", ".csv"}:
        raise value.refusal("the path of a baseline or an op table")
    return str(place)


def _read_before(value: Value) -> str:
    try:
        _bytes(value.string())
    except UnicodeEncodeError:
        raise value.refusal("the text of a file") from None
    return value.string()


class _FileChange(Struct, frozen=True):
    """A file that is changed; None for one that does not exist.

    ``before`` is its text, bytes that are no UTF-8 as surrogates; ``after`` is the SHA-256 of the
    new content.
    """

    file: Annotated[str, Coding(_read_place)]
    before: Annotated[str | None, Coding(_read_before)]
    after: str | None


class _Undo(Struct, frozen=True):
    """The content of ``.undo.json``."""

    files: tuple[_FileChange, ...]


def change_files(root: Path, texts: Mapping[Path, str | None]) -> None:
    """Write files below ``root``, or remove them; the caller holds the lock.

    Raises:
        WriteError: a file refused; all are as they were.
    """
    changed = {}
    for file, text in texts.items():
        before, after = _content(file), None if text is None else encoded(text, file)
        if before != after:
            changed[file] = (before, after)
    if not changed:
        return
    undo = _Undo(
        tuple(
            _FileChange(
                file.relative_to(root).as_posix(),
                None if before is None else before.decode("utf-8", "surrogateescape"),
                _digest(after),
            )
            for file, (before, after) in changed.items()
        )
    )
    journal = root / UNDO
    try:
        write_text(journal, json.dumps({"format": _FORMAT, **encode(undo)}) + "\n")
    except WriteError as error:  # of a file that the user knows
        raise WriteError(next(iter(changed)), error.cause) from error
    try:
        for file in sorted(changed, key=lambda file: _turn(file, changed[file][1])):
            _put(root, file, changed[file][1])
        remove_file(journal, up_to=root)
    except BaseException:  # also Ctrl-C
        with contextlib.suppress(WriteError, InputError):  # the next command tries again
            put_back(root)
        raise


def put_back(root: Path) -> str | None:
    """Undo an unfinished change; the caller holds the lock.

    If any file was changed since, say with git, all stay as they are.

    Raises:
        InputError: it is not known what the files held, or git tracks what says so: no command
            that was killed has left it.
        WriteError: a file cannot be put back.
    """
    journal = root / UNDO
    if not journal.exists():
        return None
    tracked = is_tracked(journal)
    if tracked is None:
        message = "git cannot tell whether it came with the checkout: see git status, or remove it"
        raise InputError(journal, message)
    if tracked:
        remedy = f"remove it with: {shlex.join(('git', 'rm', '-f', '--', str(journal)))}"
        raise InputError(
            journal, f"expected what a killed command left, found a file of git: {remedy}"
        )
    touched = [
        (root / entry.file, _bytes(entry.before), entry.after)
        for entry in read_json(journal, _decode).files
    ]
    known = all(_digest(_content(file)) in {_digest(old), new} for file, old, new in touched)
    if known:
        for file, old, _ in touched:
            if _content(file) == old:
                continue
            if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):
                raise InputError(
                    journal, f"{file} leads out of {root}: look at both, and remove it"
                )
            _put(root, file, old)
    for folder in {file.parent for file, _, _ in touched}:
        remove_unfinished(folder)
        remove_empty(folder, up_to=root)
    remove_file(journal, up_to=root)
    files = ", ".join(str(file) for file, _, _ in touched[:_MOST_NAMED])
    files += f" and {len(touched) - _MOST_NAMED} more" if len(touched) > _MOST_NAMED else ""
    done = "put back" if known else "left as they are, as they have changed since"
    return f"a command was killed while it changed baselines; {done}: {files}"


def _decode(document: object) -> _Undo:
    decode_format(Value(document), current=_FORMAT, what="a list of changed files")
    return decode(_Undo, document)


def _put(root: Path, file: Path, content: bytes | None) -> None:
    if content is None:
        remove_file(file, up_to=root)
    else:
        write_bytes(file, content)


def _turn(file: Path, after: bytes | None) -> tuple[bool, bool]:
    # For concurrent readers: a baseline without its table misleads them.
    removed = after is None
    return removed, (file.suffix == ".json") is not removed


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes() if file.is_file() else None
    except OSError as cause:
        raise WriteError(file, cause, doing="read") from cause


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
