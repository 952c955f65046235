"""The try command: the working tree against the last kept state."""

from __future__ import annotations

import ast
import os
import re
import secrets
from datetime import datetime, timezone
from operator import ge
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.plan import is_of_host, is_step, order_of_step
from pytest_ttnn_perf.analysis.ops.roofline import roofline_of_groups
from pytest_ttnn_perf.core.baseline import SCRIPT_FACT
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.metric import KERNEL_TIME, OF_DEVICE, Better, Kind, Source, metric_in
from pytest_ttnn_perf.core.observation import JudgedTest, Outcome, Reason
from pytest_ttnn_perf.core.settings import CONFIGURATION_FILES, MIN_ROUNDS
from pytest_ttnn_perf.core.text import counted, duration, shortened
from pytest_ttnn_perf.experiments.ab import (
    AbResult,
    ab_sentence,
    compare_with,
    interval_text,
    order_line,
)
from pytest_ttnn_perf.experiments.journal import (
    STEP_FORMAT,
    Base,
    Decision,
    Edit,
    Effect,
    Prediction,
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
from pytest_ttnn_perf.experiments.repository import Repository
from pytest_ttnn_perf.experiments.rounds import is_exact
from pytest_ttnn_perf.gate.judging import check_numbers
from pytest_ttnn_perf.gate.rules_on_numbers import NUMBER_RULES, VERDICT_RULES
from pytest_ttnn_perf.measure.profilers import called_name, operations_in
from pytest_ttnn_perf.plugin.script import NO_CONFTEST
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
    shown_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.experiments.paired import Comparison
    from pytest_ttnn_perf.experiments.repository import State
    from pytest_ttnn_perf.experiments.rounds import Experiment, InTurns
    from pytest_ttnn_perf.report.tables import Block


class TryResult(Struct, frozen=True):
    """A step and its record's file; ``new_files`` are in no commit yet."""

    step: Step
    file: Path
    base: Base
    root: Path
    new_files: tuple[str, ...]
    remarks: tuple[str, ...]


def try_change(
    asked: Experiment, message: str, base_ref: str | None = None, *, approved_by: str | None = None
) -> TryResult:
    """Measure the working tree against the last kept state; record the step.

    ``base_ref`` is a commit to compare with instead.
    """
    repository = Repository.around(asked.cwd)
    artifacts = asked.settings.artifacts
    now, head = repository.now(), repository.commit("HEAD").id
    base = base_of(repository, now, read_steps(artifacts), base_ref)
    watch = _Watch(repository, base.state, now, asked.settings)
    watch.refusals = watch.edited(_named_tests(asked, repository.root))
    commit = repository.commit(base.state.commit)
    if watch.refusals:
        result = AbResult(base.name, commit, repository.working_tree(), asked.rounds, 0)
    else:
        result = compare_with(commit, base.name, asked, watch.check)
    # New files that tests have written are no part of it.
    edited = not watch.refusals and repository.now(now).tree != now.tree
    decision, reasons = decide(result, watch.refusals, edited=edited)
    moment = datetime.now(timezone.utc)
    step = Step(
        # Sorts by time, also within a second: a step that is refused at once takes less.
        f"{moment:%Y%m%dT%H%M%SZ}-{moment.microsecond // 1000:03x}{secrets.randbelow(4096):03x}",
        f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        message,
        decision,
        tuple(reasons),
        base=base.state.commit,
        base_tree=base.state.tree,
        state=now.commit,
        state_tree=now.tree,
        head=head,
        rounds=result.whole,
        refusals=tuple(dict.fromkeys(watch.refusals)),
        approved_by=approved_by,
    )
    if not watch.refusals:  # what was measured before that was known means nothing
        effects, (opened, closed) = effects_of(result), finding_changes(result)
        step = replace(
            step,
            effects=effects,
            opened=opened,
            closed=closed,
            # What was measured of a tree that changed meanwhile is the effect of no known change.
            predictions=() if edited else predictions_of(closed, effects),
            candidates=candidates_of(result),
            situations=situations_of(result),
            order_seed=asked.seed,
        )
    file = write_step(artifacts, step)
    repository.keep(step.id, now)
    remarks = (
        *((base.note,) if base.note is not None else ()),
        *result.remarks,
        *several_changes(repository, base.state, now),
        *(f"{test} is new: it is no part of the answer" for test in result.only_after),
    )
    new = _new_files(repository, base.state, now, repository.of(head))
    return TryResult(step, file, base, repository.root, new, remarks)


def _new_files(
    repository: Repository, before: State, now: State, committed: State
) -> tuple[str, ...]:
    """Return the files that ``git commit -a`` does not know."""
    return tuple(
        path
        for path, (old, _) in repository.changed_files(before, now).items()
        if old is None and repository.id_of(committed, path) is None
    )


def _named_tests(asked: Experiment, root: Path) -> tuple[str, ...]:
    if NO_CONFTEST in asked.argv:  # a script, which is what is changed
        return ()
    words = (word.partition("::")[0] for word in asked.argv if not word.startswith("-"))
    named = [place for word in words if (place := asked.cwd / word).exists()] or [asked.cwd]
    return tuple(os.path.relpath(os.path.realpath(place), root) for place in named)


# Equal conditions: files that decide a measurement are compared by their content before anything
# runs. Limits, numbers of calls and shapes of inputs are compared as workers saw them.

_SHOWN: Final = 60
#: Settings of a device or a compiler that a change may be about. Another one is another workload.
TUNED: Final = frozenset({
    "num_command_queues", "trace_region_size", "l1_small_size", "worker_l1_size", "use_trace",
    "all_transfers_on_separate_command_queue", "optimization_level", "enable_trace",
    "enable_bfp8_conversion",
})  # fmt: skip


class _Watch:
    """Checks that both sides are measured alike."""

    def __init__(
        self, repository: Repository, before: State, now: State, settings: Settings
    ) -> None:
        self._repository, self._before, self._now = repository, before, now
        self._settings = settings
        self._baselines = self._inside(settings.baselines)
        self._targets = self._inside(settings.targets)
        self.refusals: list[Refusal] = []

    def check(self, turns: InTurns, number: int) -> str | None:
        """Check a round that was measured; return why no other may follow."""
        before, after = turns.before, turns.after
        sides = (*before.measured.values(), *after.measured.values())
        for seen in sides:
            seen[-1] = _without_tuned(seen[-1])
        if number > 1:
            return None
        for seen in sides:
            judged = JudgedTest(seen[0])
            rules = NUMBER_RULES - VERDICT_RULES
            seen[0] = check_numbers(judged, self._settings, only=rules).observation
        root = Path((after.collected and after.collected["root"]) or self._repository.root)
        # Of a script, the file is what is changed: its command and settings are compared.
        tests = [t for t, seen in after.measured.items() if SCRIPT_FACT not in seen[0].facts]
        files = (self._inside(root / test.partition("::")[0]) for test in tests)
        self.refusals = self.edited([file for file in files if file is not None])
        for test in before.measured.keys() & after.measured.keys():
            # One that ended early lacks metrics: that follows from its failure.
            failed = test in before.troubles or test in after.troubles
            then, now = (side.measured[test][0] for side in (before, after))
            for each in differing_conditions(test, then, now):
                if not (failed and each.edit == Edit.METRICS.value):
                    self.refusals.append(each)
        return "both sides were not measured alike" if self.refusals else None

    def edited(self, tests: Sequence[str]) -> list[Refusal]:
        """Return the changed files that decide how ``tests`` are measured."""
        found = []
        changed = self._repository.changed_files(self._before, self._now)
        for path, (before, after) in changed.items():
            edit = self._edit_of(path, tests)
            if edit is not None:
                what = " is new" if before is None else " was removed" if after is None else ""
                found.append(Refusal(edit.value, f"{path}{what}"))
        return found

    def _edit_of(self, path: str, tests: Sequence[str]) -> Edit | None:
        place = PurePosixPath(path)
        if self._baselines is not None and place.is_relative_to(self._baselines):
            return Edit.BASELINES
        if path == self._targets or place.name in CONFIGURATION_FILES:
            return Edit.CONFIGURATION
        if place.name == "conftest.py" and any(
            PurePosixPath(test).is_relative_to(place.parent) or place.parent.is_relative_to(test)
            for test in tests
        ):
            return Edit.CONFTEST
        return Edit.TEST if path in tests else None

    def _inside(self, path: Path | None) -> str | None:
        real, root = Path(os.path.realpath(path or os.sep)), self._repository.root
        return str(real.relative_to(root)) if real.is_relative_to(root) else None


def _without_tuned(observation: Observation) -> Observation:
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
            (Edit.WARMUP, "", known["warmup"], conditions["warmup"]),
            (Edit.ITERATIONS, "", known["iterations"], conditions["iterations"]),
            (Edit.ITERATIONS, "", known.get("depth"), conditions.get("depth")),
            (Edit.INPUTS, "", _listed(known), _listed(conditions)),
        ))  # fmt: skip


