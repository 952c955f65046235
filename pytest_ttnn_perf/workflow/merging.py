"""Merging baselines that two branches changed: as git's merge driver, and after a conflict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.atomic import write_text
from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf._support.json_text import parse_json, read_text
from pytest_ttnn_perf.baselines.merge import merge_files
from pytest_ttnn_perf.baselines.ops_file import strange
from pytest_ttnn_perf.baselines.paths import ops_path
from pytest_ttnn_perf.baselines.schema import decode_file, encode_text
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.model.merge import Merged, Take
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.processes.git_files import staged
from pytest_ttnn_perf.report.merging import Side, conflict_listing, table_conflict_listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.baseline import BaselineFile, TestBaseline

_TABLE = ".csv"


@dataclass(frozen=True, slots=True)
class Merging:
    """What is asked for: three versions, or none for those of a file that git has in conflict.

    ``path`` is the file's name in the repository; what is written is ``ours``, or the file.
    """

    files: tuple[Path, Path, Path] | None
    path: Path | None
    take: Take | None
    shape: str


@dataclass(frozen=True, slots=True)
class _Versions:
    """The texts of the three versions, and the file that the result goes to."""

    base: str
    ours: str
    theirs: str
    names: tuple[Path, Path, Path]
    goal: Path


def merge_baselines(asked: Merging) -> Result:
    """Merge three versions of a baseline file, or of an op table beside one.

    Raises:
        UsageError: git has no such file in conflict.
        InputError: a version is not what it should be; nothing was written.
        WriteError: the result cannot be written.
    """
    versions = _versions(asked)
    name = str(asked.path or versions.goal)
    if Path(name).suffix == _TABLE:
        return _merge_tables(versions, asked, name)
    base, ours, theirs = (
        _decoded(text, file)
        for text, file in zip(
            (versions.base, versions.ours, versions.theirs), versions.names, strict=True
        )
    )
    if ours is None or theirs is None:
        raise InputError(versions.names[1 if ours is None else 2], "the file is empty")
    if ours.hardware != theirs.hardware:
        keys = f"{ours.hardware.key} and {theirs.hardware.key}"
        raise InputError(versions.names[1], f"the two sides are of different hardware: {keys}")
    merged = merge_files(base, ours, theirs, take=asked.take)
    tables = (
        {} if asked.files else dict(_tables(merged, versions.goal, asked.path or versions.goal))
    )
    write_text(versions.goal, encode_text(merged.file))
    for table, text in tables.items():
        write_text(table, text)
    sides = [(each, _side(each.ours), _side(each.theirs)) for each in merged.conflicts]
    listing = conflict_listing(name, merged, sides)
    return Result(listing.text(asked.shape), failed=bool(merged.unsettled))


def _versions(asked: Merging) -> _Versions:
    if asked.files is not None:
        base, ours, theirs = asked.files
        # Of a file that both sides added, git's base is empty, or not there.
        before = read_text(base) if base.exists() else ""
        return _Versions(before, read_text(ours), read_text(theirs), asked.files, ours)
    assert asked.path is not None, "asked for neither files nor a path"
    file = asked.path
    base_text, ours_text, theirs_text = (staged(file, stage) for stage in (1, 2, 3))
    if ours_text is None or theirs_text is None:
        message = (
            f"git has no two versions of {file}: expected a file that a merge left in conflict"
        )
        raise UsageError(f"{message}; git status lists them")
    return _Versions(base_text or "", ours_text, theirs_text, (file, file, file), file)


def _decoded(text: str, file: Path) -> BaselineFile | None:
    return parse_json(text, decode_file, file=file) if text.strip() else None


def _merge_tables(versions: _Versions, asked: Merging, name: str) -> Result:
    """Merge two op tables: only one can be the one of the run that was accepted."""
    changed = {"ours": versions.ours != versions.base, "theirs": versions.theirs != versions.base}
    conflict = all(changed.values()) and versions.ours != versions.theirs
    theirs = asked.take is Take.THEIRS if conflict else changed["theirs"]
    if conflict and asked.take is Take.NEWEST:
        message = f"{name}: an op table has no date; take the side whose baseline was taken: "
        raise UsageError(message + "--take ours or --take theirs")
    write_text(versions.goal, versions.theirs if theirs else versions.ours)
    unsettled = conflict and asked.take is None
    listing = table_conflict_listing(name, conflict=conflict, theirs=theirs, settled=not unsettled)
    return Result(listing.text(asked.shape), failed=unsettled)


def _tables(merged: Merged, goal: Path, name: Path) -> Iterator[tuple[Path, str]]:
    """Yield the op tables that belong to the side that was taken, where git has both.

    Raises:
        InputError: a table would be written through a link that leads elsewhere.
    """
    for conflict in merged.conflicts:
        taken = conflict.ours if conflict.taken is Take.OURS else conflict.theirs
        if taken is None or taken.ops is None:
            continue
        place = ops_path(f"{name.name}::{conflict.test}").name
        table = goal.with_suffix(".ops") / place
        text = staged(table, 2 if conflict.taken is Take.OURS else 3)
        found = strange(table, goal.parent) if text is not None else None
        if found is not None:
            raise InputError(table, f"expected a file in {goal.parent}, found {found}")
        if text is not None:
            yield table, text


def _side(test: TestBaseline | None) -> Side | None:
    if test is None:
        return None
    values = {name: (m.metric, centre_of(m), len(m.current)) for name, m in test.metrics.items()}
    return Side(test.accepted, values)
