"""Health of baselines: required tests that did not run, stale baselines, orphans."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import split_test_id
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.observation import Coverage, Reason, function_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore, StoredFile


class Stale(Struct, frozen=True):
    """Outdated baselines, all for one reason."""

    why: str
    tests: tuple[str, ...]
    oldest: str
    oldest_at: str


class BaselineHealth(Struct, frozen=True):
    """The health of a project's baselines.

    ``lost`` are tests with a baseline that have no result in a full run, where one is required.
    """

    lost: tuple[str, ...] = ()
    stale: tuple[Stale, ...] = ()


#: Everything is as it should be.
HEALTHY: Final = BaselineHealth()


class Orphan(Struct, frozen=True):
    """A stored baseline that no test is compared with any more.

    ``looks_like`` is a new test that it resembles; ``taken`` says that that one has a baseline of
    its own by now. ``in_use``: it is filed under the node id of that test, and found even so.
    """

    hardware: Hardware
    test: str
    looks_like: str | None = None
    taken: bool = False
    in_use: bool = False


class Renaming(Struct, frozen=True):
    """A test, function or file that may be renamed."""

    before: str
    after: str
    orphans: tuple[Orphan, ...]


class Orphans(Struct, frozen=True):
    """The orphans of a run, and their renamings.

    ``record`` is where the record of the run is; ``options`` are words for every command.
    """

    orphans: tuple[Orphan, ...]
    renamings: tuple[Renaming, ...] = ()
    record: str | None = None
    options: tuple[str, ...] = ()


#: Beyond so many pairs, about a second's worth, nothing is guessed.
_MOST_PAIRS: Final = 40_000


def find_orphans(run: Run, store: BaselineStore) -> Orphans | None:
    """Return the orphans on the hardware of a full run.

    Nothing that goes wrong here may cost the run its summary.
    """
    if run.coverage is None or not run.complete or not store.root.is_dir():
        return None
    try:
        orphans = list(orphans_in(run, store.all_files(hardware_of(run)), used=hardware_of(run)))
    except TtnnPerfError:
        return None
    return describe_orphans(orphans, run, store) if orphans else None


def describe_orphans(orphans: Sequence[Orphan], run: Run, store: BaselineStore) -> Orphans:
    """Add the possible new names of orphans."""
    known = [orphan for orphan in orphans if orphan.looks_like is not None]
    unknown = [orphan for orphan in orphans if orphan.looks_like is None]
    for hardware in dict.fromkeys(orphan.hardware for orphan in unknown):
        own = [orphan for orphan in unknown if orphan.hardware == hardware]
        new = [
            test
            for test, judged in run.tests.items()
            if (judged.observation.hardware or run.hardware) == hardware
            and any(verdict.reason is Reason.NEW_TEST for verdict in judged.verdicts)
        ]
        pairs = pair_by_name([orphan.test for orphan in own], new)
        for orphan in own:
            name = pairs.get(orphan.test)
            taken = name is not None and store.find(hardware, name) is not None
            known.append(replace(orphan, looks_like=name, taken=taken))
    functions = run.coverage.functions(run.tests) if run.coverage else frozenset()
    return Orphans(tuple(known), tuple(renamings(known, functions)))


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
        if test in identities:
            # Stored before some parameters were left out: found, until one of them changes.
            identity = identities[test]
            taken = split_test_id(identity)[1] in file.content.tests
            yield Orphan(hardware, test, looks_like=identity, taken=taken, in_use=not taken)
            continue
        gone = test not in existing and run.coverage.covers(test)
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


def old_names(
    file: str,
    hardware: Hardware,
    store: BaselineStore,
    coverage: Coverage,
    *,
    new: Collection[str],
) -> dict[str, tuple[str, str]]:
    """Return the possible renamings to new tests of a file.

    ``new`` are the tests that are measured. Known while a run goes on, if all of the file was
    collected; those that were recorded before are not new.
    """
    stored = {f"{file}::{name}" for name in store.names_in(hardware, file)}
    gone = [test for test in stored - {*coverage.others, *new} if coverage.covers(test)]
    pairs = pair_by_name(gone, [t for t in new if _file(t) == file and t not in stored])
    orphans = [Orphan(hardware, test, looks_like=pairs.get(test)) for test in gone]
    return {
        str(orphan.looks_like): (renaming.before, renaming.after)
        for renaming in renamings(orphans, coverage.functions(new))
        for orphan in renaming.orphans
    }


def renamings(orphans: Sequence[Orphan], functions: frozenset[str]) -> Iterator[Renaming]:
    """Yield the renamings of orphans, as few as there are.

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
            goal = min(after)
            same = all(f"{goal}{o.test[len(before) :]}" == o.looks_like for o in inside)
            whole = before not in kept and not any(o.taken for o in inside)
            if whole and len(after) == 1 and same:
                yield Renaming(before, goal, inside)
                for orphan in inside:
                    left.pop(orphan, None)
    for orphan in left:
        yield Renaming(orphan.test, str(orphan.looks_like), (orphan,))


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


def _stale(run: Run, store: BaselineStore, days: int) -> Iterator[Stale]:
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
            yield Stale(why, tuple(tests), oldest, accepted[oldest].at[:10])


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