def _listed(conditions: dict[str, list[str]]) -> str:
    return ", ".join(conditions.get("inputs", ()))


def _changed(where: str, values: Iterable[tuple[Edit, str, object, object]]) -> Iterator[Refusal]:
    for edit, name, *sides in values:
        was, is_now = (
            "none" if side in {None, ""} else shortened(str(side), _SHOWN) for side in sides
        )
        if sides[0] != sides[1]:
            yield Refusal(edit.value, f"{where}{name}{was}, now {is_now}")


# What a step changes in tt-lang operations: of several parts, nobody knows which one helped.

#: Keywords of operations and their buffers, and what they are.
_KEYWORDS: Final = {"grid": "grid", "shape": "block shape", "block_count": "block_count"}


def several_changes(repository: Repository, before: State, now: State) -> Iterator[str]:
    """Yield a remark if a step changes several parts of kernels."""
    operations: set[str] = set()
    changed: dict[str, None] = {}
    for path, (old, new) in repository.changed_files(before, now).items():
        if old and new and path.endswith(".py"):
            then, later = (_parts_of(repository.text(state, path)) for state in (before, now))
            for part in then.keys() & later.keys():
                if then[part] != later[part]:
                    operations |= {part[0]} - {""}
                    changed |= {part[1]: None} if part[1] else {}
    for what, names in (("change", sorted(changed)), ("operation", sorted(operations))):
        if len(names) > 1:
            yield f"{counted(len(names), what)} in one step: {', '.join(names)}: try one at a time"


