"""The ab command: a commit against the working tree, measured in turns on this machine."""

from __future__ import annotations

import os
import secrets
from dataclasses import fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import check_writable
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.experiments.ab_report import (
    WORKING_TREE,
    StrayCode,
    ab_listing,
    movement_line,
    stray_text,
)
from pytest_ttnn_perf.experiments.ab_rounds import (
    AbResult,
    Move,
    Side,
    StrayedError,
    compare_tests,
    movement,
    run_rounds,
    whole_rounds,
)
from pytest_ttnn_perf.experiments.calibrate import progress_line
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.observe.strays import import_root, own_place
from pytest_ttnn_perf.processes.channel import signals_interrupt
from pytest_ttnn_perf.processes.git import Repository, remove_leftovers, temporary_checkout
from pytest_ttnn_perf.records.messages import ComparedVersions
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.preflight import choose_profiler, lease, restrict_to_passes
from pytest_ttnn_perf.run.sessions import Sessions
from pytest_ttnn_perf.run.settings import load_settings
from pytest_ttnn_perf.run.workers import WorkerFactory, WorkerLauncher, finds_modules_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.experiments.calibrate import Progress
    from pytest_ttnn_perf.records.messages import Collected
    from pytest_ttnn_perf.records.settings import ProfilerKind, Settings


_ENDED: Final = True
#: Settings that say where things are, not how they are measured.
_PLACES: Final = frozenset({"baselines", "artifacts", "json", "replay", "lock_folder", "label"})


@dataclass(frozen=True, slots=True)
class Ab:
    """What is asked for: a commit, pytest's arguments, the rounds, and what both sides share."""

    ref: str
    argv: Sequence[str]
    rounds: int
    cwd: Path
    shared: tuple[str, ...] = ()


def ab(
    asked: Ab, settings: Settings, *, progress: Callable[[str, bool], None], shape: str
) -> Result:
    """Measure both sides in turns and say what that tells.

    ``progress`` is told in a line how far it is, and whether a side has just been measured.

    Raises:
        UsageError: there is no such commit, or no test can be measured on both sides.
        InputError: the commit cannot be checked out.
    """
    repository = Repository.around(asked.cwd)
    commit = repository.commit(asked.ref)
    tree = repository.working_tree()
    asked = replace(asked, shared=tuple(_within(repository.root, asked)))
    check_writable(settings.artifacts)
    profiler = restrict_to_passes(
        choose_profiler(settings, os.environ), settings, isolated=True
    ).kind
    result = AbResult(asked.ref, commit, tree, asked.rounds, 0, stopped="interrupted")

    def print_line(text: str) -> None:
        progress(text, _ENDED)

    try:
        with signals_interrupt(), lease(settings, os.environ, print_line):
            left = remove_leftovers(repository.root)
            if left:
                print_line(f"removed what {counted(left, 'earlier run')} left behind")
            with temporary_checkout(repository.root, commit.id) as other:
                move = Move(repository.root, other, asked.cwd.resolve())
                both = _Both(asked, settings, move, profiler, print_line)
                result = both.measure(result, progress)
        same = repository.differs_from(commit, asked.shared)
    except KeyboardInterrupt:
        same = ()
    remarks = (*result.remarks, *_shared_remarks(asked, same))
    result = replace(result, remarks=remarks)
    return Result(ab_listing(result).text(shape), failed=result.failed)


def _within(root: Path, asked: Ab) -> Iterator[str]:
    """Yield the folders that both sides share as they are seen from the root."""
    for folder in asked.shared:
        place = (asked.cwd / folder).resolve()
        if not place.is_relative_to(root) or not place.exists():
            message = f"--same {folder}: expected a file or folder of {root}"
            raise UsageError(message)
        yield str(place.relative_to(root))


def _shared_remarks(asked: Ab, differing: Sequence[str]) -> Iterator[str]:
    for folder in asked.shared:
        differs = ", where it differs" if folder in differing else ""
        yield f"{folder} was that of the working tree on both sides{differs}"


