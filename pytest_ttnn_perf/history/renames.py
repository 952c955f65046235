"""Tests that were renamed: what was recorded of them before goes on under their new names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.baselines.store import StoredFile
    from pytest_ttnn_perf.history.runs import Reading, RecordedRun

#: The key and the id that something is filed under.
Name = tuple[str, str]
#: What tests were filed under before, the oldest first, by what they are now.
Renamed = Mapping[Name, tuple[Name, ...]]


def renamed_tests(files: Iterable[StoredFile]) -> Renamed:
    """Return what tests were filed under before, the oldest first, by what they are now."""
    found = {}
    for file in files:
        key = file.content.hardware.key
        for name, stored in file.content.tests.items():
            if stored.formerly and file.test_file is not None:
                before = tuple((former.key, former.test) for former in stored.formerly)
                found[key, f"{file.test_file}::{name}"] = before
    return found


def follow(runs: Sequence[RecordedRun], renamed: Renamed) -> tuple[RecordedRun, ...]:
    """Return runs that are in order with all readings of a test under its name of today.

    A name may be that of another test by now: what has it once the test is there under a later
    name is not the test that was renamed.
    """
    if not renamed:
        return tuple(runs)
    first: dict[Name, int] = {}
    for number, run in enumerate(runs):
        for reading in run.readings:
            first.setdefault((reading.key, reading.test), number)
    # Until which run a name stands for the test, and the name of today.
    until = {
        former: (min((first.get(name, len(runs)) for name in later), default=len(runs)), now)
        for now, names in renamed.items()
        for former, later in _with_later((*names, now))
        if former != now
    }

    def readings(number: int, run: RecordedRun) -> Iterator[Reading]:
        for reading in run.readings:
            end, (key, test) = until.get((reading.key, reading.test), (0, ("", "")))
            if number < end:
                yield replace(reading, key=key, test=test, recorded_as=reading.test)
            else:
                yield reading

    return tuple(replace(r, readings=tuple(readings(n, r))) for n, r in enumerate(runs))


def _with_later(names: Sequence[Name]) -> Iterator[tuple[Name, Sequence[Name]]]:
    """Yield each name but the last, with those that came after it."""
    for place, name in enumerate(names[:-1], start=1):
        yield name, names[place:]
