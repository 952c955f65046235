"""Baseline health: tests that did not run, baselines that are stale, and orphans.

Which tests there are is known from a full run, or from a pytest that only collects.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import DecodeError, InputError, TtnnPerfError, UsageError
from pytest_ttnn_perf._base.files import read_json
from pytest_ttnn_perf.gate.judge import representative
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.processes.worker import interpreter
from pytest_ttnn_perf.records.baseline import Orphan, Orphaned, Renaming, Traits, split_test_id
from pytest_ttnn_perf.records.json import decode
from pytest_ttnn_perf.records.observation import Coverage, function_of
from pytest_ttnn_perf.records.verdict import BaselineHealth, Reason, Stale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.baselines.store import BaselineStore, StoredFile
    from pytest_ttnn_perf.records.baseline import Accepted
    from pytest_ttnn_perf.records.hardware import Hardware
    from pytest_ttnn_perf.records.observation import JudgedTest, Observation, Run
    from pytest_ttnn_perf.records.settings import Settings


def find_orphans(run: Run, store: BaselineStore) -> Orphaned | None:
    """Return the orphans on the hardware that a full run has used; None if there are none.

    Nothing that goes wrong here may cost the run its summary.
    """
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return None
    try:
        orphans = list(orphans_in(run, store.all_files(hardware_of(run)), used=hardware_of(run)))
    except TtnnPerfError:
        return None
    return describe_orphans(orphans, run, store) if orphans else None


def describe_orphans(orphans: Sequence[Orphan], run: Run, store: BaselineStore) -> Orphaned:
    """Return orphans with the new tests that they look like, and the commands for that."""
    known = tuple(recognise_orphans(orphans, run, store))
    functions = run.coverage.functions(run.tests) if run.coverage else frozenset()
    return Orphaned(known, tuple(renamings(known, functions)))


def hardware_of(run: Run) -> frozenset[Hardware]:
    """Return the hardware that the tests of a run were filed under."""
    own = {judged.observation.hardware for judged in run.tests.values()}
    return frozenset(hardware for hardware in (*own, run.hardware) if hardware is not None)


def orphans_in(
    run: Run, files: Iterable[StoredFile], *, used: frozenset[Hardware]
) -> Iterator[Orphan]:
    """Yield the baselines of tests that a run would have met, were they still there.

    On hardware that it has not used, only if no test of that function is left: parameters may
    depend on the device that is found while tests are collected.
    """
    assert run.coverage is not None, "only what was collected tells what is gone"
    existing = {*run.tests, *run.coverage.others}
    functions = run.coverage.functions(run.tests)
    for test, file in stored_tests(files):
        hardware = file.content.hardware
        gone = test not in existing and run.coverage.covers(test)
        if gone and (hardware in used or function_of(test) not in functions):
            yield Orphan(hardware, test)


def stored_tests(files: Iterable[StoredFile]) -> Iterator[tuple[str, StoredFile]]:
    """Yield the ids of all stored tests whose file is known."""
    for file in files:
        if file.test_file is not None:
            for name in sorted(file.content.tests):
                yield f"{file.test_file}::{name}" if name else file.test_file, file


def recognise_orphans(
    orphans: Sequence[Orphan], run: Run, store: BaselineStore
) -> Iterator[Orphan]:
    """Yield the orphans, each with the new test that it looks like, if there is one."""
    from pytest_ttnn_perf.analysis.ops.resemblance import pair_up

    for hardware in dict.fromkeys(orphan.hardware for orphan in orphans):
        own = [orphan for orphan in orphans if orphan.hardware == hardware]
        new = _new_tests(run, hardware)
        gone = {orphan.test: _stored_traits(store, orphan) for orphan in own}
        hints = {test: _hints(test) for test in (*gone, *new)}
        traits = {test: _observed_traits(judged.observation) for test, judged in new.items()}
        pairs = pair_up(gone, traits, hints=hints)
        for orphan in own:
            name = pairs.get(orphan.test)
            taken = name is not None and store.find(hardware, name) is not None
            yield replace(orphan, looks_like=name, taken=taken)


def renamings(orphans: Sequence[Orphan], functions: frozenset[str]) -> Iterator[Renaming]:
    """Yield the commands that would rename what looks renamed, as few as there are.

    One for a file or a function, if all that was in it went the same way and none of it is left;
    ``functions`` are those that there are.
    """
    open_ones = [o for o in orphans if o.looks_like is not None and not o.taken]
    files = {function.partition("::")[0] for function in functions}
    left = dict.fromkeys(open_ones)
    for place, kept in ((_file, files), (function_of, functions)):
        for before in dict.fromkeys(place(orphan.test) for orphan in left):
            inside = tuple(o for o in orphans if place(o.test) == before)
            after = {place(o.looks_like or "") for o in inside}
            same = all(_rest(o.test, place) == _rest(o.looks_like or "", place) for o in inside)
            whole = before not in kept and not any(o.taken for o in inside)
            if whole and len(after) == 1 and same:
                yield Renaming(before, after.pop(), inside)
                for orphan in inside:
                    left.pop(orphan, None)
    for orphan in left:
        yield Renaming(orphan.test, str(orphan.looks_like), (orphan,))


def _file(test: str) -> str:
    return split_test_id(test)[0]


def _rest(test: str, place: object) -> str:
    """Return what a test's id has beyond its file, or beyond its function."""
    return split_test_id(test)[1] if place is _file else test[len(function_of(test)) :]


