"""Health of baselines: required tests that did not run, stale baselines, orphans."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.baseline import split_test_id
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.observation import function_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore, StoredFile


class BaselineHealth(NamedTuple):
    """The health of a project's baselines.

    ``lost`` are tests with a baseline that have no result in a full run, where one is required.
    ``stale`` are tests whose baselines are older than ``days``, and since when, the oldest first.
    """

    lost: tuple[str, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    days: int = 0


class Orphan(Struct, frozen=True):
    """A stored baseline that no test is compared with any more."""

    hardware: Hardware
    test: str


def find_orphans(run: Run, store: BaselineStore) -> tuple[Orphan, ...]:
    """Return the orphans of a full run.

    Nothing that goes wrong here may cost the run its summary.
    """
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return ()
    used = hardware_of(run)
    try:
        return tuple(orphans_in(run, store.all_files(used), used=used))
    except TtnnPerfError:
        return ()


def hardware_of(run: Run) -> frozenset[Hardware]:
    """Return the hardware that the tests of a run were filed under."""
    own = {judged.observation.hardware for judged in run.tests.values()}
    return frozenset(hardware for hardware in (*own, run.hardware) if hardware is not None)


def orphans_in(
    run: Run, files: Iterable[StoredFile], *, used: frozenset[Hardware]
) -> Iterator[Orphan]:
    """Yield the baselines of tests that a run would have met.

    On hardware that it has not used, only if no test of that function is left: parameters may
    depend on the device that is found while tests are collected.
    """
    assert run.coverage is not None, "only what was collected tells what is gone"
    existing = {*run.tests, *run.coverage.others}
    functions = run.coverage.functions(run.tests)
    for test, file in stored_tests(files):
        hardware = file.content.hardware
        stored = file.content.tests[split_test_id(test)[1]]
        if stored.is_of_script:
            continue  # no collection meets it
        gone = test not in existing and run.coverage.covers(test)
        if gone and (hardware in used or function_of(test) not in functions):
            yield Orphan(hardware, test)


def stored_tests(files: Iterable[StoredFile]) -> Iterator[tuple[str, StoredFile]]:
    """Yield the ids of all stored tests whose file is known."""
    for file in files:
        if file.test_file is not None:
            for name in sorted(file.content.tests):
                yield f"{file.test_file}::{name}" if name else file.test_file, file


def health_of(run: Run, store: BaselineStore, settings: Settings) -> BaselineHealth:
    """Return the health of the baselines on the hardware of a run.

    A baseline that cannot be read costs no summary: it is reported where it is needed.
    """
    try:
        lost = tuple(lost_tests(run, store)) if settings.required else ()
        return BaselineHealth(lost, _stale(run, store, settings.stale_days), settings.stale_days)
    except TtnnPerfError:
        return BaselineHealth()


def lost_tests(run: Run, store: BaselineStore) -> Iterator[str]:
    """Yield tests with a baseline that a full run has missed."""
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return
    for test, file in stored_tests(store.all_files(hardware_of(run))):
        is_of_script = file.content.tests[split_test_id(test)[1]].is_of_script
        if test not in run.tests and not is_of_script and run.coverage.asks_for(test):
            yield test


def _stale(run: Run, store: BaselineStore, days: int) -> tuple[tuple[str, str], ...]:
    accepted = {}
    for test, judged in run.tests.items():
        hardware = judged.observation.hardware or run.hardware
        stored = store.find(hardware, test) if hardware and not judged.written else None
        if stored is not None:
            accepted[test] = stored.accepted.at
    began = run.environment.started_at
    old = [(t, at) for t, at in accepted.items() if days and _days_between(at, began) > days]
    return tuple(sorted(old, key=itemgetter(1)))


def _days_between(then: str, now: str | None) -> float:
    """Return the days between two moments; 0 where one is not known."""
    try:
        moments = [
            datetime.fromisoformat((each or "").replace("Z", "+00:00")) for each in (then, now)
        ]
        # One without a zone, as other producers write it, is in UTC.
        start, end = (m if m.tzinfo else m.replace(tzinfo=timezone.utc) for m in moments)
    except ValueError:
        return 0.0
    return (end - start) / timedelta(days=1)
