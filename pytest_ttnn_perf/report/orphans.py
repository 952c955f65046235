"""Baselines without a test: said at the end of a run, and before they are removed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.report.lines import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.orphan import Orphaned, Renaming


def orphan_lines(found: Orphaned | None) -> Iterator[Line]:
    """Name what a full run did not meet, and the commands that settle it."""
    if found is None:
        return
    keys = sorted({orphan.hardware.key for orphan in found.orphans})
    count = counted(len(found.orphans), "baseline")
    yield Line(f"orphaned: {count} of {', '.join(keys)} without a test")
    yield from (Line(f"  {text}") for text in renaming_texts(found))
    for orphan in found.orphans:
        if orphan.looks_like is None:
            yield Line(f"  {orphan.test} is gone")
        elif orphan.taken:
            yield Line(f"  {orphan.test} looks like {orphan.looks_like}, which has a baseline now")
    if found.record is not None:
        words = ["ttnn-perf", "baseline", "prune", found.record, *found.options]
        yield Line(f"  remove those that are gone with: {shlex.join(words)}")


def renaming_texts(found: Orphaned) -> Iterator[str]:
    """Say what looks renamed, with the command that renames its baselines."""
    for renaming in found.renamings:
        tests = f" ({counted(len(renaming.orphans), 'baseline')})" if _is_place(renaming) else ""
        words = ["ttnn-perf", "baseline", "rename", renaming.before, renaming.after, *found.options]
        yield (
            f"looks like {renaming.before} renamed to {renaming.after}{tests}: {shlex.join(words)}"
        )


def _is_place(renaming: Renaming) -> bool:
    return renaming.orphans[0].test != renaming.before
