"""What a project has let go, in the summary of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.report.lines import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.lapse import Lapses

#: How many tests are named; the others are counted.
_MOST: Final = 5


def lapse_lines(lapses: Lapses) -> Iterator[Line]:
    """Say which tests are required and did not run, and which baselines are stale."""
    if lapses.lost:
        count = counted(len(lapses.lost), "test")
        yield Line(f"failed: {count} with a baseline did not run, and required is set", bad=True)
        for test in lapses.lost[:_MOST]:
            yield Line(f"  {test}", bad=True)
        if len(lapses.lost) > _MOST:
            yield Line(f"  and {len(lapses.lost) - _MOST} more", bad=True)
        gone = "what is gone or renamed: ttnn-perf baseline prune, baseline rename"
        yield Line(f"  run those that are skipped; {gone}")
    for stale in lapses.stale:
        count = counted(len(stale.tests), "baseline")
        oldest = f"{stale.oldest} of {stale.oldest_at}"
        yield Line(f"stale: {count} {stale.why}, the oldest {oldest}")
        yield Line("  measure anew with: ttnn-perf calibrate TESTS --write")