def _parts_of(source: str) -> dict[tuple[str, str], list[str]]:
    """Return the parts of a source by operation; "" for its constants."""
    found: dict[tuple[str, str], list[str]] = {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return found
    for name, operation in operations_in(tree).items():
        found[name, ""] = [ast.dump(operation)]
        for node in ast.walk(operation):
            if isinstance(node, ast.keyword) and node.arg in _KEYWORDS:
                found.setdefault((name, _KEYWORDS[node.arg]), []).append(ast.dump(node.value))
            elif isinstance(node, ast.Call) and called_name(node) == "copy":
                found.setdefault((name, "copies"), []).append(ast.dump(node))
    for node in tree.body if found else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found["", node.targets[0].id] = [ast.dump(node.value)]
    return found


def _not_shown(result: AbResult) -> Iterator[str]:
    """Yield the production shapes at which no test was measured."""
    seen = result.sides[1].good()
    sizes = [text for rounds in seen.values() for text in _sizes_of(rounds[0])]
    wanted = (rounds[0].facts.get("production_shape") for rounds in seen.values())
    for shape in dict.fromkeys(str(each) for each in wanted if each):
        least = _sides(shape.split()[0])
        if not any(_reaches(_sides(text), least) for text in sizes):
            yield f"kept, not shown at {shape}: measure a case of that size before it is shipped"


_NUMBER: Final = re.compile(r"(?<![a-z_\d.])\d+")


def _sizes_of(observation: Observation) -> Iterator[str]:
    """Yield texts that say how large the inputs were."""
    facts = observation.facts
    yield str(facts.get(SCRIPT_FACT, "")).partition(" ")[2]
    yield str(facts.get("shape", ""))
    yield " ".join(map(str, observation.sweep.axes.values())) if observation.sweep else ""
    for conditions in observation.conditions.values():
        yield from conditions.get("inputs", ())


def _sides(text: str) -> list[int]:
    """Return the sides of a shape, the longest first."""
    return sorted(map(int, _NUMBER.findall(text.lower().replace("x", " "))), reverse=True)


def _reaches(found: list[int], least: list[int]) -> bool:
    sides = found * len(least) if len(found) == 1 else found
    return len(sides) >= len(least) and all(map(ge, sides, least))


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
#: That of a count of the simulator.
_CHANGED: Final = "CHANGED"


def _first_rounds(result: AbResult) -> dict[str, tuple[Observation | None, Observation]]:
    """Return the tests' first rounds, which have a checklist; None if new."""
    before, after = (side.good() for side in result.sides)
    return {
        test: (before[test][0] if test in before else None, seen[0]) for test, seen in after.items()
    }


def decide(
    result: AbResult, refusals: Sequence[Refusal], *, edited: bool
) -> tuple[Decision, list[str]]:
    """Return the decision, and the sentences that say why.

    ``edited``: the working tree changed while it was measured.
    """
    before, after = result.sides
    if refusals:
        return Decision.NOT_COMPARABLE, list(dict.fromkeys(r.edit for r in refusals))
    if edited:
        return Decision.CANNOT_TELL, ["the working tree was edited while it was measured"]
    troubles = after.troubles.items()
    failed = [f"{test} failed: {why}" for test, why in troubles if test not in before.troubles]
    worse = [compared for compared in result.compared if _is_worse(compared)]
    if failed or worse:
        return Decision.REVERT, [*failed, *(_sentence(compared, result) for compared in worse)]
    firsts = [pair for pair in _first_rounds(result).values() if pair[0] is not None]
    exact = [is_exact([then], [now]) for then, now in firsts if then is not None]
    open_questions = [*_open_questions(result, least=1 if exact and all(exact) else MIN_ROUNDS)]
    if open_questions:
        return Decision.CANNOT_TELL, open_questions
    # Beyond doubt, and by enough.
    better = [
        compared
        for compared in result.compared
        if compared.outcome is Outcome.IMPROVED and compared.high is not None and compared.high < 0
    ]
    if better:
        return Decision.KEEP, [*(_sentence(each, result) for each in better), *_not_shown(result)]
    if any(exact):
        return Decision.CANNOT_TELL, ["no times here: measure on hardware"]
    timed = [compared for compared in result.compared if compared.low is not None]
    if not timed:
        return Decision.REVERT, ["no gain: no time or throughput was compared"]
    best = min(timed, key=lambda compared: compared.verdict.change or 0.0)
    change = format_change(best.verdict.change_as_read)
    name = f"{best.test} {best.verdict.metric.name}"
    why = f"no gain worth keeping: the best is {name} {change} ({interval_text(best)})"
    return Decision.REVERT, [why]


def _is_worse(compared: Comparison) -> bool:
    """Check for a regression; an accuracy is judged by its limit."""
    regressed = compared.outcome is Outcome.REGRESSED and not compared.is_undecided
    # What a simulator counts is different, and by itself neither better nor worse.
    counted_only = compared.verdict.metric.source is Source.SIM
    counted_only = counted_only and compared.verdict.metric.better is Better.EQUAL
    return regressed and not counted_only and not _holds_its_limit(compared)


def _holds_its_limit(compared: Comparison) -> bool:
    verdict, limits = compared.verdict, compared.limits
    if verdict.metric.kind is not Kind.ACCURACY or verdict.observed is None:
        return False
    if verdict.metric.better is Better.HIGHER:
        return limits.at_least is not None and verdict.observed >= limits.at_least
    return limits.at_most is not None and verdict.observed <= limits.at_most


def _open_questions(result: AbResult, *, least: int) -> Iterator[str]:
    if result.whole < least:
        stopped = f"{result.stopped}: " if result.stopped is not None else ""
        yield f"{stopped}rounds that are complete: {result.whole}; it takes {least} to judge"
    elif result.stopped is not None:
        yield result.stopped
    for test, why in result.sides[0].troubles.items():
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
        definition = (metric.name, metric.unit, metric.better, metric.kind)
        low, high = compared.ends_as_read or (None, None)
        holds = compared.outcome is Outcome.REGRESSED and not _is_worse(compared)
        word = compared.word
        if holds:
            word = _CHANGED if metric.better is Better.EQUAL else _HOLDS
        values = (verdict.centre, verdict.observed, verdict.change_as_read, low, high)
        asked = (limits.target, limits.at_least)
        found.append(Effect(compared.test, *definition, word, *values, compared.rounds, *asked))
    return tuple(found)


def finding_changes(result: AbResult) -> tuple[tuple[StepFinding, ...], tuple[StepFinding, ...]]:
    """Return the findings that a step opened and closed.

    One whose rule has no answer any more is not closed. The largest closed one of a region has all
    that it would save alone.
    """
    opened: list[StepFinding] = []
    closed: list[StepFinding] = []
    for test, (then, now) in _first_rounds(result).items():
        if then is None:
            continue
        before, after = (
            {(f.code, f.region): f for f in observation.findings if f.stands}
            for observation in (then, now)
        )
        opened += [_step_finding(test, after[key]) for key in after if key not in before]
        gone = [before[key] for key in before if key not in after]
        largest: dict[str, Finding] = {}
        for finding in sorted(gone, key=lambda f: -(f.saving_ns or 0.0)):
            if now.outcomes.get(finding.code) in _ANSWERED:
                found = _step_finding(test, finding)
                if largest.setdefault(finding.region, finding) is finding:
                    found = replace(found, saving_ns=finding.saving_ns)
                closed.append(found)
    return tuple(opened), tuple(closed)


def _step_finding(test: str, finding: Finding) -> StepFinding:
    saving_ns = finding.saving_ns if finding.adds_ns is None else finding.adds_ns
    about = (finding.fix, finding.region, finding.at_most, finding.gaps_ns)
    return StepFinding(test, finding.code, finding.name, saving_ns, *about)


def predictions_of(
    closed: Sequence[StepFinding], effects: Sequence[Effect]
) -> tuple[Prediction, ...]:
    """Return the promised and the measured savings, by test and metric.

    Of kernels that were timed, it is what was promised of them, without gaps. What promises less
    waiting shows in the time that users wait for.
    """
    known = {(effect.test, effect.metric): effect for effect in effects}
    groups: dict[tuple[str, str], list[tuple[StepFinding, float]]] = {}
    for finding in closed:
        kernels = known.get((finding.test, metric_in(finding.region, KERNEL_TIME)))
        effect, saving_ns = kernels, (finding.saving_ns or 0.0) - finding.gaps_ns
        if kernels is None or saving_ns <= 0 or is_of_host(finding.code):
            effect, saving_ns = main_time(finding.test, effects), finding.saving_ns or 0.0
            effect = None if effect is kernels else effect
        if effect is not None and effect.delta is not None and effect.unit == "ns" and saving_ns:
            groups.setdefault((effect.test, effect.metric), []).append((finding, saving_ns))
    return tuple(
        Prediction(
            test,
            tuple(dict.fromkeys(finding.code for finding, _ in findings)),
            metric,
            sum(saving_ns for _, saving_ns in findings),
            -(known[test, metric].delta or 0.0),
            at_most=any(finding.at_most for finding, _ in findings),
        )
        for (test, metric), findings in groups.items()
    )


def candidates_of(result: AbResult) -> tuple[StepFinding, ...]:
    found = []
    for test, (_, now) in _first_rounds(result).items():
        # The host holds the test up, so that faster kernels change nothing.
        waits = now.model_kind == ModelKind.HOST_BOUND.value
        steps = filter(is_step, now.findings)
        found += [(order_of_step(finding, waits=waits), test, finding) for finding in steps]
    found.sort(key=lambda each: each[:2])
    return tuple(_step_finding(test, finding) for _, test, finding in found[:_CANDIDATES])


def situations_of(result: AbResult) -> dict[str, Situation]:
    by_op = {each.test: each.by_op for each in result.compared if each.by_op}
    situations = {}
    for test, (_, now) in _first_rounds(result).items():
        found = None
        if now.ops and now.hardware and not now.hardware.simulated:
            found = roofline_of_groups(now.ops, now.hardware.arch)
        kernel_ns, least_ns = found or (None, None)
        known = (now.bottleneck, kernel_ns, least_ns, by_op.get(test))
        clock_mhz = now.facts.get("clock_mhz")
        clock_mhz = clock_mhz if isinstance(clock_mhz, (int, float)) else None
        situations[test] = Situation(test, *known, clock_mhz)
    return situations


# The layout: for people, and as one object of a size that any reader can take.

#: A sentence of the object is cut to this: where texts are long, their ends say as much.
_LONGEST: Final = 240
_MOST_ITEMS: Final = 12


def try_lines(tried: TryResult, cwd: Path) -> Iterator[Block]:
    step = tried.step
    good, bad = step.decision is Decision.KEEP, step.decision is Decision.REVERT
    yield Line(f"{step.decision.value}: {step.message}", good=good, bad=bad)
    yield from (f"  {each.edit}: {each.sentence}" for each in step.refusals)
    if step.refusals:
        yield "  commit such a change by itself: steps are then compared with what is committed"
        yield "  if that is done, name the commit to compare with: --base REF"
    else:
        yield from (f"  {reason}" for reason in step.reasons)
    rounds = counted(step.rounds, "round") if step.rounds else "not measured"
    yield f"compared with {tried.base.words} ({rounds})"
    yield from (f"approved by {step.approved_by}",) if step.approved_by else ()
    more = [*_findings(step), *tried.remarks]
    same = (Better.EQUAL, Outcome.WITHIN.value)
    changed = [each for each in step.effects if (each.better, each.outcome) != same]
    for part in (_EFFECTS.table(changed or step.effects), more):
        if part:
            yield ""
            yield from part
    yield ""
    yield from (f"{what}: {command}" for what, command in commands(tried, cwd).items())
    if step.order_seed is not None:
        yield order_line(step.order_seed)
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
            f"predicted {most}{duration(each.predicted_ns)} ({codes}), measured "
            f"{duration(each.measured_ns)} of {each.metric}"
        )
    for number, finding in enumerate(step.candidates, start=1):
        fix = f": {finding.fix}" if finding.fix else ""
        yield f"next {number}: {_finding_text(finding)}{fix}"


