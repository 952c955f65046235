"""Which run records are old and may go: none that a baseline cites, or that is being written."""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import read_text
from pytest_ttnn_perf.analysis.captures.detect import is_run_record, read_run
from pytest_ttnn_perf.history.order import seconds_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import StoredFile

_DAY_S: Final = 24 * 60 * 60.0
_JOURNAL: Final = ".jsonl"


class Kept(NamedTuple):
    """What stays of a history: so many days of it, or so many runs."""

    days: int | None = None
    newest: int | None = None


class Fate(Enum):
    """What becomes of a file, and why."""

    REMOVED = "removed"
    NEW = "new enough"
    CITED = "cited by a baseline"
    UNDER_WAY = "a run that may be under way"
    NO_RECORD = "no run record"


class Aged(NamedTuple):
    """A file among the records, when its run started, and what becomes of it."""

    file: Path
    fate: Fate
    started_s: float = 0.0
    size_bytes: int = 0


def cited_runs(files: Iterable[StoredFile]) -> frozenset[str]:
    """Return the runs that the sessions of baselines are of."""
    return frozenset(
        session.run
        for file in files
        for test in file.content.tests.values()
        for metric in test.metrics.values()
        for session in metric.sessions
    )


def sort_out(files: Sequence[Path], cited: Collection[str], kept: Kept) -> list[Aged]:
    """Return what becomes of files, the oldest first: what is older, or more, than is kept goes."""
    now_s = time.time()
    found = sorted(_aged(files, cited, now_s), key=lambda aged: (aged.started_s, aged.file))
    runs = [aged for aged in found if aged.fate is not Fate.NO_RECORD]
    recent = {aged.file for aged in runs[len(runs) - min(kept.newest or 0, len(runs)) :]}
    if kept.days is not None:
        recent = {aged.file for aged in runs if aged.started_s >= now_s - kept.days * _DAY_S}
    return [
        aged._replace(fate=Fate.NEW) if aged.fate is Fate.REMOVED and aged.file in recent else aged
        for aged in found
    ]


def _aged(files: Sequence[Path], cited: Collection[str], now_s: float) -> Iterator[Aged]:
    """Yield files as if all that may go did."""
    for file in files:
        try:
            state = file.lstat()
            # Results of benchmarks, too, can be read as a run, and are no records of ours.
            readable = not file.is_symlink() and is_run_record(read_text(file)[:_HEAD])
            run = read_run(file) if readable else None
        except (InputError, OSError):
            run = None
        if run is None or run.id is None:
            yield Aged(file, Fate.NO_RECORD)
            continue
        started_s = seconds_of(run.environment.started_at)
        started_s = state.st_mtime if started_s is None else started_s
        fate = Fate.CITED if run.id in cited else Fate.REMOVED
        if file.suffix == _JOURNAL and state.st_mtime > now_s - _DAY_S:
            fate = Fate.UNDER_WAY
        yield Aged(file, fate, started_s, state.st_size)


#: As much of a file as tells what it is.
_HEAD: Final = 1 << 12
