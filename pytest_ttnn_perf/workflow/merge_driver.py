"""Telling git to merge baselines by test and session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.atomic import write_text
from pytest_ttnn_perf._support.errors import UsageError, WriteError
from pytest_ttnn_perf._support.json_text import read_text
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.processes.git_files import posix, set_setting, setting, top_level
from pytest_ttnn_perf.report.listing import Listing

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.workflow.changing import Changing

_SETTINGS: Final = (
    ("merge.ttnn-perf.name", "baselines of ttnn-perf, by test and session"),
    ("merge.ttnn-perf.driver", "ttnn-perf baseline merge %O %A %B --path %P"),
)
_ATTRIBUTE: Final = "merge=ttnn-perf"
_HEADINGS: Final = ("where", "what", "state")


def install_merge_driver(baselines: Path, changing: Changing) -> Result:
    """Show what git is going to be told about the baselines, and tell it.

    What is told already stays; doing it again changes nothing.

    Raises:
        UsageError: there is no git repository around the baselines.
        InputError: its attributes cannot be read.
    """
    root = top_level(baselines.absolute())
    if root is None:
        message = (
            f"{baselines} is in no git repository, or git is not installed: git init makes one"
        )
        raise UsageError(message)
    attributes = root / ".gitattributes"
    text = read_text(attributes) if attributes.exists() else ""
    present = set(text.splitlines())
    lines = [line for line in _attribute_lines(baselines.absolute(), root) if line not in present]
    settings = [(name, value) for name, value in _SETTINGS if setting(root, name) != value]
    rows = [("git config", f"{n} = {v}", _state((n, v) in settings)) for n, v in _SETTINGS]
    rows += [
        (".gitattributes", line, _state(line in lines))
        for line in _attribute_lines(baselines.absolute(), root)
    ]
    listing = _listing(rows, changing)
    if changing.dry_run or not (lines or settings):
        return Result(listing.text(changing.shape))

    def then() -> Result:
        for name, value in settings:
            if not set_setting(root, name, value):
                raise WriteError(root / ".git" / "config", OSError("git config refused"))
        if lines:
            ended = text if not text or text.endswith("\n") else f"{text}\n"
            write_text(attributes, ended + "".join(f"{line}\n" for line in lines))
        told = "commit .gitattributes; git config holds in this clone alone\n"
        return Result(told if changing.shape == "table" else "")

    return Result(listing.text(changing.shape), then=then)


def _attribute_lines(baselines: Path, root: Path) -> tuple[str, ...]:
    folder = posix(baselines, root)
    patterns = (f"{folder}/**/*.json", f"{folder}/**/*.ops/*.csv")
    return tuple(f"{_quoted(pattern)} {_ATTRIBUTE}" for pattern in patterns)


def _quoted(pattern: str) -> str:
    """Return a pattern as git's attributes have it: a space would end it."""
    if not set(pattern) & set(' "\\'):
        return pattern
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _state(new: bool) -> str:  # noqa: FBT001 (one word for one fact)
    return "new" if new else "is set"


def _listing(rows: list[tuple[str, str, str]], changing: Changing) -> Listing:
    would = "would set" if changing.dry_run else "set"
    lines = [
        f"{where}: {would if state == 'new' else 'already set'}: {what}"
        for where, what, state in rows
    ]
    document = {
        "dry_run": changing.dry_run,
        "settings": [dict(zip(_HEADINGS, row, strict=True)) for row in rows],
    }
    return Listing(tuple(lines), document, _HEADINGS, tuple(rows))
