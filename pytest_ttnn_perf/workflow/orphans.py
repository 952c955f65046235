"""Baselines whose test is gone: found by what a run collected, and recognised in new tests."""

from __future__ import annotations

import os
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import InputError, TtnnPerfError
from pytest_ttnn_perf.attribution.resemblance import pair_up
from pytest_ttnn_perf.baselines.paths import split_test_id
from pytest_ttnn_perf.gate.differences import representative
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.model.coverage import function_of
from pytest_ttnn_perf.model.orphan import Orphan, Orphaned, Renaming
from pytest_ttnn_perf.model.traits import Traits
from pytest_ttnn_perf.model.verdict import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import BaselineStore, StoredFile
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest, Observation, Run
    from pytest_ttnn_perf.model.rerun import Rerun


def orphaned(run: Run, store: BaselineStore) -> Orphaned | None:
    """Return the orphans on the hardware that a full run has used; None if there are none.

    Nothing that goes wrong here may cost the run its summary.
    """
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return None
    try:
        orphans = list(orphans_in(run, store.all_files(hardware_of(run)), used=hardware_of(run)))
    except TtnnPerfError:
        return None
    return described(orphans, run, store) if orphans else None


def with_commands(
    found: Orphaned | None, rerun: Rerun, records: Sequence[Path], *, here: Path
) -> Orphaned | None:
    """Return orphans with what the commands about them must be told, from where the user is."""
    if found is None:
        return None
    record = os.path.relpath(records[0], here) if records else None
    return replace(found, record=record, options=rerun.baselines_option)


def described(orphans: Sequence[Orphan], run: Run, store: BaselineStore) -> Orphaned:
    """Return orphans with the new tests that they look like, and the commands for that."""
    known = tuple(recognised(orphans, run, store))
    functions = run.coverage.functions(run.tests) if run.coverage else frozenset()
    return Orphaned(known, tuple(renamings(known, functions)))


def hardware_of(run: Run) -> frozenset[Hardware]:
    """Return the hardware that the tests of a run were filed under."""
    own = {judged.observation.hardware for judged in run.tests.values()}
    return frozenset(each for each in (*own, run.hardware) if each is not None)


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


def recognised(orphans: Sequence[Orphan], run: Run, store: BaselineStore) -> Iterator[Orphan]:
    """Yield the orphans, each with the new test that it looks like, if there is one."""
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