def _finding_text(finding: StepFinding) -> str:
    region = f" in {finding.region}" if finding.region else ""
    most = "at most " if finding.at_most else ""
    saving = f", {most}{duration(finding.saving_ns)}" if finding.saving_ns else ""
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
    if step.decision is Decision.KEEP:
        new = [os.path.relpath(tried.root / file, cwd) for file in tried.new_files]
        added = f"{command_line('git', 'add', '--', *new)} && " if new else ""
        found["commit it"] = f"{added}{command_line('git', 'commit', '-a', '-m', step.message)}"
    if step.decision is Decision.REVERT:
        # It touches no other file, and nothing that was edited since.
        top = os.path.relpath(tried.root, cwd)
        both = (tried.base.state.commit[:12], step.state[:12])
        undo = command_line("git", *([] if top == "." else ["-C", top]), "apply", "-R")
        found["revert it"] = f"{command_line('git', 'diff-tree', '-p', '--binary', *both)} | {undo}"
    # What cannot be compared, or has no noise, is not known better after more rounds.
    comparable = not any(each.outcome == Outcome.NOT_COMPARABLE.value for each in step.effects)
    noisy = not step.effects or any(each.low is not None for each in step.effects)
    if step.decision is Decision.CANNOT_TELL and comparable and noisy:
        more = " with more --rounds" if step.rounds >= MIN_ROUNDS else ", until it is done"
        found["measure longer"] = f"the same command{more}"
    return found


def try_document(tried: TryResult, cwd: Path) -> dict[str, object]:
    """Return a step as one object; long lists are cut."""
    document = _document(tried, cwd)
    left_out: dict[str, int] = {}
    for name, items in document.items():
        if isinstance(items, list) and len(items) > _MOST_ITEMS:
            left_out[name] = len(items) - _MOST_ITEMS
            del items[_MOST_ITEMS:]
    return {**document, "left_out": left_out}


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
        "approved_by": _cut(step.approved_by),
        "reasons": [_cut(reason) for reason in step.reasons],
        "refusals": _objects(step.refusals, "edit", "sentence"),
        "base": {"words": _cut(tried.base.words), "commit": step.base, "tree": step.base_tree},
        "state": {"commit": step.state, "tree": step.state_tree},
        "rounds": step.rounds,
        "order_seed": step.order_seed,
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
