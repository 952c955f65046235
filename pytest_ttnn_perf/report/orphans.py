"""Baselines that no test is filed under any more: what is said of them, and what settles it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.report.layout import Line
from pytest_ttnn_perf.report.sentences import command_line, place_of, rename_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.records.baseline import Orphan, Orphaned


#: How many commands are printed of many that are alike; the others are counted.
_MOST: Final = 5


def orphan_lines(found: Orphaned) -> Iterator[Line]:
    """Name what a full run did not meet, and the commands that settle it."""
    lost = [orphan for orphan in found.orphans if not orphan.in_use]
    if lost:
        yield Line(f"orphaned: {_count(lost)} without a test")
        yield from (Line(f"  {text}") for text in _renamed(found))
        for orphan in lost:
            if orphan.looks_like is None:
                yield Line(f"  {orphan.test} is gone")
            elif orphan.taken:
                now = f"{orphan.looks_like}, which has a baseline now"
                yield Line(f"  {orphan.test} looks like {now}")
        if any(not renaming.orphans[0].in_use for renaming in found.renamings):
            yield Line("  not renamed? record the new test with --ttnn-perf-update=new")
    renamed = {orphan for renaming in found.renamings for orphan in renaming.orphans}
    if found.record is not None and not renamed.issuperset(lost):
        argv = ("ttnn-perf", "baseline", "prune", place_of(found.record), *found.options)
        yield Line(f"  remove those that are gone with: {command_line(*argv)}")
    yield from map(Line, _under_node_ids(found))


def renaming_texts(found: Orphaned) -> Iterator[str]:
    """Say what looks renamed, or is to be, with the command that renames its baselines."""
    yield from _renamed(found)
    yield from _under_node_ids(found)


def _renamed(found: Orphaned) -> Iterator[str]:
    for renaming in found.renamings:
        if renaming.orphans[0].in_use:
            continue
        is_place = renaming.orphans[0].test != renaming.before
        tests = f" ({counted(len(renaming.orphans), 'baseline')})" if is_place else ""
        command = rename_command(renaming.before, renaming.after, found.options)
        yield f"renamed? {renaming.before} to {renaming.after}{tests}: {command}"


def _under_node_ids(found: Orphaned) -> Iterator[str]:
    """Name baselines that are found by a whole id: the next new target would lose them."""
    moves = [renaming for renaming in found.renamings if renaming.orphans[0].in_use]
    if not moves:
        return
    stored = [orphan for renaming in moves for orphan in renaming.orphans]
    yield f"filed under a whole id: {_count(stored)}, with parameters of identity_ignores"
    for renaming in moves[:_MOST]:
        yield f"  {rename_command(renaming.before, renaming.after, found.options)}"
    more = f"{len(moves) - _MOST} more; " if len(moves) > _MOST else ""
    yield f"  {more}an update that writes a test renames its baseline as well"


def _count(orphans: Sequence[Orphan]) -> str:
    keys = sorted({orphan.hardware.key for orphan in orphans})
    return f"{counted(len(orphans), 'baseline')} of {', '.join(keys)}"
