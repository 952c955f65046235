"""What a database keeps: runs, and for a shorter time their samples and op tables."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, func, select

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.history.database_schema import RECORD, RUN
from pytest_ttnn_perf.history.database_writing import chunks, delete_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from pytest_ttnn_perf.history.database import Database
    from pytest_ttnn_perf.history.retention import Kept

_DAY_S: Final = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is removed: whole ``runs``, and the ``samples`` of others; ``kept`` runs stay."""

    runs: int
    samples: int
    kept: int
    first_day: str | None = None
    last_day: str | None = None


def prune(
    database: Database, runs: Kept | None, samples: Kept | None, *, dry_run: bool = False
) -> Pruned:
    """Remove what need not be kept, or with ``dry_run`` only tell what that is.

    Raises:
        HistoryError: the database cannot be read or changed, or has no history.
    """
    if dry_run:
        return database.read(partial(_prune, runs, samples, dry_run=True))
    database.read(lambda _: None)  # what is no history yet is not made one
    done = database.write(partial(_prune, runs, samples, dry_run=False))
    if done.runs or done.samples:
        database.compact()
    return done


def _prune(
    runs: Kept | None, samples: Kept | None, connection: Connection, *, dry_run: bool
) -> Pruned:
    # A run whose clock cannot be read is as old as its arrival.
    began = func.coalesce(RUN.c.started_s, RUN.c.sent_s).label("began")
    query = select(RUN.c.id, began, RUN.c.started_at, RECORD.c.run_id.label("record"))
    newest = query.join_from(RUN, RECORD, isouter=True).order_by(began.desc(), RUN.c.id.desc())
    rows = connection.execute(newest).all()
    old = _outside(rows, runs)
    gone = {row.id for row in old}
    stale = [
        row.id for row in _outside(rows, samples) if row.id not in gone and row.record is not None
    ]
    if not dry_run:
        delete_runs(connection, sorted(gone))
        for chunk in chunks(stale):
            connection.execute(delete(RECORD).where(RECORD.c.run_id.in_(chunk)))
    days = [row.started_at[:10] for row in reversed(old)]
    first, last = (days[0], days[-1]) if days else (None, None)
    return Pruned(len(old), len(stale), len(rows) - len(old), first, last)


def _outside(rows: Sequence[Any], keep: Kept | None) -> Sequence[Any]:
    """Return the rows that are not kept; the newest come first."""
    if keep is None:
        return []
    if keep.newest is not None:
        return rows[keep.newest :]
    oldest_s = time.time() - (keep.days or 0) * _DAY_S
    return [row for row in rows if row.began < oldest_s]
