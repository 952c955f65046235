"""Gates that silently lost their test, and baselines that have outlived what they were taken on."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.model.lapse import Lapses, Stale
from pytest_ttnn_perf.workflow.orphans import hardware_of, stored_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.baseline import Accepted
    from pytest_ttnn_perf.model.observation import Run
    from pytest_ttnn_perf.model.settings import Settings


def lapses_of(run: Run, store: BaselineStore, settings: Settings) -> Lapses:
    """Return what a run shows of the baselines on its hardware.

    Nothing that goes wrong here may cost the run its summary: a baseline that cannot be read is
    told where it is needed.
    """
    try:
        lost = tuple(lost_tests(run, store)) if settings.required else ()
        return Lapses(lost, tuple(_stale(run, store, settings.stale_days)))
    except TtnnPerfError:
        return Lapses()


def lost_tests(run: Run, store: BaselineStore) -> Iterator[str]:
    """Yield the tests with a baseline that a full run would have measured, and did not."""
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return
    for test, _ in stored_tests(store.all_files(hardware_of(run))):
        if test not in run.tests and run.coverage.asks_for(test):
            yield test


def _stale(run: Run, store: BaselineStore, days: int) -> Iterator[Stale]:
    accepted = dict(_accepted(run, store))
    now = _date(run.environment.started_at)
    if now is not None and days:

        def is_old(each: Accepted) -> bool:
            at = _date(each.at)
            return at is not None and (now - at) / timedelta(days=1) > days

        yield from _alike(accepted, is_old, f"older than {days} days")
    major = _major(run.environment.ttnn)
    if major is not None:

        def is_other(each: Accepted) -> bool:
            return _major(each.ttnn) not in {None, major}

        yield from _alike(accepted, is_other, f"of another ttnn than {major}.x")


def _accepted(run: Run, store: BaselineStore) -> Iterator[tuple[str, Accepted]]:
    """Yield when, and with what, the baselines of the run's tests were accepted."""
    for test, judged in run.tests.items():
        hardware = judged.observation.hardware or run.hardware
        stored = store.find(hardware, test) if hardware and not judged.written else None
        if stored is not None:
            yield test, stored.accepted


def _alike(
    accepted: dict[str, Accepted], chosen: Callable[[Accepted], bool], why: str
) -> Iterator[Stale]:
    tests = [test for test, each in accepted.items() if chosen(each)]
    if tests:
        oldest = min(tests, key=lambda test: accepted[test].at)
        yield Stale(why, tuple(tests), oldest, accepted[oldest].at[:10])


def _date(text: str | None) -> datetime | None:
    """Return a moment; one without a zone, as other producers write it, is in UTC."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=timezone.utc) if found and found.tzinfo is None else found


def _major(version: str | None) -> str | None:
    """Return the first number of a version.

    >>> _major("0.81.1"), _major("unknown"), _major(None)
    ('0', None, None)
    """
    first = (version or "").partition(".")[0]
    return first if first.isdigit() else None
