"""Test file ↔ place of its baseline, so that any test id has one safe file and no two share one."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.hardware import Hardware


#: Characters that mean the same on every file system. Upper case is escaped: on file systems that
#: fold case, TestA and testa must not meet in one file.
_SAFE: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_DOT: Final = "."
_SUFFIX: Final = ".json"
#: Longest name in bytes, and what is kept of a longer one before its hash. "~" is never produced
#: by escaping, so a shortened name cannot meet a whole one.
_MAX_NAME: Final = 100
_HASH_DIGITS: Final = 16
_KEPT: Final = _MAX_NAME - _HASH_DIGITS - 1


def split_test_id(test: str) -> tuple[str, str]:
    """Split a nodeid into the test file and the name within it.

    >>> split_test_id("models/test_a.py::TestX::test_y[8]")
    ('models/test_a.py', 'TestX::test_y[8]')
    """
    file, _, name = test.partition("::")
    return file, name


def baseline_path(root: Path, hardware: Hardware, test_file: str) -> Path:
    """Return the file that holds the baselines of ``test_file`` on ``hardware``."""
    return key_folder(root, hardware) / relative_path(test_file)


def key_folder(root: Path, hardware: Hardware) -> Path:
    """Return the folder of one hardware key."""
    return root / _shorten(_escape(hardware.key))


def relative_path(test_file: str) -> PurePosixPath:
    """Return a test file's place inside a key's folder.

    ``.py`` goes, any other suffix stays. Dots survive only in a suffix that stays, so folders
    never look like files and ``a.txt.py`` never meets ``a.txt``; a name with no dot to show that
    it was not a ``.py`` file ends in a lone ``%``.

    >>> str(relative_path("models/test_resnet.py"))
    'models/test_resnet.json'
    >>> str(relative_path("docs/Guide.md"))
    'docs/%47uide.md.json'
    """
    *folders, name = test_file.split("/")
    if name.endswith(".py") and name != ".py":
        escaped = _escape(name[: -len(".py")])
    else:
        escaped = _escape(name, keep_dots=True)
        if _DOT not in escaped:
            escaped += "%"
    return PurePosixPath(
        *(_shorten(_escape(folder)) for folder in folders), _shorten(escaped) + _SUFFIX
    )


def ops_path(test: str) -> PurePosixPath:
    """Return the place of a test's op table inside a key's folder.

    >>> str(ops_path("models/test_resnet.py::test_resnet50[8]"))
    'models/test_resnet.ops/test_resnet50%5B8%5D.csv'
    """
    test_file, name = split_test_id(test)
    folder = relative_path(test_file).with_suffix(".ops")
    return folder / f"{_shorten(_escape(name))}.csv"


def test_file_of(place: PurePosixPath) -> str | None:
    """Return the test file that a baseline file belongs to; None where the name was shortened."""
    name = place.name[: -len(_SUFFIX)]
    if any("~" in part for part in (*place.parent.parts, name)):
        return None
    folders = [_unescape(part) for part in place.parent.parts]
    if _DOT in name or name.endswith("%"):
        return "/".join([*folders, _unescape(name.removesuffix("%"))])
    return "/".join([*folders, _unescape(name) + ".py"])


def _escape(name: str, *, keep_dots: bool = False) -> str:
    if not name:
        return "%"  # an empty part, as in an absolute path, must not vanish
    # surrogatepass: a file name that is not valid UTF-8 still has a place of its own.
    escaped = "".join(
        character
        if character in _SAFE or (keep_dots and character == _DOT)
        else _percent(character)
        for character in name
    )
    # Leading and trailing dots hide files, climb folders, or vanish on Windows.
    body = escaped.strip(_DOT)
    lead = len(escaped) - len(escaped.lstrip(_DOT))
    trail = len(escaped) - lead - len(body)
    return "%2E" * lead + body + "%2E" * trail


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _unescape(name: str) -> str:
    return "" if name == "%" else unquote(name, errors="surrogatepass")


def _shorten(escaped: str) -> str:
    if len(escaped) <= _MAX_NAME:
        return escaped
    digest = hashlib.sha256(escaped.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{escaped[:_KEPT]}~{digest}"
