"""The try command: the working tree against the last kept state."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping  # noqa: TC003  # read when a step is decoded
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.plan import is_of_host, is_step, order_of_step
from pytest_ttnn_perf.analysis.ops.roofline import roofline_of_groups
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.metric import (
    COUNTED_IN_GRAPHS,
    KERNEL_TIME,
    OF_DEVICE,
    Better,
    Kind,
    metric_in,
    split_metric,
)
from pytest_ttnn_perf.core.observation import JudgedTest, Outcome, Reason
from pytest_ttnn_perf.core.settings import CONFIGURATION_FILES, MIN_ROUNDS
from pytest_ttnn_perf.core.text import counted, microseconds, shortened
from pytest_ttnn_perf.experiments.ab import AbResult, ab_sentence, compare_with, interval_text
from pytest_ttnn_perf.experiments.journal import (
    STEP_FORMAT,
    Base,
    Decision,
    Edit,
    Effect,
    Prediction,
    Receipt,
    Refusal,
    Situation,
    Step,
    StepFinding,
    base_of,
    change_text,
    effect_interval,
    main_time,
    read_steps,
    write_step,
)
from pytest_ttnn_perf.experiments.rounds import Sessions, is_exact
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.judging import check_numbers
from pytest_ttnn_perf.gate.rules_on_numbers import NUMBER_RULES, VERDICT_RULES
from pytest_ttnn_perf.machine.repository import Repository
from pytest_ttnn_perf.report.findings import ModelKind
from pytest_ttnn_perf.report.sentences import command_line
from pytest_ttnn_perf.report.tables import (
    DROPPED,
    METRIC,
    Column,
    Columns,
    Fit,
    Line,
    format_change,
    format_value,
    id_column,
    json_text,
    shown_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.experiments.paired import Comparison
    from pytest_ttnn_perf.experiments.rounds import Experiment, InTurns
    from pytest_ttnn_perf.machine.repository import State
    from pytest_ttnn_perf.report.tables import Block


class TryResult(Struct, frozen=True):
    """A step and its record's file.

    ``new_files`` are those that neither the base nor HEAD has, ``changed_files`` all others that
    are not as in the base, as seen from the repository's ``root``.
    """

    step: Step
    file: Path
    base: Base
    root: Path
    new_files: tuple[str, ...]
    changed_files: tuple[str, ...]
    remarks: tuple[str, ...]
    is_committed: bool = False


def try_change(asked: Experiment, message: str, base_ref: str | None = None) -> TryResult:
    """Measure the working tree against the last kept state; record the step.

    ``base_ref`` is a commit to compare with instead.
    """
    repository = Repository.around(asked.cwd)
    settings = asked.settings
    steps = read_steps(settings.artifacts)
    now, head = repository.now(), repository.commit("HEAD").id
    base = base_of(repository, now, steps, base_ref)
    watch = _Watch(repository, base.state, now, settings)
    changed = repository.changed_files(base.state, now)
    committed = repository.of(head)
    is_committed = committed.tree == now.tree
    if is_committed and all(map(watch.is_baseline, changed)):
        wrong = (
            f"nothing to try: but for baselines, which are committed, the working tree is the same "
            f"as {base.words}"
        )
        raise UsageError(wrong)
    watch.refusals = watch.edited(_named_tests(asked, repository.root))
    commit = repository.commit(base.state.commit)
    if watch.refusals:
        result = AbResult(base.name, commit, repository.working_tree(), asked.rounds, 0)
    else:
        result = compare_with(commit, base.name, asked, watch.over)
    sides = Sides(result, watch.before, watch.after)
    edited = watch.was_edited_meanwhile()
    step = _step(message, base, now, sides, watch.refusals, edited=edited)
    step = replace(step, head=head, receipt=watch.receipt())
    file = write_step(settings.artifacts, step)
    repository.keep(step.id, now)
    # What is tracked, `git restore` removes and `git commit -a` knows.
    new = tuple(
        path
        for path, (before, _) in changed.items()
        if before is None and repository.id_of(committed, path) is None
    )
    remarks = (
        *((base.note,) if base.note is not None else ()),
        *result.remarks,
        *(f"tuned in {test}: {what}" for test, what in watch.tuned.items()),
        *(f"{test} is new: it is no part of the answer" for test in result.only_after),
    )
    others = tuple(path for path in changed if path not in new)
    return TryResult(step, file, base, repository.root, new, others, remarks, is_committed)


def _named_tests(asked: Experiment, root: Path) -> tuple[str, ...]:
    words = (word.partition("::")[0] for word in asked.argv if not word.startswith("-"))
    named = [place for word in words if (place := asked.cwd / word).exists()] or [asked.cwd]
    return tuple(os.path.relpath(os.path.realpath(place), root) for place in named)


def _step(
    message: str, base: Base, now: State, sides: Sides, refusals: Sequence[Refusal], *, edited: bool
) -> Step:
    decision, reasons = decide(sides, refusals, edited=edited)
    moment = datetime.now(timezone.utc)
    if refusals:  # what was measured before that was known means nothing
        sides = Sides(replace(sides.result, compared=()), Sessions(0), Sessions(0))
    effects = effects_of(sides.result)
    opened, closed = finding_changes(sides)
    return Step(
        # Sorts by time, also within a second: a step that is refused at once takes less.
        id=f"{moment:%Y%m%dT%H%M%SZ}-{moment.microsecond // 1000:03x}{secrets.randbelow(4096):03x}",
        at=f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        message=message,
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
        # What was measured of a tree that changed meanwhile is the effect of no known change.
        predictions=() if edited else predictions_of(closed, effects),
        candidates=candidates_of(sides),
        situations=situations_of(sides),
    )


# Equal conditions: files that decide a measurement are compared by their content before anything
# runs. Limits, numbers of calls and shapes of inputs are compared as workers saw them.

_SHARED_FILE: Final = "pyproject.toml"
#: The tables of a shared file that say how tests are run and judged.
_OURS: Final = re.compile(r"\[+tool\.(pytest|ttnn_perf)\b")
#: Keywords of tests that decide what a time means, as they stand in a line.
_DECIDING: Final = re.compile(
    r"\b(tolerance|max_regression|warmup|iterations|pcc|at_least|at_most|waive|sync|clock|setup|"
    r"pipelined|batch)\b"
)
_SHOWN: Final = 60
#: Settings of a device or a compiler that a change may be about. Another one is another workload.
TUNED: Final = frozenset({
    "num_command_queues", "trace_region_size", "l1_small_size", "worker_l1_size", "use_trace",
    "all_transfers_on_separate_command_queue", "optimization_level", "enable_trace",
    "enable_bfp8_conversion",
})  # fmt: skip


class _Watch:
    """Runs rounds, and stops them if both sides are not measured alike."""

    def __init__(self, states: Repository, before: State, now: State, settings: Settings) -> None:
        self._root, self._states = states.root, states
        self._before, self._now, self._settings = before, now, settings
        self._turns: InTurns | None = None
        self.before, self.after = Sessions(0), Sessions(0)
        self._baselines = self._inside(settings.baselines)
        self._targets = self._inside(settings.targets)
        self.refusals: list[Refusal] = []
        #: What was tuned, by test: a change may be about that.
        self.tuned: dict[str, str] = {}

    def over(self, turns: InTurns) -> InTurns:
        self._turns, self.before, self.after = turns, turns.before, turns.after
        return self

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        """Run a round, and check that both sides were measured alike."""
        assert self._turns is not None, "over() comes first"
        stopped = self._turns.run(number, tests)
        if stopped is not None:
            return stopped
        self._leave_out_tuned()
        if number == 1:
            for seen in (*self.before.measured.values(), *self.after.measured.values()):
                seen[0] = check_numbers(
                    JudgedTest(seen[0]), self._settings, only=NUMBER_RULES - VERDICT_RULES
                ).observation
            self.refusals = self.edited(self._measured_files())
            before, after = self.before, self.after
            for test in (test for test in after.measured if test in before.measured):
                failed = test in before.troubles or test in after.troubles
                then, now = before.measured[test][0], after.measured[test][0]
                for each in differing_conditions(test, then, now):
                    # One that ended early lacks metrics: that follows from its failure.
                    if not (failed and each.edit == Edit.METRICS.value):
                        self.refusals.append(each)
        return "both sides were not measured alike" if self.refusals else None

    def edited(self, tests: Sequence[str]) -> list[Refusal]:
        states, found = self._states, []
        for path, (before, after) in states.changed_files(self._before, self._now).items():
            edit = self._edit_of(path, tests)
            if edit is Edit.CONFIGURATION and path.endswith(_SHARED_FILE):
                sides = (self._before, self._now)
                texts = {_own_tables(states.text(state, path)) for state in sides}
                edit = edit if len(texts) > 1 else None
            if edit is not None and after is None:
                found.append(Refusal(edit.value, f"{path} was removed"))
            elif edit is not None and before is None:
                found.append(Refusal(edit.value, f"{path} is new"))
            elif edit is not None:
                found.append(Refusal(edit.value, self._where(path)))
        return found

    def _edit_of(self, path: str, tests: Sequence[str]) -> Edit | None:
        name, folder = PurePosixPath(path).name, PurePosixPath(path).parent
        if self.is_baseline(path):
            return Edit.BASELINES
        if path == self._targets or name in CONFIGURATION_FILES:
            return Edit.CONFIGURATION
        if name == "conftest.py" and any(
            PurePosixPath(test).is_relative_to(folder) or folder.is_relative_to(test)
            for test in tests
        ):
            return Edit.CONFTEST
        return Edit.TEST if path in tests else None

    def _where(self, path: str) -> str:
        """Say where a file was changed, and the deciding keywords there."""
        lines = list(self._states.new_lines(self._before, self._now, path))
        if not lines:
            return f"{path}: lines were removed"
        words = dict.fromkeys(word for _, text in lines for word in _DECIDING.findall(text))
        about = f" ({', '.join(words)})" if words else ""
        number, text = next((line for line in lines if _DECIDING.search(line[1])), lines[0])
        return f"{path}:{number}{about}: {shortened(text.strip(), _SHOWN)}"

    def is_baseline(self, path: str) -> bool:
        """Check that a file of the repository is one of the baselines."""
        place = self._baselines
        return place is not None and PurePosixPath(path).is_relative_to(place)

    def _inside(self, path: Path | None) -> str | None:
        real = Path(os.path.realpath(path)) if path is not None else None
        if real is None or not real.is_relative_to(self._root):
            return None
        return str(real.relative_to(self._root))

    def _measured_files(self) -> list[str]:
        collected = self.after.collected
        root = Path(collected["root"]) if collected and collected["root"] else self._root
        files = dict.fromkeys(test.partition("::")[0] for test in self.after.measured)
        return [inside for file in files if (inside := self._inside(root / file)) is not None]

    def _leave_out_tuned(self) -> None:
        """Note what a change tuned, and leave it out of the configurations."""
        for test in self.after.measured:
            sides = [side.measured.get(test) for side in (self.before, self.after)]
            if all(sides) and test not in self.tuned:
                then, now = (seen[0].setting for seen in sides if seen)
                changed = [
                    f"{name} {then.get(name)}, now {now.get(name)}"
                    for name in sorted(TUNED & {*then, *now})
                    if then.get(name) != now.get(name)
                ]
                if changed:
                    self.tuned[test] = "; ".join(changed)
        for side in (self.before, self.after):
            for seen in side.measured.values():
                seen[:] = [_without_tuned(observation) for observation in seen]

    def was_edited_meanwhile(self) -> bool:
        """Check the working tree against its state at the beginning.

        New files that tests have written are no part of it.
        """
        return self._turns is not None and self._states.now(self._now).tree != self._now.tree

    def receipt(self) -> Receipt:
        paths: list[str] = []
        for test in self._measured_files():
            paths.append(test)
            for folder in Path(test).parents:
                names = ("conftest.py", *sorted(CONFIGURATION_FILES))
                paths += [(folder / name).as_posix() for name in names]
        paths += [path for path in (self._baselines, self._targets) if path is not None]
        ids = ((path, self._states.id_of(self._now, path)) for path in paths)
        trees = repr((self._before.tree, self._now.tree))
        diff = blake2b(trees.encode(), digest_size=8).hexdigest()
        return Receipt(diff, {path: found for path, found in ids if found is not None})


def _own_tables(text: str) -> str:
    """Return the parts of a shared configuration file that are about tests."""
    kept, ours = [], False
    for line in text.splitlines():
        if line.startswith("["):
            ours = bool(_OURS.match(line))
        if ours and line.strip():
            kept.append(line.strip())
    return "\n".join(kept)


def _without_tuned(observation: Observation) -> Observation:
    if TUNED.isdisjoint(observation.setting):
        return observation
    values, facts = (
        {name: value for name, value in own.items() if name not in TUNED}
        for own in (observation.configuration, observation.facts)
    )
    return replace(observation, configuration=values, facts=facts)


def differing_conditions(test: str, then: Observation, now: Observation) -> Iterator[Refusal]:
    """Yield the conditions that differ between two sides of a test."""
    for name, observed in then.metrics.items():
        if not observed.gated:
            continue
        other = now.metrics.get(name)
        if other is not None and other.gated:
            was, is_now = observed.limits, other.limits
            yield from _changed(f"{test} {name}: ", (
                (Edit.TOLERANCE, "tolerance ", was.tolerance, is_now.tolerance),
                (Edit.TOLERANCE, "max_regression ", was.max_regression, is_now.max_regression),
                (Edit.LIMIT, "at_least ", was.at_least, is_now.at_least),
                (Edit.LIMIT, "at_most ", was.at_most, is_now.at_most),
            ))  # fmt: skip
        # A profiler may have lost it, and ops that are gone have no part of the time any more.
        elif observed.metric.source not in OF_DEVICE and not observed.metric.totals:
            yield Refusal(Edit.METRICS.value, f"{test} {name}: gated before")
    if then.waived != now.waived:
        codes = sorted(then.waived.keys() ^ now.waived.keys()) or sorted(now.waived)
        yield Refusal(Edit.WAIVER.value, f"{test}: {', '.join(codes)}")
    for metric, conditions in now.conditions.items():
        known = then.conditions.get(metric, conditions)
        yield from _changed(f"{test} {metric}: ", (
            (Edit.WARMUP, "", known.warmup, conditions.warmup),
            (Edit.ITERATIONS, "", known.iterations, conditions.iterations),
            (Edit.ITERATIONS, "", known.depth, conditions.depth),
            (Edit.INPUTS, "", ", ".join(known.inputs), ", ".join(conditions.inputs)),
        ))  # fmt: skip


def _changed(where: str, values: Iterable[tuple[Edit, str, object, object]]) -> Iterator[Refusal]:
    for edit, name, *sides in values:
        was, is_now = (
            "none" if side in {None, ""} else shortened(str(side), _SHOWN) for side in sides
        )
        if sides[0] != sides[1]:
            yield Refusal(edit.value, f"{where}{name}{was}, now {is_now}")


# The decision. KEEP: a time or a throughput got better by more than the gate's floor (2 %, or the
# test's own tolerance), the interval of which lies wholly on the better side; nothing that is gated
# got worse; every accuracy is at or above its limit; nothing is open. REVERT: something got worse,
# or a gain worth keeping is ruled out. CANNOT_TELL: anything else, as on a simulated device without
# times.

_UNKNOWN: Final = frozenset({Outcome.TOO_NOISY, Outcome.NO_DATA, Outcome.NOT_COMPARABLE})
_ANSWERED: Final = frozenset({RuleOutcome.CLEAN, RuleOutcome.NOT_APPLICABLE, RuleOutcome.FOUND})
_CANDIDATES: Final = 3
#: The outcome of an accuracy that fell, and is still at or above its limit.
_HOLDS: Final = "HOLDS"


class Sides(Struct, frozen=True):
    """The comparison of a step, and the sessions of both sides."""

    result: AbResult
    before: Sessions
    after: Sessions

    @property
    def now(self) -> Mapping[str, Observation]:
        """The first round of the working tree, which has a checklist."""
        return {test: seen[0] for test, seen in self.after.good().items()}

    @property
    def both(self) -> list[tuple[str, Observation, Observation]]:
        """The first rounds of the tests that both sides have."""
        before = self.before.good()
        return [(test, before[test][0], now) for test, now in self.now.items() if test in before]

    @property
    def exact(self) -> list[str]:
        """The tests whose times are not judged: one round is enough."""
        return [test for test, then, now in self.both if is_exact([then], [now])]


def decide(
    sides: Sides, refusals: Sequence[Refusal], *, edited: bool
) -> tuple[Decision, list[str]]:
    """Return the decision, and the sentences that say why.

    ``edited``: the working tree changed while it was measured.
    """
    result, known = sides.result, sides.before.troubles
    if refusals:
        return Decision.NOT_COMPARABLE, list(dict.fromkeys(r.edit for r in refusals))
    if edited:
        return Decision.CANNOT_TELL, ["the working tree was edited while it was measured"]
    troubles = sides.after.troubles.items()
    failed = [f"{test} failed: {why}" for test, why in troubles if test not in known]
    worse = [compared for compared in result.compared if _is_worse(compared)]
    if failed or worse:
        return Decision.REVERT, [*failed, *(_sentence(compared, result) for compared in worse)]
    open_questions = [*_open_questions(sides)]
    if open_questions:
        return Decision.CANNOT_TELL, open_questions
    # Beyond doubt, and by enough.
    better = [
        compared
        for compared in result.compared
        if compared.outcome is Outcome.IMPROVED and compared.high is not None and compared.high < 0
    ]
    if better:
        return Decision.KEEP, [_sentence(compared, result) for compared in better]
    if sides.exact:
        return Decision.CANNOT_TELL, [_no_times(sides)]
    return Decision.REVERT, [_no_gain(result)]


def _is_worse(compared: Comparison) -> bool:
    """Check for a regression; an accuracy is judged by its limit."""
    regressed = compared.outcome is Outcome.REGRESSED and not compared.is_undecided
    return regressed and not _holds_its_limit(compared)


def _holds_its_limit(compared: Comparison) -> bool:
    verdict, limits = compared.verdict, compared.limits
    if verdict.metric.kind is not Kind.ACCURACY or verdict.observed is None:
        return False
    if verdict.metric.better is Better.HIGHER:
        return limits.at_least is not None and verdict.observed >= limits.at_least
    return limits.at_most is not None and verdict.observed <= limits.at_most


def _open_questions(sides: Sides) -> Iterator[str]:
    result = sides.result
    least = 1 if sides.exact and len(sides.exact) == len(sides.both) else MIN_ROUNDS
    if result.whole < least:
        stopped = f"{result.stopped}: " if result.stopped is not None else ""
        yield f"{stopped}rounds that are complete: {result.whole}; it takes {least} to judge"
    elif result.stopped is not None:
        yield result.stopped
    for test, why in sides.before.troubles.items():
        yield f"{test} failed before the change: {why}"
    for test in result.only_before:
        yield f"{test} is not measured any more"
    for compared in result.compared:
        unknown = compared.outcome in _UNKNOWN and not _holds_its_limit(compared)
        if compared.is_undecided or (unknown and not _only_explains(compared, result)):
            yield _sentence(compared, result)
    if not result.compared and result.whole >= least:
        yield "no metric could be compared"


def _sentence(compared: Comparison, result: AbResult) -> str:
    verdict = compared.verdict
    if compared.is_undecided or compared.low is None:
        return f"{compared.test}: {ab_sentence(compared, result.ref)}"
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    return (
        f"{compared.test} {verdict.metric.name}: {format_value(verdict.metric, verdict.centre)} "
        f"→ {now}, {format_change(verdict.change_as_read)} ({interval_text(compared)})"
    )


def _no_times(sides: Sides) -> str:
    """Say what got better on a simulated device: counts and findings."""
    compared = [each.verdict for each in sides.result.compared if each.test in sides.exact]
    better = [
        f"memory {format_change(verdict.change_as_read)} ({verdict.metric.name})"
        for verdict in compared
        if verdict.metric.kind is Kind.BYTES and verdict.outcome is Outcome.IMPROVED
    ]
    for verdict in compared:
        then, now = verdict.centre, verdict.observed
        is_ops = split_metric(verdict.metric.name)[0] in COUNTED_IN_GRAPHS
        if is_ops and then is not None and now is not None and now < then:
            better.append(f"{counted(round(then - now), 'op')} fewer")
    better += [f"{finding.code} closed" for finding in finding_changes(sides)[1]]
    better = list(dict.fromkeys(better)) or ["nothing that is counted got better"]
    return f"no times here: {', '.join(better)}; measure on hardware"


def _no_gain(result: AbResult) -> str:
    timed = [c for c in result.compared if c.low is not None]
    if not timed:
        return "no gain: no time or throughput was compared"
    best = min(timed, key=lambda compared: compared.verdict.change or 0.0)
    verdict = best.verdict
    metric, change = verdict.metric, format_change(verdict.change_as_read)
    least = DEFAULT_POLICY.absolute_floor(metric)
    gain = abs((verdict.observed or 0.0) - (verdict.centre or 0.0))
    is_short = gain <= least and abs(verdict.change or 0.0) > DEFAULT_POLICY.floor
    short = f", less than {format_value(metric, least)}, which a device cannot tell apart"
    return (
        f"no gain worth keeping: the best is {best.test} {metric.name} {change} "
        f"({interval_text(best)}){short if is_short else ''}"
    )


def _only_explains(compared: Comparison, result: AbResult) -> bool:
    """Check that a metric only explains another.

    A part that only one side has is of ops that came or went.
    """
    verdict = compared.verdict
    of_test = {c.verdict.metric.name for c in result.compared if c.test == compared.test}
    is_part = not of_test.isdisjoint(verdict.metric.totals)
    came_or_went = verdict.reason in {Reason.NEW_METRIC, Reason.NOT_RECORDED}
    quiet = compared.outcome is Outcome.WITHIN or came_or_went
    return verdict.reason is Reason.EXPLAINS or (is_part and quiet)


def effects_of(result: AbResult) -> tuple[Effect, ...]:
    found = []
    for compared in result.compared:
        if _only_explains(compared, result):
            continue
        verdict, limits = compared.verdict, compared.limits
        metric = verdict.metric
        low, high = compared.ends_as_read or (None, None)
        holds = compared.outcome is Outcome.REGRESSED and not _is_worse(compared)
        found.append(
            Effect(
                compared.test,
                metric.name,
                metric.unit,
                metric.better,
                metric.kind,
                _HOLDS if holds else compared.word,
                verdict.centre,
                verdict.observed,
                verdict.change_as_read,
                low,
                high,
                compared.rounds,
                limits.target,
                limits.at_least,
            )
        )
    return tuple(found)


def finding_changes(sides: Sides) -> tuple[tuple[StepFinding, ...], tuple[StepFinding, ...]]:
    """Return the findings that a step opened and closed.

    One whose rule has no answer any more is not closed. The largest closed one of a region has all
    that it would save alone.
    """
    opened: list[StepFinding] = []
    closed: list[StepFinding] = []
    for test, then, now in sides.both:
        before, after = (
            {(f.code, f.region): f for f in observation.findings if f.stands}
            for observation in (then, now)
        )
        opened += [_step_finding(test, f) for key, f in after.items() if key not in before]
        gone = [
            finding
            for key, finding in before.items()
            if key not in after and now.outcomes.get(finding.code) in _ANSWERED
        ]
        largest: dict[str, Finding] = {}
        for finding in sorted(gone, key=lambda f: -(f.saving_ns or 0.0)):
            largest.setdefault(finding.region, finding)
        for finding in gone:
            found = _step_finding(test, finding)
            whole = finding is largest[finding.region]
            closed.append(replace(found, saving_ns=finding.saving_ns) if whole else found)
    return tuple(opened), tuple(closed)


def _step_finding(test: str, finding: Finding) -> StepFinding:
    return StepFinding(
        test,
        finding.code,
        finding.name,
        finding.adds_ns if finding.adds_ns is not None else finding.saving_ns,
        finding.fix,
        finding.region,
        finding.at_most,
        finding.gaps_ns,
    )


def predictions_of(
    closed: Sequence[StepFinding], effects: Sequence[Effect]
) -> tuple[Prediction, ...]:
    """Return the promised and the measured savings, by test and metric.

    What promises less waiting shows in the time that users wait for. Of kernels that were timed, it
    is what was promised of them, without gaps. Regions that show in one time are one prediction.
    """
    known = {(effect.test, effect.metric): effect for effect in effects}
    groups: dict[tuple[str, str], list[StepFinding]] = {}
    for finding in closed:
        if finding.saving_ns:
            groups.setdefault((finding.test, finding.region), []).append(finding)
    found: dict[tuple[str, str], Prediction] = {}
    for (test, region), findings in groups.items():
        kernels = effect = known.get((test, metric_in(region, KERNEL_TIME)))
        of_kernels = {f.code: max(0.0, (f.saving_ns or 0.0) - f.gaps_ns) for f in findings}
        promised = {code: saving for code, saving in of_kernels.items() if saving}
        if kernels is None or not promised or any(is_of_host(f.code) for f in findings):
            promised = {f.code: f.saving_ns or 0.0 for f in findings}
            effect = main_time(test, effects)
            effect = None if effect == kernels else effect
        if effect is None or effect.delta is None or effect.unit != "ns":
            continue
        codes, predicted_ns = tuple(promised), sum(promised.values())
        bound = any(finding.at_most for finding in findings if finding.code in promised)
        other = found.get((test, effect.metric))
        if other is not None:
            codes = tuple(dict.fromkeys((*other.codes, *codes)))
            predicted_ns, bound = predicted_ns + other.predicted_ns, bound or other.at_most
        found[test, effect.metric] = Prediction(
            test, codes, effect.metric, predicted_ns, -effect.delta, at_most=bound
        )
    return tuple(found.values())


def candidates_of(sides: Sides) -> tuple[StepFinding, ...]:
    found = []
    for test, observation in sides.now.items():
        # The host holds the test up, so that faster kernels change nothing.
        waits = observation.model_kind == ModelKind.HOST_BOUND.value
        for finding in filter(is_step, observation.findings):
            order = order_of_step(finding, waits=waits)
            found.append((order, test, _step_finding(test, finding)))
    found.sort(key=lambda each: each[:2])
    return tuple(finding for _, _, finding in found[:_CANDIDATES])


def situations_of(sides: Sides) -> dict[str, Situation]:
    by_op = {each.test: each.by_op for each in sides.result.compared if each.by_op}
    situations = {}
    for test, observation in sides.now.items():
        hardware, found = observation.hardware, None
        if observation.ops is not None and hardware is not None and not hardware.simulated:
            found = roofline_of_groups(observation.ops, hardware.arch)
        kernel_ns, least_ns = found or (None, None)
        situations[test] = Situation(
            test, observation.bottleneck, kernel_ns, least_ns, by_op.get(test)
        )
    return situations


# The layout: for people, and as one object of a size that any reader can take.

#: The most that the object of a step takes, as it is printed.
MOST_BYTES: Final = 8_000
#: A sentence of the object is cut to this: where texts are long, their ends say as much.
_LONGEST: Final = 240
_MOST_ITEMS: Final = 12
#: Files that a command names; of more, only their number is printed.
_MOST_FILES: Final = 5


def try_lines(tried: TryResult, cwd: Path) -> Iterator[Block]:
    step = tried.step
    good, bad = step.decision is Decision.KEEP, step.decision is Decision.REVERT
    yield Line(f"{step.decision.value}: {step.message}", good=good, bad=bad)
    yield from (f"  {each.edit}: {each.sentence}" for each in step.refusals)
    if step.refusals:
        yield "  commit such a change by itself: steps are then compared with what is committed"
        if tried.is_committed:
            yield "  if that is done, name the commit to compare with: --base REF"
    else:
        yield from (f"  {reason}" for reason in step.reasons)
    rounds = counted(step.rounds, "round") if step.rounds else "not measured"
    yield f"compared with {tried.base.words} ({rounds})"
    more = [*_findings(step), *tried.remarks]
    for part in (_EFFECTS.table(step.effects), more):
        if part:
            yield ""
            yield from part
    yield ""
    yield from (f"{what}: {command}" for what, command in commands(tried, cwd).items())
    yield f"step record: {shown_path(tried.file, cwd)}"


def _findings(step: Step) -> Iterator[str]:
    for test, situation in step.situations.items():
        if situation.by_op is not None:
            yield f"by op, {test}: {situation.by_op}"
    yield from (f"closed {_finding_text(finding)}" for finding in step.closed)
    yield from (f"opened {_finding_text(finding)}" for finding in step.opened)
    for each in step.predictions:
        codes = ", ".join(each.codes)
        most = "at most " if each.at_most else ""
        yield (
            f"predicted {most}{microseconds(each.predicted_ns)} ({codes}), measured "
            f"{microseconds(each.measured_ns)} of {each.metric}"
        )
    for number, finding in enumerate(step.candidates, start=1):
        fix = f": {finding.fix}" if finding.fix else ""
        yield f"next {number}: {_finding_text(finding)}{fix}"


def _finding_text(finding: StepFinding) -> str:
    region = f" in {finding.region}" if finding.region else ""
    most = "at most " if finding.at_most else ""
    saving = f", {most}{microseconds(finding.saving_ns)}" if finding.saving_ns else ""
    return f"{finding.code} {finding.name}{region} ({finding.test}{saving})"


_EFFECTS: Final[Columns[Effect]] = Columns(
    id_column(lambda e: e.test),
    Column("metric", lambda e: e.metric, "metric", fit=METRIC),
    Column("unit", lambda e: e.unit),
    Column("before", lambda e: e.before, "before",
           lambda e: format_value(e.defined, e.before), right=True, fit=Fit(drop=2)),
    Column("after", lambda e: e.after, "after",
           lambda e: format_value(e.defined, e.after, beside=e.before), right=True),
    Column("change", lambda e: e.change, "change", change_text, right=True),
    Column("low", lambda e: e.low, "interval", effect_interval, right=True, fit=DROPPED[1]),
    Column("high", lambda e: e.high),
    Column("outcome", lambda e: e.outcome, "verdict"),
)  # fmt: skip


def commands(tried: TryResult, cwd: Path) -> dict[str, str]:
    step, found = tried.step, {}
    new, changed = (
        [os.path.relpath(tried.root / file, cwd) for file in files]
        for files in (tried.new_files, tried.changed_files)
    )
    if step.decision is Decision.KEEP:
        added = f"{command_line('git', 'add', '--', *new[:_MOST_FILES])} && " if new else ""
        found["commit it"] = f"{added}{command_line('git', 'commit', '-a', '-m', step.message)}"
        if len(new) > _MOST_FILES:
            found["new files"] = f"{len(new)}, of which this command names {_MOST_FILES}"
    if step.decision is Decision.REVERT:
        found["revert it"] = _revert(tried, cwd, new, changed)
    # What cannot be compared, or has no noise, is not known better after more rounds.
    comparable = not any(each.outcome == Outcome.NOT_COMPARABLE.value for each in step.effects)
    noisy = not step.effects or any(each.low is not None for each in step.effects)
    if step.decision is Decision.CANNOT_TELL and comparable and noisy:
        more = " with more --rounds" if step.rounds >= MIN_ROUNDS else ", until it is done"
        found["measure longer"] = f"the same command{more}"
    return found


def _revert(tried: TryResult, cwd: Path, new: Sequence[str], changed: Sequence[str]) -> str:
    """Return a command that undoes the change, and touches no other file."""
    base, state = tried.base.state.commit[:12], tried.step.state[:12]
    if len(new) + len(changed) > _MOST_FILES:
        top = os.path.relpath(tried.root, cwd)
        undo = command_line("git", *([] if top == "." else ["-C", top]), "apply", "-R")
        return f"{command_line('git', 'diff-tree', '-p', '--binary', base, state)} | {undo}"
    restored = command_line("git", "restore", f"--source={base}", "--", *changed)
    removed = command_line("rm", "-f", "--", *new)
    return " && ".join([*([restored] if changed else []), *([removed] if new else [])])


def try_document(tried: TryResult, cwd: Path) -> dict[str, object]:
    """Return a step as one object of at most ``MOST_BYTES``."""
    document = _document(tried, cwd)
    left_out: dict[str, int] = {}
    document["left_out"] = left_out
    lists = {name: value for name, value in document.items() if isinstance(value, list)}
    for name, items in lists.items():
        if len(items) > _MOST_ITEMS:
            left_out[name] = len(items) - _MOST_ITEMS
            del items[_MOST_ITEMS:]
    while len(json_text(document)) > MOST_BYTES:
        # What takes most room goes first; each list keeps what it begins with for longest.
        name = max(lists, key=lambda each: (len(lists[each]) > 1, len(json_text(lists[each]))))
        if not lists[name]:
            break
        lists[name].pop()
        left_out[name] = left_out.get(name, 0) + 1
    return document


def _document(tried: TryResult, cwd: Path) -> dict[str, object]:
    step = tried.step
    accuracies = [effect for effect in step.effects if effect.kind is Kind.ACCURACY]
    # The main time of each test first, then what changed most.
    timed = sorted(
        (effect for effect in step.effects if effect.kind is not Kind.ACCURACY),
        key=lambda e: (main_time(e.test, step.effects) != e, -abs(e.change or 0.0)),
    )
    finding = ("code", "name", "test", "region", "saving_ns", "at_most", "fix")
    situations = step.situations.values()
    return {
        "format": STEP_FORMAT,
        "decision": step.decision.value,
        "message": _cut(step.message),
        "reasons": [_cut(reason) for reason in step.reasons],
        "refusals": _objects(step.refusals, "edit", "sentence"),
        "base": {"words": _cut(tried.base.words), "commit": step.base, "tree": step.base_tree},
        "state": {"commit": step.state, "tree": step.state_tree},
        "rounds": step.rounds,
        "effects": _objects(
            timed, "test", "metric", "unit", "before", "after", "change", "low", "high", "outcome",
            "target",
        ),
        "accuracies": _objects(
            accuracies, "test", "metric", "before", "after", "at_least", "outcome"
        ),
        "ops": [
            {"test": _cut(each.test), "sentence": _cut(each.by_op)}
            for each in situations
            if each.by_op is not None
        ],
        "closed": _objects(step.closed, *finding),
        "opened": _objects(step.opened, *finding),
        "predictions": _objects(
            step.predictions, "test", "codes", "metric", "predicted_ns", "measured_ns", "at_most"
        ),
        "candidates": _objects(step.candidates, *finding),
        "situations": _objects(situations, "test", "bottleneck", "kernel_ns", "roofline_ns"),
        "remarks": [_cut(remark) for remark in tried.remarks],
        "commands": {what: _cut(command) for what, command in commands(tried, cwd).items()},
        "record": _cut(shown_path(tried.file, cwd)),
    }  # fmt: skip


def _objects(records: Iterable[object], *names: str) -> list[dict[str, object]]:
    return [{name: _cut(getattr(record, name)) for name in names} for record in records]


def _cut(value: object) -> object:
    if isinstance(value, str):
        return shortened(value, _LONGEST)
    return list(value[:_MOST_ITEMS]) if isinstance(value, tuple) else value
