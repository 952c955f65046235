"""Baseline health: tests that did not run, baselines that are stale, and orphans.

Which tests there are is known from a full run, or from a pytest that only collects.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Orphan, Orphaned, Renaming, Traits, split_test_id
from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError, InputError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import read_json
from pytest_ttnn_perf.core.observation import Coverage, function_of
from pytest_ttnn_perf.core.verdict import BaselineHealth, Reason, Stale
from pytest_ttnn_perf.gate.judge import representative
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.machine.processes import interpreter

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from pytest_ttnn_perf.core.baseline import Accepted
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, Observation, Run
    from pytest_ttnn_perf.core.ops import OpGroups
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore, StoredFile


#: Tests less alike than this are two. A tenth slower, with one op of ten exchanged, still is it.
LIKELY: Final = 0.8
#: Candidates that differ by less are equally near: noise between two runs moves them by as much.
_MARGIN: Final = 0.05
#: Beyond so many pairs, about a second's worth, nothing is guessed.
_MOST_PAIRS: Final = 40_000


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


def recognise_orphans(
    orphans: Sequence[Orphan], run: Run, store: BaselineStore
) -> Iterator[Orphan]:
    """Yield the orphans, each with the new test that it looks like, if there is one."""
    yield from (orphan for orphan in orphans if orphan.looks_like is not None)
    unknown = [orphan for orphan in orphans if orphan.looks_like is None]
    for hardware in dict.fromkeys(orphan.hardware for orphan in unknown):
        own = [orphan for orphan in unknown if orphan.hardware == hardware]
        new = _new_tests(run, hardware)
        gone = {orphan.test: _stored_traits(store, orphan) for orphan in own}
        hints = {test: _hints(test) for test in (*gone, *new)}
        traits = {test: _observed_traits(judged.observation) for test, judged in new.items()}
        pairs = pair_up(gone, traits, hints=hints)
        known = {*pairs, *pairs.values()}
        pairs |= pair_by_name(gone.keys() - known, traits.keys() - known)
        for orphan in own:
            name = pairs.get(orphan.test)
            taken = name is not None and store.find(hardware, name) is not None
            yield replace(orphan, looks_like=name, taken=taken)


def pair_by_name(gone: Collection[str], new: Collection[str]) -> dict[str, str]:
    """Return for tests that are gone the new ones of their file that they may be called now.

    The only one that is new where only one is gone; else the one whose name is nearest, if each is
    nearest to the other. How fast they are does not count: a change may be both.
    """
    pairs: dict[str, str] = {}
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
    """Return the one name that is nearest: of the same parameters first; None if two are."""
    from difflib import SequenceMatcher

    parameters = _hints(test)[1]
    scores = {
        other: (_hints(other)[1] == parameters, SequenceMatcher(None, test, other).ratio())
        for other in others
    }
    best = max(scores.values())
    near = [other for other, score in scores.items() if score == best]
    return near[0] if len(near) == 1 else None


def old_names(
    file: str,
    hardware: Hardware,
    store: BaselineStore,
    coverage: Coverage,
    *,
    new: Collection[str],
) -> dict[str, tuple[str, str]]:
    """Return what the new tests of a file may have been called, in the words of a rename.

    ``new`` are the tests that are measured. Known while a run goes on, if all of the file was
    collected; those that were recorded before are not new.
    """
    stored = {f"{file}::{name}" for name in store.names_in(hardware, file)}
    gone = [test for test in stored - {*coverage.others, *new} if coverage.covers(test)]
    candidates = [test for test in new if _file(test) == file and test not in stored]
    pairs = pair_by_name(gone, candidates)
    orphans = [Orphan(hardware, test, looks_like=pairs.get(test)) for test in gone]
    return {
        str(orphan.looks_like): (renaming.before, renaming.after)
        for renaming in renamings(orphans, coverage.functions(new))
        for orphan in renaming.orphans
    }


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
    measured = {*run.tests, *(judged.observation.node_id for judged in run.tests.values())}
    for test, _ in stored_tests(store.all_files(hardware_of(run))):
        if test not in measured and run.coverage.asks_for(test):
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
    from pytest_ttnn_perf.machine.processes import run_batch

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
            message = f"pytest --collect-only printed what cannot be read: {error}"
            raise UsageError(message) from error
    if not any("::" in test for test in found.others):
        message = f"pytest --collect-only finds no test here: all baselines would go; {_HINT}"
        raise UsageError(message)
    if not found.places:
        message = f"the configuration of pytest selects tests or leaves files out; {_HINT}"
        raise UsageError(message)
    return found


def pair_up(
    gone: Mapping[str, Traits],
    new: Mapping[str, Traits],
    *,
    hints: Mapping[str, Sequence[Hashable]],
) -> dict[str, str]:
    """Return for tests that are gone the new ones that they look like.

    Only where each is nearest to the other and no second one is equally near. Of several that are,
    the one that has a hint in common counts, the first hints first: a file that moves keeps the
    names of its tests, and a function that is renamed its parameters.
    """
    if len(gone) * len(new) > _MOST_PAIRS:
        return {}
    faces = {name: Face.of(traits) for name, traits in new.items()}
    forward: defaultdict[str, dict[str, float]] = defaultdict(dict)
    backward: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for old, traits in gone.items():
        face = Face.of(traits)
        for name, other in faces.items():
            score = face.like(other, at_least=LIKELY)
            if score >= LIKELY:
                forward[old][name] = backward[name][old] = score
    nearest = {old: _nearest(scores, hints, hints[old]) for old, scores in forward.items()}
    return {
        old: name
        for old, name in nearest.items()
        if name is not None and _nearest(backward[name], hints, hints[name]) == old
    }


def _nearest(
    scores: Mapping[str, float], hints: Mapping[str, Sequence[Hashable]], own: Sequence[Hashable]
) -> str | None:
    """Return the one candidate that is nearer than all others; None if several are as near."""
    best = max(scores.values())
    near = [name for name, score in scores.items() if best - score < _MARGIN]
    if len(near) == 1:
        return near[0]
    for place, hint in enumerate(own):
        same = [name for name in near if hints[name][place] == hint]
        if len(same) == 1:
            return same[0]
    return None


class Face(Struct, frozen=True):
    """What is compared of a test, counted once.

    Ops count where both sides have them, and then both ops and numbers must be alike: two models
    may be equally fast, and one model may be run on inputs of two sizes.
    """

    values: Mapping[Metric, float]
    ops: Counter[Hashable] | None

    @classmethod
    def of(cls, traits: Traits) -> Face:
        """Count the ops of a test."""
        return cls(traits.values, None if traits.ops is None else _counts(traits.ops))

    def like(self, other: Face, *, at_least: float = 0.0) -> float:
        """Return how alike two tests are, from 0 to 1; the same in both directions.

        Exact where the numbers alone are ``at_least`` so.
        """
        numbers = _numbers(self.values, other.values)
        if self.ops is None or other.ops is None or numbers < at_least:
            return numbers
        either = sum((self.ops | other.ops).values())
        return min(numbers, sum((self.ops & other.ops).values()) / either if either else 1.0)


def _counts(ops: OpGroups) -> Counter[Hashable]:
    counts: Counter[Hashable] = Counter()
    for group in ops.groups:
        counts[group.signature] += group.count
    return counts


def _numbers(ours: Mapping[Metric, float], theirs: Mapping[Metric, float]) -> float:
    """Return how near values are, on average over all metrics; one that a side lacks is not."""
    shared = ours.keys() & theirs.keys()
    if not shared:
        return 0.0
    near = sum(_near(ours[each], theirs[each]) for each in shared)
    return near / (len(ours) + len(theirs) - len(shared))


def _near(one: float, other: float) -> float:
    """Return the smaller as a part of the larger; nothing if they are on two sides of zero."""
    if one == other:
        return 1.0
    small, large = sorted((abs(one), abs(other)))
    return small / large if (one > 0) == (other > 0) else 0.0