@dataclass(slots=True)
class _Both:
    """Both sides, from their first process to what they tell."""

    asked: Ab
    settings: Settings
    move: Move
    profiler: ProfilerKind
    print_line: Callable[[str], None]
    #: pytest's root folder in the working tree, once it is known.
    root: Path | None = None

    def measure(self, result: AbResult, progress: Callable[[str, bool], None]) -> AbResult:
        """Run the rounds, and return the result with what they tell."""
        if not self.move.there.is_dir():
            message = f"{self.asked.ref} has no folder {self.asked.cwd.name}: nothing to compare"
            raise UsageError(message)
        moved = self.move.argv(self.asked.argv)
        after = Side(WORKING_TREE, self._tree_workers(), Sessions(self.asked.rounds))
        before = Side(self.asked.ref, self._ref_workers(moved.argv), Sessions(self.asked.rounds))

        def tell(now: Progress) -> None:
            progress(progress_line(now), now.done == now.tests)

        def begin(collected: Collected) -> None:
            self._learn(collected, before)
            if moved.narrowed:
                before.tests = tuple(collected.tests)

        try:
            stopped = run_rounds(
                before, after, rounds=self.asked.rounds, progress=tell, begin=begin
            )
        except StrayedError as error:
            command = ("ttnn-perf", "ab", self.asked.ref, *self.asked.argv)
            stray, side = self._stray(error), error.side.name
            raise UsageError(stray_text(stray, side=side, command=command)) from error
        return self._result(replace(result, stopped=stopped), before.found, after.found)

    def _stray(self, error: StrayedError) -> StrayCode:
        first, versions = error.strays[0], error.side.factory.plain.versions
        assert versions is not None, "one of two sides"
        cwd, file = self.move.cwd, Path(first.file)
        inside = file.is_relative_to(self.move.root)
        if inside:
            shown, place = os.path.relpath(file, cwd), import_root(first)
        else:
            shown, place = first.file, own_place(first, replace(versions, own=self.move.root), cwd)
        folder = os.path.relpath(place, cwd)
        return StrayCode(first.name, shown, folder, len(error.strays), installed=not inside)

    def _result(self, result: AbResult, before: Sessions, after: Sessions) -> AbResult:
        if not (after.measured or before.measured or result.stopped):
            wrong = "no test was measured: mark tests with @pytest.mark.ttnn_perf, or name others"
            raise UsageError(wrong)
        troubles: dict[str, str] = {}
        for name, found in ((WORKING_TREE, after), (self.asked.ref, before)):
            for test, why in found.troubles.items():
                others = f"{troubles[test]}; " if test in troubles else ""
                troubles[test] = f"{others}{name}, {why}"
        left, right = before.good(), after.good()
        both = [test for test in right if test in left]
        # One that ran on one side only when all was stopped is no test of that side alone.
        finished = min(before.completed, after.completed) > 0
        return replace(
            result,
            whole=min((whole_rounds(left[test], right[test]) for test in both), default=0),
            compared=tuple(compare_tests(left, right)),
            only_before=tuple(t for t in left if t not in after.measured) if finished else (),
            only_after=tuple(t for t in right if t not in before.measured) if finished else (),
            troubles=troubles,
            remarks=tuple(self._remarks(before, both)),
        )

    def _remarks(self, before: Sessions, both: Sequence[str]) -> Iterator[str]:
        differing = self._differing_settings()
        if differing:
            names = ", ".join(differing)
            yield f"settings of the working tree were used on both sides; they differ in {names}"
        moved = movement({test: before.good()[test] for test in both})
        if moved is not None and moved[0] > DEFAULT_POLICY.floor:
            yield movement_line(self.asked.ref, *moved)

    def _differing_settings(self) -> list[str]:
        """Name the settings that the commit has otherwise."""
        if self.root is None or not self.root.is_relative_to(self.move.root):
            return []
        try:
            ours = load_settings(self.root)
            theirs = load_settings(Path(self.move.path(str(self.root))))
        except InputError:  # what is wrong with theirs does not matter here
            return []
        names = (field.name for field in fields(ours) if field.name not in _PLACES)
        return [name for name in names if getattr(ours, name) != getattr(theirs, name)]

    def _learn(self, collected: Collected, before: Side) -> None:
        """Let the other side have the settings, and the root folder, of the working tree."""
        if collected.root is None:
            return
        self.root = Path(collected.root)
        workers = before.factory.plain
        assert workers.versions is not None, "one of two sides"
        workers.versions = replace(workers.versions, settings=self.root)

    def _tree_workers(self) -> WorkerFactory:
        versions = ComparedVersions(self.move.root, self.move.tree)
        argv, cwd = tuple(self.asked.argv), self.move.cwd
        workers = self._workers("working-tree", cwd, versions, lambda: argv)
        return WorkerFactory(self.settings, self.profiler, workers, self.print_line)

    def _ref_workers(self, argv: Sequence[str]) -> WorkerFactory:
        versions = ComparedVersions(self.move.tree, self.move.root, self.asked.shared)

        def arguments() -> tuple[str, ...]:
            given = any(word.startswith("--rootdir") for word in argv)
            root = (
                []
                if given or self.root is None
                else [f"--rootdir={self.move.path(str(self.root))}"]
            )
            return (*root, *argv)

        workers = self._workers("ref", self.move.there, versions, arguments)
        workers.environment = self.move.environment(workers.environment)
        return WorkerFactory(self.settings, self.profiler, workers, self.print_line)

    def _workers(
        self, name: str, cwd: Path, versions: ComparedVersions, argv: Callable[[], Sequence[str]]
    ) -> WorkerLauncher:
        run = f"ab-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}-{name}"
        return WorkerLauncher(
            arguments=lambda folder: [
                "-m", "pytest", "--ttnn-perf", "-o", f"cache_dir={folder / 'cache'}", *argv(),
            ],
            cwd=cwd,
            folder=self.settings.artifacts.absolute() / "passes" / run,
            versions=versions,
            cwd_on_path=finds_modules_in(self.asked.cwd),
        )  # fmt: skip
