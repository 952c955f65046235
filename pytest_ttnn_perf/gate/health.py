"""Health of baselines: required tests that did not run, stale baselines, orphans."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.baseline import split_test_id
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.observation import Reason, function_of
from pytest_ttnn_perf.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore, StoredFile

    #: An old name, a new one, and the orphans that they are about.
    Renaming: TypeAlias = tuple[str, str, tuple["Orphan", ...]]


class BaselineHealth(NamedTuple):
    """The health of a project's baselines.

    ``lost`` are tests with a baseline that have no result in a full run, where one is required.
    ``stale`` says which baselines are outdated, and why.
    """

    lost: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


class Orphan(Struct, frozen=True):
    """A stored baseline that no test is compared with any more.

    ``looks_like`` is a new test without a baseline that it resembles.
    """

    hardware: Hardware
    test: str
    looks_like: str | None = None


#: Beyond so many pairs, about a second's worth, nothing is guessed.
_MOST_PAIRS: Final = 40_000


def find_orphans(
    run: Run, store: BaselineStore
) -> tuple[Sequence[Orphan], Sequence[Renaming]] | None:
    """Return the orphans of a full run, and their renamings.

    Nothing that goes wrong here may cost the run its summary.
    """
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return None
    try:
        orphans = list(orphans_in(run, store.all_files(hardware_of(run)), used=hardware_of(run)))
        return describe_orphans(orphans, run, store) if orphans else None
    except TtnnPerfError:
        return None


def describe_orphans(
    orphans: Sequence[Orphan], run: Run, store: BaselineStore
) -> tuple[Sequence[Orphan], Sequence[Renaming]]:
    """Add the possible new names of orphans, and return their renamings."""
    known = []
    for hardware in dict.fromkeys(orphan.hardware for orphan in orphans):
        own = [orphan.test for orphan in orphans if orphan.hardware == hardware]
        new = [
            test
            for test, judged in run.tests.items()
            if (judged.observation.hardware or run.hardware) == hardware
            and any(verdict.reason is Reason.NEW_TEST for verdict in judged.verdicts)
            and store.find(hardware, test) is None
        ]
        pairs = pair_by_name(own, new)
        known += [Orphan(hardware, test, pairs.get(test)) for test in own]
    functions = run.coverage.functions(run.tests) if run.coverage else frozenset()
    return known, list(renamings(known, functions))


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
    identities = {j.observation.node_id: test for test, j in run.tests.items()}
    functions = run.coverage.functions(run.tests)
    for test, file in stored_tests(files):
        hardware = file.content.hardware
        identity = identities.get(test)
        if identity is not None and split_test_id(identity)[1] not in file.content.tests:
            continue  # stored before some parameters were left out of the name: found even so
        gone = test not in existing and (identity is not None or run.coverage.covers(test))
        if gone and (hardware in used or function_of(test) not in functions):
            yield Orphan(hardware, test)


def stored_tests(files: Iterable[StoredFile]) -> Iterator[tuple[str, StoredFile]]:
    """Yield the ids of all stored tests whose file is known."""
    for file in files:
        if file.test_file is not None:
            for name in sorted(file.content.tests):
                yield f"{file.test_file}::{name}" if name else file.test_file, file


def pair_by_name(gone: Collection[str], new: Collection[str]) -> dict[str, str]:
    """Return the new names of tests that are gone.

    The only test of the same name in another file; else, of the same file, the only one that is
    new where only one is gone, or the one whose name is nearest, if each is nearest to the other.
    """
    pairs: dict[str, str] = {}
    for before in gone:
        name = split_test_id(before)[1]
        alike = [test for test in new if split_test_id(test)[1] == name]
        old = [test for test in gone if split_test_id(test)[1] == name]
        if len(alike) == len(old) == 1:
            pairs[before] = alike[0]
    gone, new = set(gone) - pairs.keys(), set(new) - set(pairs.values())
    for file in sorted({_file(test) for test in gone} & {_file(test) for test in new}):
        old = sorted(test for test in gone if _file(test) == file)
        now = sorted(test for test in new if _file(test) == file)
        if len(old) == len(now) == 1:
            pairs[old[0]] = now[0]
        elif len(old) * len(now) <= _MOST_PAIRS:
            nearest = {test: _nearest_name(test, now) for test in old}
            pairs |= {
                before: after
                for before, after in nearest.items()
                if after is not None and _nearest_name(after, old) == before
            }
    return pairs


def _nearest_name(test: str, others: Sequence[str]) -> str | None:
    """Return the nearest name, same parameters first; None for a tie."""
    from difflib import SequenceMatcher

    parameters = test.partition("[")[2]
    scores = {
        other: (other.partition("[")[2] == parameters, SequenceMatcher(None, test, other).ratio())
        for other in others
    }
    near = [other for other, score in scores.items() if score == max(scores.values())]
    return near[0] if len(near) == 1 else None


def renamings(orphans: Sequence[Orphan], functions: frozenset[str]) -> Iterator[Renaming]:
    """Yield the renamings of orphans, as few as there are.

    One for a file or a function, if all that was in it went the same way and none of it is left;
    ``functions`` are those that there are.
    """
    open_ones = [orphan for orphan in orphans if orphan.looks_like is not None]
    files = {function.partition("::")[0] for function in functions}
    left = dict.fromkeys(open_ones)
    for place, kept in ((_file, files), (function_of, functions)):
        for before in dict.fromkeys(place(orphan.test) for orphan in left):
            inside = tuple(o for o in orphans if place(o.test) == before)
            after = {place(o.looks_like or "") for o in inside}
            goal = min(after)
            same = all(f"{goal}{o.test[len(before) :]}" == o.looks_like for o in inside)
            if before not in kept and len(after) == 1 and same:
                yield before, goal, inside
                for orphan in inside:
                    left.pop(orphan, None)
    for orphan in left:
        yield orphan.test, str(orphan.looks_like), (orphan,)


def _file(test: str) -> str:
    return split_test_id(test)[0]


def health_of(run: Run, store: BaselineStore, settings: Settings) -> BaselineHealth:
    """Return the health of the baselines on the hardware of a run.

    A baseline that cannot be read costs no summary: it is reported where it is needed.
    """
    try:
        lost = tuple(lost_tests(run, store)) if settings.required else ()
        return BaselineHealth(lost, tuple(_stale(run, store, settings.stale_days)))
    except TtnnPerfError:
        return BaselineHealth()


def lost_tests(run: Run, store: BaselineStore) -> Iterator[str]:
    """Yield tests with a baseline that a full run has missed."""
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return
    measured = {*run.tests, *(judged.observation.node_id for judged in run.tests.values())}
    for test, _ in stored_tests(store.all_files(hardware_of(run))):
        if test not in measured and run.coverage.asks_for(test):
            yield test


def _stale(run: Run, store: BaselineStore, days: int) -> Iterator[str]:
    accepted = {}
    for test, judged in run.tests.items():
        hardware = judged.observation.hardware or run.hardware
        stored = store.find(hardware, test) if hardware and not judged.written else None
        if stored is not None:
            accepted[test] = stored.accepted
    began = run.environment.started_at
    old = [t for t, each in accepted.items() if days and _days_between(each.at, began) > days]
    major = _major(run.environment.ttnn)
    other = [t for t, each in accepted.items() if _major(each.ttnn) not in {None, major}]
    for why, tests in (
        (f"older than {days} days", old),
        (f"of another ttnn than {major}.x", other if major is not None else []),
    ):
        if tests:
            oldest = min(tests, key=lambda test: accepted[test].at)
            count = counted(len(tests), "baseline")
            yield f"{count} {why}, the oldest {oldest} of {accepted[oldest].at[:10]}"


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


def _major(version: str | None) -> str | None:
    first = (version or "").partition(".")[0]
    return first if first.isdigit() else None