def _hints(test: str) -> tuple[str, str]:
    """Return what survives when a file moves, and when a function is renamed."""
    name = split_test_id(test)[1]
    return name, name.partition("[")[2]


def _new_tests(run: Run, hardware: Hardware) -> Mapping[str, JudgedTest]:
    return {
        test: judged
        for test, judged in run.tests.items()
        if (judged.observation.hardware or run.hardware) == hardware
        and any(verdict.reason is Reason.NEW_TEST for verdict in judged.verdicts)
    }


def _stored_traits(store: BaselineStore, orphan: Orphan) -> Traits:
    baseline = store.find(orphan.hardware, orphan.test)
    metrics = baseline.metrics.values() if baseline else ()
    try:
        ops = store.ops_of(orphan.hardware, orphan.test)
    except InputError:  # a table that is damaged is none
        ops = None
    return Traits({stored.metric: centre_of(stored) for stored in metrics}, ops)


def _observed_traits(observation: Observation) -> Traits:
    values = {
        observed.metric: representative(observed.metric, observed.samples)
        for observed in observation.metrics.values()
        if observed.gated and observed.samples and all(map(isfinite, observed.samples))
    }
    return Traits(values, observation.ops)


def health_of(run: Run, store: BaselineStore, settings: Settings) -> BaselineHealth:
    """Return what a run shows of the baselines on its hardware.

    Nothing that goes wrong here may cost the run its summary: a baseline that cannot be read is
    told where it is needed.
    """
    try:
        lost = tuple(lost_tests(run, store)) if settings.required else ()
        return BaselineHealth(lost, tuple(_stale(run, store, settings.stale_days)))
    except TtnnPerfError:
        return BaselineHealth()


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

        def is_old(acceptance: Accepted) -> bool:
            at = _date(acceptance.at)
            return at is not None and (now - at) / timedelta(days=1) > days

        yield from _alike(accepted, is_old, f"older than {days} days")
    major = _major(run.environment.ttnn)
    if major is not None:

        def is_other(acceptance: Accepted) -> bool:
            return _major(acceptance.ttnn) not in {None, major}

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
    tests = [test for test, acceptance in accepted.items() if chosen(acceptance)]
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


#: Names the file that the collecting process writes what it found to.
COLLECTED: Final = "TTNN_PERF_COLLECTED"
#: The module that does so. What pytest prints depends on its options: it is not read.
_PLUGIN: Final = "pytest_ttnn_perf.plugin.collecting"
_HINT: Final = (
    "where collecting needs the hardware, give the record of a full run: "
    "ttnn-perf baseline prune RUN.json"
)


def collect(settings: Settings, cwd: Path) -> Coverage:
    """Return the tests that ``pytest --collect-only`` finds.

    Raises:
        UsageError: it could not collect them all.
    """
    from pytest_ttnn_perf.processes.commands import run_batch

    with tempfile.TemporaryDirectory(prefix="ttnn-perf-") as folder:
        answer, log = Path(folder, "collected.json"), Path(folder, "log")
        command = [*interpreter(), "-m", "pytest", "--collect-only", "-q", "-p", _PLUGIN]
        environment = {**os.environ, COLLECTED: str(answer)}
        ending = run_batch(
            command, cwd=cwd, environment=environment, log=log, timeout_s=settings.timeout
        )
        if not answer.exists():
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            last = f": {lines[-1]}" if lines else ""
            message = f"pytest --collect-only {ending}{last}; {_HINT}"
            raise UsageError(message)
        try:
            found = read_json(answer, partial(decode, Coverage))
        except (DecodeError, InputError) as error:
            message = f"pytest --collect-only told what cannot be read: {error}"
            raise UsageError(message) from error
    if not any("::" in test for test in found.others):
        message = f"pytest --collect-only finds no test here: all baselines would go; {_HINT}"
        raise UsageError(message)
    if not found.places:
        message = f"the configuration of pytest selects tests or leaves files out; {_HINT}"
        raise UsageError(message)
    return found
