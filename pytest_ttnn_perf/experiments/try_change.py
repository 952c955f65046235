"""The try command: the working tree against the last kept state, and what to do with the change."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.device.host import host_hardware
from pytest_ttnn_perf.experiments.ab import Ab, compare_with
from pytest_ttnn_perf.experiments.ab_report import AbResult
from pytest_ttnn_perf.experiments.kept_state import base_of, read_steps, text_of_step, write_step
from pytest_ttnn_perf.experiments.receipts import (
    Places,
    differing_conditions,
    edited_files,
    hash_of,
)
from pytest_ttnn_perf.experiments.try_verdict import (
    Sides,
    candidates_of,
    decide,
    effects_of,
    finding_changes,
    predictions_of,
    situations_of,
    slower_bases,
)
from pytest_ttnn_perf.processes.git import Repository, posix
from pytest_ttnn_perf.processes.snapshots import States
from pytest_ttnn_perf.records.hardware import Configuration
from pytest_ttnn_perf.records.metric import median
from pytest_ttnn_perf.records.step import Edit, Receipt, Step
from pytest_ttnn_perf.run.sessions import Sessions
from pytest_ttnn_perf.run.settings import CONFIGURATION_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.experiments.kept_state import Base
    from pytest_ttnn_perf.experiments.rounds import InTurns, Turns
    from pytest_ttnn_perf.processes.snapshots import State
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.records.step import Refusal


#: Settings of a device or a compiler that a change may be about. Another one is another workload.
TUNED: Final = frozenset({
    "num_command_queues", "trace_region_size", "l1_small_size", "worker_l1_size", "use_trace",
    "all_transfers_on_separate_command_queue", "optimization_level", "enable_trace",
    "enable_bfp8_conversion",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Try:
    """What is asked for: a message, pytest's arguments, the most rounds, what both sides share.

    ``base`` is a commit to compare with; None for the last kept state.
    """

    message: str
    argv: Sequence[str]
    rounds: int
    cwd: Path
    shared: tuple[str, ...] = ()
    base: str | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """A step that is over: its record and the file of it, and what it was compared with.

    ``new_files`` are those that neither the base nor HEAD has, ``changed_files`` all others that
    are not as in the base, as seen from the repository's ``root``.
    ``remarks`` say what else is to be known. ``is_committed``: all of the step is.
    """

    step: Step
    file: Path
    base: Base
    root: Path
    new_files: tuple[str, ...]
    changed_files: tuple[str, ...]
    remarks: tuple[str, ...]
    is_committed: bool = False


def try_change(asked: Try, settings: Settings, *, progress: Callable[[str, bool], None]) -> Tried:
    """Measure the working tree against the last kept state, and record the step.

    Raises:
        UsageError: nothing has changed since, or no test can be measured on both sides.
        InputError: a state cannot be taken or checked out, or a step record cannot be read.
        WriteError: the record cannot be written.
    """
    repository = Repository.around(asked.cwd)
    states, steps = States(repository.root), read_steps(settings.artifacts)
    now, head = states.now(), repository.commit("HEAD").id
    base = base_of(repository, states, now, steps, asked.base)
    watch = _Watch(repository.root, states, base.state, now, settings)
    changed = states.changed_files(base.state, now)
    is_committed = states.of(head).tree == now.tree
    if is_committed and all(watch.is_baseline(each.path) for each in changed):
        message = (
            f"nothing to try: but for baselines, which are committed, the working tree is the same "
            f"as {base.words}"
        )
        raise UsageError(message)
    refusals = watch.edited(_named_tests(asked, repository.root))
    if refusals:
        commit = repository.commit(base.state.commit)
        result = AbResult(base.name, commit, repository.working_tree(), asked.rounds, 0)
    else:
        result = _measure(asked, base, repository, settings, watch, progress)
        refusals = watch.refusals
    sides = Sides(result, watch.before, watch.after)
    step = _step(asked, base, now, sides, refusals, edited=watch.was_edited_meanwhile())
    candidates = () if refusals else candidates_of(sides)
    step = replace(step, head=head, receipt=watch.receipt(), candidates=candidates)
    file = write_step(settings.artifacts, step)
    states.keep(step.id, now)
    states.seal(step.id, text_of_step(step))
    # What is tracked, `git restore` removes and `git commit -a` knows.
    committed = states.of(head)
    new = tuple(
        each.path
        for each in changed
        if each.before is None and states.id_of(committed, each.path) is None
    )
    remarks = (
        *((base.note,) if base.note is not None else ()),
        *_remarks(sides, watch),
        *slower_bases(step, _known_times(base, steps, sides, settings)),
    )
    others = tuple(each.path for each in changed if each.path not in new)
    return Tried(step, file, base, repository.root, new, others, remarks, is_committed)


def _measure(
    asked: Try,
    base: Base,
    repository: Repository,
    settings: Settings,
    watch: _Watch,
    progress: Callable[[str, bool], None],
) -> AbResult:
    given = ("--base", asked.base) if asked.base is not None else ()
    command = ("try", "-m", asked.message, *given)
    compared = Ab(base.name, asked.argv, asked.rounds, asked.cwd, asked.shared, command)
    commit = repository.commit(base.state.commit)
    return compare_with(commit, compared, settings, progress=progress, watch=watch.over)


def _known_times(
    base: Base, steps: Sequence[Step], sides: Sides, settings: Settings
) -> dict[tuple[str, str], float]:
    """Return what was known of the times of the base before this step, by test and metric.

    That is what a kept step measured, or what the baselines say.
    """
    kept = next((s for s in reversed(steps) if s.is_kept and s.state == base.state.commit), None)
    if kept is not None:
        return {(e.test, e.metric): e.after for e in kept.effects if e.after is not None}
    store, known = BaselineStore(settings.baselines), {}
    for test, _, now in sides.both():
        stored = None
        with suppress(InputError):  # what cannot be read is for a gated run to say
            stored = store.find(now.hardware or host_hardware(), test)
        for name, metric in (stored.metrics if stored is not None else {}).items():
            known[test, name] = median([session.median for session in metric.current])
    return known


def _named_tests(asked: Try, root: Path) -> tuple[str, ...]:
    """Return the files and folders of tests that are asked for; else where the user stands."""
    places = [
        asked.cwd / word.partition("::")[0] for word in asked.argv if not word.startswith("-")
    ]
    named = [place for place in places if place.exists()] or [asked.cwd]
    return tuple(posix(Path(os.path.realpath(place)), root) for place in named)


class _Watch:
    """Stands between rounds and those who judge them: sides that differ are not measured on."""

    def __init__(
        self, root: Path, states: States, before: State, now: State, settings: Settings
    ) -> None:
        self._root, self._states = root, states
        self._before, self._now = before, now
        self._settings = settings
        self._turns: InTurns | None = None
        self.refusals: list[Refusal] = []
        #: What was tuned, by test: a change may be about that.
        self.tuned: dict[str, str] = {}

    def over(self, turns: Turns) -> InTurns:
        """Return what is run in place of ``turns``."""
        self._turns = turns
        return self

    @property
    def before(self) -> Sessions:
        """What the kept state has measured so far."""
        return self._turns.before if self._turns else Sessions(0)

    @property
    def after(self) -> Sessions:
        """What the working tree has."""
        return self._turns.after if self._turns else Sessions(0)

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        """Run a round, and look whether both sides were measured alike."""
        assert self._turns is not None, "over() comes first"
        stopped = self._turns.run(number, tests)
        if stopped is not None:
            return stopped
        self._let_tune()
        if number == 1:
            self.refusals += [*self.edited(self._measured_files()), *self._unlike()]
        return "both sides were not measured alike" if self.refusals else None

    def _unlike(self) -> Iterator[Refusal]:
        """Yield in what tests were not measured alike on both sides."""
        before, after = self.before.measured, self.after.measured
        for test in (test for test in after if test in before):
            failed = test in self.before.troubles or test in self.after.troubles
            for each in differing_conditions(test, before[test][0], after[test][0]):
                # One that ended early lacks metrics: that follows from its failure.
                if not (failed and each.edit == Edit.METRICS.value):
                    yield each

    def edited(self, tests: Sequence[str]) -> list[Refusal]:
        """Return the files of the step that decide what is measured, and how it is judged."""
        places = Places(
            tuple(tests),
            self._inside(self._settings.baselines),
            self._inside(self._settings.targets),
        )
        return edited_files(self._states, self._before, self._now, places)

    def is_baseline(self, path: str) -> bool:
        """Tell whether a file of the repository is one of the baselines."""
        baselines = self._inside(self._settings.baselines)
        return baselines is not None and PurePosixPath(path).is_relative_to(baselines)

    def _inside(self, path: Path | None) -> str | None:
        real = Path(os.path.realpath(path)) if path is not None else None
        return posix(real, self._root) if real and real.is_relative_to(self._root) else None

    def _measured_files(self) -> tuple[str, ...]:
        """Return the files of the tests that were measured, from the root of the repository."""
        collected = self.after.collected
        root = Path(collected.root) if collected and collected.root else self._root
        files = dict.fromkeys(test.partition("::")[0] for test in self.after.measured)
        places = (Path(os.path.realpath(root / file)) for file in files)
        return tuple(posix(p, self._root) for p in places if p.is_relative_to(self._root))

    def _let_tune(self) -> None:
        """Note what a change tuned, and leave it out of the configurations."""
        for test in self.after.measured:
            self._note_tuned(test)
        for side in (self.before, self.after):
            for seen in side.measured.values():
                seen[:] = [_without_tuned(observation) for observation in seen]

    def _note_tuned(self, test: str) -> None:
        sides = [side.measured.get(test) for side in (self.before, self.after)]
        if not all(sides) or test in self.tuned:
            return
        then, now = (_tuned(seen[0]) for seen in sides if seen)
        changed = [
            f"{name} {then.get(name)}, now {now.get(name)}"
            for name in sorted({*then, *now})
            if then.get(name) != now.get(name)
        ]
        if changed:
            self.tuned[test] = "; ".join(changed)

    def was_edited_meanwhile(self) -> bool:
        """Return whether a file of the working tree is not as it was when the step began.

        What tests have written beside them is no part of it.
        """
        return self._turns is not None and self._states.now(self._now).tree != self._now.tree

    def receipt(self) -> Receipt:
        """Return what both sides had in common, by its hashes."""
        files: dict[str, str] = {}
        for path in self._deciding_files():
            found = self._states.id_of(self._now, path)
            if found is not None:
                files[path] = found
        return Receipt(hash_of(self._before.tree, self._now.tree), files)

    def _deciding_files(self) -> Iterator[str]:
        for test in self._measured_files():
            yield test
            for folder in Path(test).parents:
                yield (folder / "conftest.py").as_posix()
                yield from ((folder / name).as_posix() for name in sorted(CONFIGURATION_FILES))
        for place in (self._settings.baselines, self._settings.targets):
            path = self._inside(place)
            if path is not None:
                yield path


def _tuned(observation: Observation) -> Mapping[str, Scalar]:
    values = observation.setting.values
    return {name: values[name] for name in values if name in TUNED}


def _without_tuned(observation: Observation) -> Observation:
    def rest(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
        return {name: value for name, value in values.items() if name not in TUNED}

    if not _tuned(observation):
        return observation
    configuration = Configuration(rest(observation.configuration.values))
    return replace(observation, configuration=configuration, facts=rest(observation.facts))


def _step(
    asked: Try,
    base: Base,
    now: State,
    sides: Sides,
    refusals: Sequence[Refusal],
    *,
    edited: bool,
) -> Step:
    decision, reasons = decide(sides, refusals, edited=edited)
    moment = datetime.now(timezone.utc)
    # What was measured before it was known that it means nothing is not told.
    told = Sides(replace(sides.result, compared=()), Sessions(0), Sessions(0))
    told = told if refusals else sides
    effects = effects_of(told.result)
    opened, closed = finding_changes(told)
    return Step(
        # Sorts by time, also within a second: a step that is refused at once takes less.
        id=f"{moment:%Y%m%dT%H%M%SZ}-{moment.microsecond // 1000:03x}{secrets.randbelow(4096):03x}",
        at=f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        message=asked.message,
        decision=decision,
        reasons=tuple(reasons),
        base=base.state.commit,
        base_tree=base.state.tree,
        state=now.commit,
        state_tree=now.tree,
        head="",
        rounds=sides.result.whole,
        effects=effects,
        refusals=tuple(dict.fromkeys(refusals)),
        opened=opened,
        closed=closed,
        # What was measured of a tree that changed meanwhile is nobody's doing.
        predictions=() if edited else predictions_of(closed, effects),
        situations=situations_of(told),
    )


def _remarks(sides: Sides, watch: _Watch) -> Iterator[str]:
    yield from sides.result.remarks
    yield from (f"tuned in {test}: {what}" for test, what in watch.tuned.items())
    for test in sides.result.only_after:
        yield f"{test} is new: it is no part of the answer"
