"""The ab command: a commit against the working tree, measured in turns on this machine."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import check_writable
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.experiments.ab_report import (
    WORKING_TREE,
    AbResult,
    StrayCode,
    ab_listing,
    look_line,
    movement_line,
    round_line,
    stray_text,
)
from pytest_ttnn_perf.experiments.compare_rounds import compare_tests, movement, undecided_tests
from pytest_ttnn_perf.experiments.rounds import StrayedError, Turns, run_rounds
from pytest_ttnn_perf.experiments.versions import Measuring, Move, Version
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.observe.strays import import_root, own_place
from pytest_ttnn_perf.processes.channel import signals_interrupt
from pytest_ttnn_perf.processes.checkouts import remove_leftovers, temporary_checkout
from pytest_ttnn_perf.processes.git import Repository
from pytest_ttnn_perf.records.messages import ComparedVersions
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.preflight import choose_profiler, lease, restrict_to_passes
from pytest_ttnn_perf.run.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.experiments.compare_rounds import Compared
    from pytest_ttnn_perf.experiments.rounds import InTurns, RoundProgress
    from pytest_ttnn_perf.processes.git import Commit
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.run.sessions import Sessions


_ENDED: Final = True
#: Settings that say where things are, not how they are measured.
_PLACES: Final = frozenset({"baselines", "artifacts", "json", "replay", "lock_folder", "label"})


@dataclass(frozen=True, slots=True)
class Ab:
    """What is asked for: a commit, pytest's arguments, the most rounds, what both sides share.

    ``command`` are the words before these arguments, as the user would type them again.
    """

    ref: str
    argv: Sequence[str]
    rounds: int
    cwd: Path
    shared: tuple[str, ...] = ()
    command: tuple[str, ...] = ("ab",)


def ab(
    asked: Ab, settings: Settings, *, progress: Callable[[str, bool], None], shape: str
) -> Result:
    """Measure both sides in turns and say what that tells.

    ``progress`` is told in a line how far it is, and whether a side has just been measured.

    Raises:
        UsageError: there is no such commit, or no test can be measured on both sides.
        InputError: the commit cannot be checked out.
    """
    commit = Repository.around(asked.cwd).commit(asked.ref)
    result = compare_with(commit, asked, settings, progress=progress)
    text = ab_listing(result).text(shape)
    return Result(text, failed=result.failed, inconclusive=result.inconclusive)


def compare_with(
    commit: Commit,
    asked: Ab,
    settings: Settings,
    *,
    progress: Callable[[str, bool], None],
    watch: Callable[[Turns], InTurns] | None = None,
) -> AbResult:
    """Measure the working tree and a commit in turns, and return what that tells.

    ``watch`` may stand between the rounds and those who judge them; then it is recorded how times
    are taken.

    Raises:
        UsageError: no test can be measured on both sides.
        InputError: the commit cannot be checked out.
    """
    repository = Repository.around(asked.cwd)
    tree = repository.working_tree()
    shared = shared_within(repository.root, asked.cwd, asked.shared)
    asked = replace(asked, shared=shared)
    check_writable(settings.artifacts)
    profiler = restrict_to_passes(
        choose_profiler(settings, os.environ), settings, isolated=True
    ).kind
    result = AbResult(asked.ref, commit, tree, asked.rounds, 0, stopped="interrupted")

    def print_line(text: str) -> None:
        progress(text, _ENDED)

    def tell(now: RoundProgress) -> None:
        progress(round_line(now), now.is_over)

    name, receipts = asked.command[0], watch is not None
    measuring = Measuring(
        name, asked.argv, settings, profiler, print_line, asked.shared, receipts=receipts
    )
    try:
        with signals_interrupt(), lease(settings, os.environ, print_line):
            left = remove_leftovers(repository.root)
            if left:
                print_line(f"removed what {counted(left, 'earlier run')} left behind")
            with temporary_checkout(repository.root, commit.id) as other:
                here, cwd = repository.root, asked.cwd.resolve()
                there = Move(here, other, cwd)
                after = Version(
                    WORKING_TREE, "working-tree", Move(here, here, cwd), other, measuring
                )
                before = Version(asked.ref, "ref", there, here, measuring)
                turns = Turns(before, after, rounds=asked.rounds, progress=tell)
                watched = watch(turns) if watch is not None else turns
                result = _Both(asked, measuring, there, watched).measure(result)
        same = repository.differs_from(commit, asked.shared)
    except KeyboardInterrupt:
        same = ()
    return replace(result, remarks=(*result.remarks, *_shared_remarks(asked, same)))


def shared_within(root: Path, cwd: Path, folders: Iterable[str]) -> tuple[str, ...]:
    """Return folders that versions share as they are seen from the root.

    Raises:
        UsageError: one of them is not there.
    """
    places = [((cwd / folder).resolve(), folder) for folder in folders]
    for place, folder in places:
        if not place.is_relative_to(root) or not place.exists():
            message = f"--same {folder}: expected a file or folder of {root}"
            raise UsageError(message)
    return tuple(str(place.relative_to(root)) for place, _ in places)


def _shared_remarks(asked: Ab, differing: Sequence[str]) -> Iterator[str]:
    for folder in asked.shared:
        differs = ", where it differs" if folder in differing else ""
        yield f"{folder} was that of the working tree on both sides{differs}"


class _Both:
    """Both sides, from their first process to what they tell."""

    def __init__(self, asked: Ab, measuring: Measuring, move: Move, turns: InTurns) -> None:
        self.asked, self.measuring, self.move, self.turns = asked, measuring, move, turns

    def measure(self, result: AbResult) -> AbResult:
        """Run the rounds, and return the result with what they tell.

        Raises:
            UsageError: a side ran code that is not its own, or nothing was measured.
        """
        try:
            stopped = run_rounds(self.turns, rounds=self.asked.rounds, look=self._look)
        except StrayedError as error:
            command = ("ttnn-perf", *self.asked.command, *self.asked.argv)
            raise UsageError(strayed_text(error, command)) from error
        return self._result(replace(result, stopped=stopped))

    def _compare(self) -> list[Compared]:
        before, after = self.turns.before.good(), self.turns.after.good()
        return compare_tests(before, after, rounds=self.asked.rounds)

    def _look(self, number: int) -> tuple[str, ...]:
        compared = self._compare()
        undecided = undecided_tests(compared)
        of = len({each.test for each in compared})
        self.measuring.print_line(look_line(number, len(undecided), of, most=self.asked.rounds))
        return undecided

    def _result(self, result: AbResult) -> AbResult:
        before, after = self.turns.before, self.turns.after
        if not (after.measured or before.measured or result.stopped):
            raise UsageError(_nothing_measured(after))
        left, right = before.good(), after.good()
        both = [test for test in right if test in left]
        # One that ran on one side only when all was stopped is no test of that side alone.
        finished = min(before.completed, after.completed) > 0
        return replace(
            result,
            whole=min(before.completed, after.completed),
            compared=tuple(self._compare()),
            only_before=tuple(t for t in left if t not in after.measured) if finished else (),
            only_after=tuple(t for t in right if t not in before.measured) if finished else (),
            troubles={
                **_no_longer_fitting(after, before),
                **troubles_of(((WORKING_TREE, after), (self.asked.ref, before))),
            },
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
        collected = self.turns.after.collected
        root = Path(collected.root) if collected is not None and collected.root else None
        if root is None or not root.is_relative_to(self.move.root):
            return []
        try:
            ours = load_settings(root)
            theirs = load_settings(Path(self.move.path(str(root))))
        except InputError:  # what is wrong with theirs does not matter here
            return []
        names = (field.name for field in fields(ours) if field.name not in _PLACES)
        return [name for name in names if getattr(ours, name) != getattr(theirs, name)]


def _nothing_measured(side: Sessions) -> str:
    """Say why there is nothing to compare: none was chosen, or those that ran measure nothing."""
    if side.collected is None:
        return "no test was measured: none was chosen: name others"
    ran = side.collected.tests[0]
    return (
        f"no test was measured: {ran} measures nothing: mark tests with @pytest.mark.ttnn_perf, or "
        "name others"
    )


def _no_longer_fitting(after: Sessions, before: Sessions) -> dict[str, str]:
    """Return the points of sweeps that the change leaves no room for."""
    return {
        test: f"{WORKING_TREE}, {why}; it used to fit"
        for test, why in after.no_room.items()
        if test in before.measured
    }


def troubles_of(sides: Iterable[tuple[str, Sessions]]) -> dict[str, str]:
    """Return why tests have no result, with the names of the sides."""
    troubles: dict[str, str] = {}
    for name, found in sides:
        for test, why in found.troubles.items():
            others = f"{troubles[test]}; " if test in troubles else ""
            troubles[test] = f"{others}{name}, {why}"
    return troubles


def strayed_text(error: StrayedError, command: Sequence[str]) -> str:
    """Say that a version ran code that is not its own; ``command`` is the user's."""
    first, move = error.strays[0], error.version.move
    file = Path(first.file)
    inside = file.is_relative_to(move.root)
    if inside:
        shown, place = os.path.relpath(file, move.cwd), import_root(first)
    else:
        own = ComparedVersions(move.root, error.version.other, error.version.shared)
        shown, place = first.file, own_place(first, own, move.cwd)
    folder = os.path.relpath(place, move.cwd)
    stray = StrayCode(first.name, shown, folder, len(error.strays), installed=not inside)
    return stray_text(stray, side=error.version.name, command=command)
