"""The try command: the working tree against the last kept state, and what to do with the change."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping  # noqa: TC003  # read when a step is decoded
from contextlib import suppress
from datetime import datetime, timezone
from enum import Enum
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.plan import is_of_host, is_step, order_of_step
from pytest_ttnn_perf.analysis.ops.roofline import roofline_of_groups
from pytest_ttnn_perf.core.codec import Mark, Omit, Value, decode, decode_format, encode
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import read_json, write_text
from pytest_ttnn_perf.core.finding import ModelKind, RuleOutcome
from pytest_ttnn_perf.core.hardware import Configuration
from pytest_ttnn_perf.core.metric import (
    COUNTED_IN_GRAPHS,
    KERNEL_TIME,
    OF_DEVICE,
    Better,
    Kind,
    Metric,
    median,
    metric_in,
    split_metric,
)
from pytest_ttnn_perf.core.settings import CONFIGURATION_FILES, MIN_ROUNDS
from pytest_ttnn_perf.core.text import counted, microseconds, shortened
from pytest_ttnn_perf.core.verdict import Outcome, Reason
from pytest_ttnn_perf.experiments.ab import Ab, AbResult, ab_sentence, compare_with, interval_text
from pytest_ttnn_perf.experiments.rounds import is_exact
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.machine.git import Repository, States, posix
from pytest_ttnn_perf.machine.host import host_hardware
from pytest_ttnn_perf.plugin.workers import Sessions
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
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.observation import Conditions, Observation
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.experiments.rounds import Compared, InTurns, Turns
    from pytest_ttnn_perf.machine.git import ChangedFile, State
    from pytest_ttnn_perf.report.tables import Block


# A step of optimizing: what was changed, what came of it, and what it can be believed for.

#: The version of the step record's schema that this code writes.
STEP_FORMAT: Final = 1


class Decision(Enum):
    """What to do with a change. NOT_COMPARABLE: both sides were not measured alike."""

    KEEP = "KEEP"
    REVERT = "REVERT"
    CANNOT_TELL = "CANNOT_TELL"
    NOT_COMPARABLE = "NOT_COMPARABLE"


class Edit(Enum):
    """Why two sides are not comparable."""

    TEST = "test edited"
    CONFTEST = "conftest edited"
    CONFIGURATION = "configuration edited"
    BASELINES = "baselines edited"
    TOLERANCE = "tolerance changed"
    LIMIT = "limit changed"
    WAIVER = "waiver changed"
    INPUTS = "inputs changed"
    WARMUP = "warm-up changed"
    ITERATIONS = "iterations changed"
    METRICS = "metric no longer gated"


class Refusal(Struct, frozen=True):
    """One reason why a step is not comparable: what it is called, and what was found where.

    ``edit`` is the text of an ``Edit``: records of before know more of them.
    """

    edit: str
    sentence: str


class Effect(Struct, frozen=True):
    """What a step did to one metric of one test.

    ``change``, ``low`` and ``high`` are fractions as a reader finds them from two values: minus is
    lower. The interval is None where a metric is not compared by ratio. ``target`` and
    ``at_least`` are in the unit of the metric.
    """

    test: str
    metric: str
    unit: str
    better: Better
    kind: Kind
    outcome: str
    before: float | None
    after: float | None
    change: Omit[float | None] = None
    low: Omit[float | None] = None
    high: Omit[float | None] = None
    rounds: Omit[int] = 0
    target: Omit[float | None] = None
    at_least: Omit[float | None] = None

    @property
    def defined(self) -> Metric:
        """The metric itself."""
        return Metric(self.metric, self.unit, self.better, self.kind)

    @property
    def delta(self) -> float | None:
        """How much more there is than before, in the unit of the metric."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


class StepFinding(Struct, frozen=True):
    """A finding of one test; ``saving_ns`` is what no other finding saves already.

    Of those that a step closed, the one that saves most counts whole: what it has in common with
    findings that stay is saved all the same. ``gaps_ns`` of it are gaps between ops.
    """

    test: str
    code: str
    name: str
    saving_ns: Omit[float | None] = None
    fix: Omit[str | None] = None
    region: Omit[str] = ""
    at_most: Omit[bool] = False
    gaps_ns: Omit[float] = 0.0

    @property
    def kernels_ns(self) -> float:
        """What it saves of kernel times."""
        return max(0.0, (self.saving_ns or 0.0) - self.gaps_ns)


class Prediction(Struct, frozen=True):
    """What the findings that a step closed promised, beside what was measured of ``metric``.

    ``at_most``: one of them promised no more than a bound.
    """

    test: str
    codes: tuple[str, ...]
    metric: str
    predicted_ns: float
    measured_ns: float
    at_most: Omit[bool] = False


class Situation(Struct, frozen=True):
    """Where one test stands after a step; None where that is not known.

    ``roofline_ns`` is the least time of its ops on the chip, of ``kernel_ns``.
    """

    test: Annotated[str, Mark.KEY]
    bottleneck: Omit[str | None] = None
    kernel_ns: Omit[float | None] = None
    roofline_ns: Omit[float | None] = None
    by_op: Omit[str | None] = None


class Receipt(Struct, frozen=True):
    """What both sides had in common: files, by the hash of their content.

    ``diff`` is a hash of all that the step changed.
    """

    diff: str
    files: Mapping[str, str] = {}


class Step(Struct, frozen=True):
    """A step. ``base`` and ``state`` are commits that hold both sides, ``*_tree`` their trees.

    ``head`` is what was checked out, and ``reasons`` say why the decision is what it is.
    ``candidates`` are the findings that would save most now.
    """

    id: str
    at: str
    message: str
    decision: Decision
    reasons: tuple[str, ...]
    base: str
    base_tree: str
    state: str
    state_tree: str
    head: str
    rounds: int
    effects: tuple[Effect, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    opened: tuple[StepFinding, ...] = ()
    closed: tuple[StepFinding, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    candidates: tuple[StepFinding, ...] = ()
    situations: Mapping[str, Situation] = {}
    receipt: Omit[Receipt | None] = None

    @property
    def is_kept(self) -> bool:
        """Whether it is part of what later steps are compared with."""
        return self.decision is Decision.KEEP


def encode_step(step: Step) -> dict[str, object]:
    """Encode a step record."""
    return {"format": STEP_FORMAT, **encode(step)}


def decode_step(document: object) -> Step:
    """Decode a step record.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    decode_format(Value(document), current=STEP_FORMAT, what="a step record")
    return decode(Step, document)


# Which state of the project is kept, and the records of the steps that led to it.
#
# What is committed is kept. So is what a step said KEEP of, until something else is committed:
# a user
# may commit each kept step, or none of them.

_FOLDER = "steps"


class Base(Struct, frozen=True):
    """What a step is compared with: a state, in words which one it is, and why no other."""

    name: str
    state: State
    words: str
    note: str | None = None


def read_steps(artifacts: Path) -> list[Step]:
    """Return the recorded steps, oldest first.

    Raises:
        InputError: a record cannot be read.
    """
    files = sorted((artifacts / _FOLDER).glob("*.json"))
    return [read_json(file, decode_step) for file in files]


def write_step(artifacts: Path, step: Step) -> Path:
    """Write a step record; return where.

    Raises:
        WriteError: it cannot be written.
    """
    ignore_folder(artifacts)
    file = artifacts / _FOLDER / f"{step.id}.json"
    write_text(file, text_of_step(step))
    return file


def text_of_step(step: Step) -> str:
    """Return a step record as it is written."""
    return json.dumps(encode_step(step), indent=1) + "\n"


def base_of(
    repository: Repository, states: States, now: State, steps: Sequence[Step], asked: str | None
) -> Base:
    """Return what the working tree is compared with.

    Raises:
        UsageError: nothing has changed since, or there is no such commit.
    """
    head = repository.commit("HEAD")
    if asked is not None:
        commit = repository.commit(asked)
        words = f"{commit.short} {commit.subject}".strip()
        return _other_than(now, Base(asked, states.of(commit.id), words))
    committed = states.of(head.id)
    gone = gone_steps(states, now, steps)
    kept = _last_kept(states, [step for step in steps if step.id not in gone])
    is_committed = committed.tree == now.tree
    if kept is not None and (is_committed or kept.head == head.id):
        state, words = states.of(kept.state), f"kept step {kept.message!r}"
        return _other_than(now, Base("kept", state, words))
    if not is_committed:
        words = f"{head.short} {head.subject}".strip()
        last = next((step.message for step in reversed(steps) if step.id in gone), None)
        note = f"kept step {last!r} is not in this tree" if last is not None else None
        return Base("HEAD", committed, words, note)
    fork = states.merge_base()
    if fork is None:
        message = (
            "nothing to try: the working tree is as committed, and no step was kept before; "
            "change the model, or name what to compare with: --base REF"
        )
        raise UsageError(message)
    commit = repository.commit(fork)
    words = f"{commit.short} {commit.subject}, where the branch begins"
    return _other_than(now, Base("merge base", states.of(fork), words))


def steps_of_branch(folder: Path, steps: Sequence[Step]) -> tuple[list[Step], frozenset[str]]:
    """Return the steps that began at what is checked out, or at something that it follows.

    With them the ids of those that were kept, and discarded since.

    Raises:
        UsageError: the folder is in no repository.
        InputError: git cannot read the working tree.
    """
    if not steps:
        return [], frozenset()
    states = States(Repository.around(folder).root)
    heads = {head: states.descends_from(head) for head in {step.head for step in steps}}
    found = [step for step in steps if heads[step.head]]
    try:
        now = states.now()
    except UsageError:  # untracked files are too large to look at: what is kept counts as kept
        return found, frozenset()
    return found, gone_steps(states, now, found)


def gone_steps(states: States, now: State, steps: Sequence[Step]) -> frozenset[str]:
    """Return the ids of the kept steps that what followed them has nothing of.

    Somebody discarded them, or they are on another branch: the next kept step began without them,
    or the working tree is without them.
    """
    gone = []
    for step in reversed(steps):
        if step.is_kept and states.descends_from(step.head) and states.has(step.state):
            if _is_undone(states, step, now):
                gone.append(step.id)
            else:
                now = states.of(step.base)
    return frozenset(gone)


def _is_undone(states: States, step: Step, now: State) -> bool:
    """Tell whether files that a step changed are as they had been committed before.

    They may have been edited since: then they have none of the lines that are new since that
    commit, and all that are gone since. A later step may have gone on from it in the same lines:
    then those that are gone are not back.
    """
    if now.tree == step.state_tree:
        return False
    committed, after = states.of(step.head), states.of(step.state)
    for file in states.changed_files(states.of(step.base), after):
        found = states.id_of(now, file.path)
        if found == states.id_of(committed, file.path) != file.after:
            continue
        then, later, lines = (
            set(states.text(state, file.path).splitlines()) for state in (committed, after, now)
        )
        added, removed = later - then, then - later
        if found == file.after or not (added or removed) or added & lines or removed - lines:
            return False
    return True


def _last_kept(states: States, steps: Sequence[Step]) -> Step | None:
    """Return the last step of this history that was kept, and whose state git still has.

    Raises:
        UsageError: its record is not as it was written.
    """
    for step in reversed(steps):
        if step.is_kept and states.descends_from(step.head) and states.has(step.state):
            sealed = states.sealed(step.id)
            if sealed is not None and decode_step(json.loads(sealed)) != step:
                message = (
                    f"the record of step {step.message!r} ({step.id}) was edited since it was "
                    "written, so it is not known what was kept; name what to compare with: "
                    "--base HEAD"
                )
                raise UsageError(message)
            return step
    return None


def _other_than(now: State, base: Base) -> Base:
    if base.state.tree == now.tree:
        message = f"nothing to try: the working tree is the same as {base.words}"
        raise UsageError(message)
    return base


# Whether two sides of a step were measured alike.
#
# Files that decide a measurement are compared by their content before anything runs. Limits,
# numbers of calls and shapes of inputs are compared as workers saw them.

_SHARED_FILE: Final = "pyproject.toml"
#: The tables of a shared file that say how tests are run and judged.
_OURS: Final = re.compile(r"\[+tool\.(pytest|ttnn_perf)\b")
_TABLE: Final = re.compile(r"^\[")
#: Keywords of tests that decide what a time means, as they stand in a line.
_DECIDING: Final = re.compile(
    r"\b(tolerance|max_regression|warmup|iterations|pcc|at_least|at_most|waive|sync|clock|setup|"
    r"pipelined|batch)\b"
)
_SHOWN: Final = 60


class Places(Struct, frozen=True):
    """What must not change, as paths from the root of the repository.

    ``tests`` are files and folders of tests, ``baselines`` and ``targets`` what they are compared
    with.
    """

    tests: tuple[str, ...]
    baselines: str | None
    targets: str | None = None


def edited_files(states: States, before: State, after: State, places: Places) -> list[Refusal]:
    """Return the files of a step that decide what is measured, and how it is judged."""
    found = []
    for file in states.changed_files(before, after):
        edit = _kind_of(file, places)
        if edit is Edit.CONFIGURATION and file.path.endswith(_SHARED_FILE):
            texts = {_own_tables(states.text(state, file.path)) for state in (before, after)}
            edit = edit if len(texts) > 1 else None
        if edit is not None:
            found.append(Refusal(edit.value, _where(states, before, after, file)))
    return found


def _kind_of(file: ChangedFile, places: Places) -> Edit | None:
    path = PurePosixPath(file.path)
    if places.baselines is not None and path.is_relative_to(places.baselines):
        return Edit.BASELINES
    if file.path == places.targets or path.name in CONFIGURATION_FILES:
        return Edit.CONFIGURATION
    if path.name == "conftest.py" and any(_applies(path.parent, test) for test in places.tests):
        return Edit.CONFTEST
    return Edit.TEST if file.path in places.tests else None


def _applies(folder: PurePosixPath, test: str) -> bool:
    """Tell whether what a folder says holds for tests in a place."""
    return PurePosixPath(test).is_relative_to(folder) or folder.is_relative_to(test)


def _own_tables(text: str) -> str:
    """Return the parts of a shared configuration file that are about tests."""
    kept, ours = [], False
    for line in text.splitlines():
        if _TABLE.match(line):
            ours = bool(_OURS.match(line))
        if ours and line.strip():
            kept.append(line.strip())
    return "\n".join(kept)


def _where(states: States, before: State, after: State, file: ChangedFile) -> str:
    """Say where a file was changed, and which of the keywords that decide are in its lines."""
    if file.after is None:
        return f"{file.path} was removed"
    if file.before is None:
        return f"{file.path} is new"
    lines = list(states.new_lines(before, after, file.path))
    if not lines:
        return f"{file.path}: lines were removed"
    words = dict.fromkeys(word for line in lines for word in _DECIDING.findall(line.text))
    about = f" ({', '.join(words)})" if words else ""
    telling = next((line for line in lines if _DECIDING.search(line.text)), lines[0])
    return f"{file.path}:{telling.number}{about}: {shortened(telling.text.strip(), _SHOWN)}"


def differing_conditions(test: str, then: Observation, now: Observation) -> Iterator[Refusal]:
    """Yield in what two sides of a test were not measured alike."""
    yield from _limits(test, then, now)
    for metric, conditions in now.conditions.items():
        known = then.conditions.get(metric)
        if known is not None:
            yield from _calls(f"{test} {metric}", known, conditions)


def _limits(test: str, then: Observation, now: Observation) -> Iterator[Refusal]:
    for name, observed in then.metrics.items():
        if not observed.gated:
            continue
        other = now.metrics.get(name)
        if other is None or not other.gated:
            # What a profiler did not tell nobody has taken away, and ops that are gone have no part
            # of the time any more.
            if observed.metric.source not in OF_DEVICE and not observed.metric.totals:
                yield Refusal(Edit.METRICS.value, f"{test} {name}: gated before")
            continue
        for edit, limit in (
            (Edit.TOLERANCE, "tolerance"),
            (Edit.TOLERANCE, "max_regression"),
            (Edit.LIMIT, "at_least"),
            (Edit.LIMIT, "at_most"),
        ):
            was, is_now = (getattr(one.limits, limit) for one in (observed, other))
            if was != is_now:
                sentence = f"{test} {name}: {limit} {_shown(was)}, now {_shown(is_now)}"
                yield Refusal(edit.value, sentence)
    if then.waived != now.waived:
        codes = sorted(then.waived.keys() ^ now.waived.keys()) or sorted(now.waived)
        yield Refusal(Edit.WAIVER.value, f"{test}: {', '.join(codes)}")


def _calls(where: str, then: Conditions, now: Conditions) -> Iterator[Refusal]:
    for edit, was, is_now in (
        (Edit.WARMUP, then.warmup, now.warmup),
        (Edit.ITERATIONS, then.iterations, now.iterations),
        (Edit.ITERATIONS, then.depth, now.depth),
        (Edit.INPUTS, ", ".join(then.inputs), ", ".join(now.inputs)),
    ):
        if was != is_now:
            yield Refusal(edit.value, f"{where}: {_shown(was)}, now {_shown(is_now)}")


def hash_of(*parts: object) -> str:
    """Return a short hash of some values."""
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _shown(value: object) -> str:
    return "none" if value in {None, ""} else shortened(str(value), _SHOWN)


# What rounds of two states say of a change: keep it, revert it, or more must be known.
#
# KEEP: a time or a throughput got better by more than the gate's floor (2 %, or the test's own
# tolerance), the interval of which lies wholly on the better side; nothing that is gated got worse;
# every accuracy is at or above its limit; nothing is open. REVERT: something got worse, or a gain
# worth keeping is ruled out. CANNOT_TELL: anything else, as on a simulated device without times.

_UNKNOWN: Final = frozenset({Outcome.TOO_NOISY, Outcome.NO_DATA, Outcome.NOT_COMPARABLE})
_ANSWERED: Final = frozenset({RuleOutcome.CLEAN, RuleOutcome.NOT_APPLICABLE})
CANDIDATES: Final = 3
#: What an accuracy is called that fell, and is still at or above its limit.
HOLDS: Final = "HOLDS"


class Sides(Struct, frozen=True):
    """What both sides of a step measured, and what was seen meanwhile."""

    result: AbResult
    before: Sessions
    after: Sessions

    def first(self, side: Sessions) -> Mapping[str, Observation]:
        """Return what the first round of a side observed: it is the one with a checklist."""
        return {test: seen[0] for test, seen in side.good().items()}

    def both(self) -> Iterator[tuple[str, Observation, Observation]]:
        """Yield the tests that both sides have."""
        then, now = self.first(self.before), self.first(self.after)
        yield from ((test, then[test], now[test]) for test in now if test in then)

    @property
    def exact(self) -> tuple[str, ...]:
        """The tests of which one round says all, but for their times, which are not judged."""
        return tuple(test for test, then, now in self.both() if is_exact([then], [now]))


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
    worse = [compared for compared in result.compared if is_worse(compared)]
    if failed or worse:
        return Decision.REVERT, [*failed, *(_sentence(compared, result) for compared in worse)]
    open_questions = [*_open_questions(sides)]
    if open_questions:
        return Decision.CANNOT_TELL, open_questions
    better = [compared for compared in result.compared if is_better(compared)]
    if better:
        return Decision.KEEP, [_sentence(compared, result) for compared in better]
    if sides.exact:
        return Decision.CANNOT_TELL, [_no_times(sides)]
    return Decision.REVERT, [_no_gain(result)]


def is_worse(compared: Compared) -> bool:
    """Tell whether a metric got worse: an accuracy with a limit is judged by that alone."""
    if compared.is_undecided or compared.outcome is not Outcome.REGRESSED:
        return False
    return not holds_its_limit(compared)


def holds_its_limit(compared: Compared) -> bool:
    """Tell whether a metric is an accuracy with a limit of its own, and no worse than that."""
    verdict, limits = compared.verdict, compared.limits
    if verdict.metric.kind is not Kind.ACCURACY or verdict.observed is None:
        return False
    if verdict.metric.better is Better.HIGHER:
        return limits.at_least is not None and verdict.observed >= limits.at_least
    return limits.at_most is not None and verdict.observed <= limits.at_most


def is_better(compared: Compared) -> bool:
    """Tell whether a time or a throughput got better beyond doubt, and by enough."""
    high = compared.paired.high
    return compared.outcome is Outcome.IMPROVED and high is not None and high < 0


def _open_questions(sides: Sides) -> Iterator[str]:
    result = sides.result
    least = 1 if sides.exact and len(sides.exact) == len([*sides.both()]) else MIN_ROUNDS
    if result.whole < least:
        stopped = f"{result.stopped}: " if result.stopped is not None else ""
        yield f"{stopped}rounds that are complete: {result.whole}; it takes {least} to judge"
    elif result.stopped is not None:
        yield result.stopped
    for test, why in sides.before.troubles.items():
        yield f"{test} failed before the change: {why}"
    for test in result.only_before:
        yield f"{test} is not measured any more"
    names = _names(result)
    for compared in result.compared:
        unknown = compared.outcome in _UNKNOWN and not holds_its_limit(compared)
        if compared.is_undecided or (unknown and not _only_explains(compared, names)):
            yield _sentence(compared, result)
    if not result.compared and result.whole >= least:
        yield "no metric could be compared"


def _sentence(compared: Compared, result: AbResult) -> str:
    """Say what is known of one metric: where it is judged by its rounds, with its interval."""
    verdict = compared.verdict
    if compared.is_undecided or compared.paired.low is None:
        return f"{compared.test}: {ab_sentence(compared, result.ref)}"
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    return (
        f"{compared.test} {verdict.metric.name}: {format_value(verdict.metric, verdict.centre)} "
        f"→ {now}, {format_change(verdict.change_as_read)} ({interval_text(compared)})"
    )


def _no_times(sides: Sides) -> str:
    """Say what a simulated device tells of a change: what it counts, and what was found in it."""
    compared = [each for each in sides.result.compared if each.test in sides.exact]
    told = [
        f"memory {format_change(each.verdict.change_as_read)} ({each.verdict.metric.name})"
        for each in compared
        if each.verdict.metric.kind is Kind.BYTES and each.outcome is Outcome.IMPROVED
    ]
    for each in compared:
        then, now = each.verdict.centre, each.verdict.observed
        is_ops = split_metric(each.verdict.metric.name)[0] in COUNTED_IN_GRAPHS
        if is_ops and then is not None and now is not None and now < then:
            told.append(f"{counted(round(then - now), 'op')} fewer")
    told += [f"{finding.code} closed" for finding in finding_changes(sides)[1]]
    told = list(dict.fromkeys(told)) or ["nothing that is counted got better"]
    return f"no times here: {', '.join(told)}; measure on hardware"


def _no_gain(result: AbResult) -> str:
    timed = [c for c in result.compared if c.paired.low is not None]
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


def effects_of(result: AbResult) -> tuple[Effect, ...]:
    """Return what a step did to each metric that is gated, but for parts that only explain one."""
    names = _names(result)
    return tuple(
        _try_verdict_effect(each) for each in result.compared if not _only_explains(each, names)
    )


def _names(result: AbResult) -> set[tuple[str, str]]:
    return {(each.test, each.verdict.metric.name) for each in result.compared}


def _only_explains(compared: Compared, names: set[tuple[str, str]]) -> bool:
    """Tell whether a metric is part of another, and has nothing to say beside that.

    A part that only one side has is of ops that came or went.
    """
    verdict = compared.verdict
    is_part = any((compared.test, total) in names for total in verdict.metric.totals)
    came_or_went = verdict.reason in {Reason.NEW_METRIC, Reason.NOT_RECORDED}
    quiet = compared.outcome is Outcome.WITHIN or came_or_went
    return verdict.reason is Reason.EXPLAINS or (is_part and quiet)


def _try_verdict_effect(compared: Compared) -> Effect:
    verdict, paired = compared.verdict, compared.paired
    metric, limits = verdict.metric, compared.limits
    ends = [end for end in map(metric.as_read, (paired.low, paired.high)) if end is not None]
    low, high = sorted(ends) if len(ends) == 2 else (None, None)
    return Effect(
        compared.test,
        metric.name,
        metric.unit,
        metric.better,
        metric.kind,
        HOLDS
        if compared.outcome is Outcome.REGRESSED and not is_worse(compared)
        else compared.word,
        verdict.centre,
        verdict.observed,
        verdict.change_as_read,
        low,
        high,
        compared.rounds,
        limits.target,
        limits.at_least,
    )


def finding_changes(sides: Sides) -> tuple[tuple[StepFinding, ...], tuple[StepFinding, ...]]:
    """Return the findings that a step opened, and those that it closed.

    One whose rule has no answer any more is not closed: nobody could tell.
    """
    opened: list[StepFinding] = []
    closed: list[StepFinding] = []
    for test, then, now in sides.both():
        before, after = _standing(then), _standing(now)
        opened += [_told(test, finding) for key, finding in after.items() if key not in before]
        gone = [finding for key, finding in before.items() if key not in after]
        closed += _told_closed(test, [one for one in gone if _is_answered(one, now)])
    return tuple(opened), tuple(closed)


def _told_closed(test: str, findings: Sequence[Finding]) -> Iterator[StepFinding]:
    """Yield closed findings; the largest of a region with all that it would save alone."""
    largest: dict[str, Finding] = {}
    for finding in findings:
        known = largest.get(finding.region)
        if known is None or (finding.saving_ns or 0.0) > (known.saving_ns or 0.0):
            largest[finding.region] = finding
    for finding in findings:
        told = _told(test, finding)
        whole = finding is largest[finding.region]
        yield replace(told, saving_ns=finding.saving_ns) if whole else told


def _standing(observation: Observation) -> dict[tuple[str, str], Finding]:
    found = (finding for finding in observation.findings if finding.stands)
    return {(finding.code, finding.region): finding for finding in found}


def _is_answered(finding: Finding, now: Observation) -> bool:
    outcome = now.outcomes.get(finding.code)
    return outcome in _ANSWERED or outcome is RuleOutcome.FOUND


def _told(test: str, finding: Finding) -> StepFinding:
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
    """Return what closed findings promised beside what was measured, by test and metric.

    What promises less waiting shows in the time that users wait for, and not in that of kernels.
    Where kernels were timed, it is what was promised of them: gaps between ops are not in that.
    Regions that show in one time are one prediction.
    """
    known = {(effect.test, effect.metric): effect for effect in effects}
    groups: dict[tuple[str, str], list[StepFinding]] = {}
    for finding in closed:
        if finding.saving_ns:
            groups.setdefault((finding.test, finding.region), []).append(finding)
    found: dict[tuple[str, str], Prediction] = {}
    for (test, region), findings in groups.items():
        kernels = known.get((test, metric_in(region, KERNEL_TIME)))
        waiting = any(is_of_host(finding.code) for finding in findings)
        promised = {finding.code: finding.kernels_ns for finding in findings if finding.kernels_ns}
        effect = kernels
        if waiting or kernels is None or not promised:
            promised = {finding.code: finding.saving_ns or 0.0 for finding in findings}
            effect = main_time(test, effects)
            effect = None if effect == kernels else effect
        if effect is not None and effect.delta is not None and effect.unit == "ns":
            predicted = sum(promised.values())
            bound = any(finding.at_most for finding in findings if finding.code in promised)
            one = Prediction(
                test, tuple(promised), effect.metric, predicted, -effect.delta, at_most=bound
            )
            other = found.get((test, effect.metric))
            found[test, effect.metric] = one if other is None else _joined(other, one)
    return tuple(found.values())


def _joined(one: Prediction, other: Prediction) -> Prediction:
    """Return two predictions of one time as one."""
    return replace(
        one,
        codes=tuple(dict.fromkeys((*one.codes, *other.codes))),
        predicted_ns=one.predicted_ns + other.predicted_ns,
        at_most=one.at_most or other.at_most,
    )


#: The times of a test, the one that its users wait for first.
_MAIN: Final = ("wall_time", "throughput_time", "sim_time", "sim_throughput_time", "call_time")


def main_time(test: str, effects: Sequence[Effect]) -> Effect | None:
    """Return what a step did to the time of a test that matters most; None without any."""
    own = [each for each in effects if each.test == test and each.kind is Kind.TIME]
    ranked = sorted(own, key=lambda e: _MAIN.index(e.metric) if e.metric in _MAIN else len(_MAIN))
    return ranked[0] if ranked else None


def slower_bases(step: Step, known: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Say of which gains half or more is that the base is slower than it was known to be.

    The machine may be, or something was done to it: the comparison is right, and the gain none.
    """
    if step.decision is not Decision.KEEP:
        return
    for effect in step.effects:
        then, gain = known.get((effect.test, effect.metric)), -(effect.delta or 0.0)
        if effect.kind is not Kind.TIME or then is None or effect.before is None or gain <= 0:
            continue
        if effect.before - then >= gain / 2:
            now, was = (format_value(effect.defined, value) for value in (effect.before, then))
            yield (
                f"{effect.test} {effect.metric}: without the change it takes {now}, and {was} when "
                "that was recorded: at least half of the gain is that"
            )


def candidates_of(sides: Sides) -> tuple[StepFinding, ...]:
    """Return the findings that would save most of what is left, in the order of a plan."""
    found = []
    for test, observation in sides.first(sides.after).items():
        for finding in filter(is_step, observation.findings):
            order = order_of_step(finding, waits=_waits(observation))
            found.append((order, test, _told(test, finding)))
    found.sort(key=lambda each: each[:2])
    return tuple(told for _, _, told in found[:CANDIDATES])


def _waits(observation: Observation) -> bool:
    """Tell whether the host holds a test up, so that faster kernels change nothing."""
    return observation.model_kind == ModelKind.HOST_BOUND.value


def situations_of(sides: Sides) -> dict[str, Situation]:
    """Return where each test stands after the step."""
    by_op = {each.test: each.by_op for each in sides.result.compared if each.by_op}
    return {
        test: _situation(test, observation, by_op.get(test))
        for test, observation in sides.first(sides.after).items()
    }


def _situation(test: str, observation: Observation, by_op: str | None) -> Situation:
    hardware, found = observation.hardware, None
    if observation.ops is not None and hardware is not None and not hardware.simulated:
        found = roofline_of_groups(observation.ops, hardware.arch)
    return Situation(
        test,
        observation.bottleneck,
        found.kernel_ns if found else None,
        found.least_ns if found else None,
        by_op,
    )


# A step, laid out: for people, and as one object of a size that any reader can take.

#: The most that the object of a step takes, as it is printed.
MOST_BYTES: Final = 8_000
#: A sentence of the object is cut to this: where texts are long, their ends tell as well.
_LONGEST: Final = 240
_MOST_ITEMS: Final = 12
#: Files that a command names; of more, only their number is told.
_MOST_FILES: Final = 5
_SHORT: Final = 12


def try_lines(tried: Tried, cwd: Path) -> Iterator[Block]:
    """Yield what people read of a step."""
    step = tried.step
    good, bad = step.decision is Decision.KEEP, step.decision is Decision.REVERT
    yield Line(f"{step.decision.value}: {step.message}", good=good, bad=bad)
    if step.refusals:
        yield from (f"  {each.edit}: {each.sentence}" for each in step.refusals)
        yield from (f"  {line}" for line in _way_out(tried))
    else:
        yield from (f"  {reason}" for reason in step.reasons)
    rounds = counted(step.rounds, "round") if step.rounds else "not measured"
    yield f"compared with {tried.base.words} ({rounds})"
    more = [*_causes(step), *_findings(step), *tried.remarks]
    for part in (effect_columns().table(step.effects), more):
        if part:
            yield ""
            yield from part
    yield ""
    yield from (f"{what}: {command}" for what, command in commands(tried, cwd).items())
    yield f"step record: {shown_path(tried.file, cwd)}"


def _way_out(tried: Tried) -> Iterator[str]:
    """Say what to do with a step that is refused."""
    yield "commit such a change by itself: steps are then compared with what is committed"
    if tried.is_committed:
        yield "if that is done, name the commit to compare with: --base REF"


def _causes(step: Step) -> Iterator[str]:
    for test, situation in step.situations.items():
        if situation.by_op is not None:
            yield f"by op, {test}: {situation.by_op}"


def _findings(step: Step) -> Iterator[str]:
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
    saving = ""
    if finding.saving_ns:
        most = "at most " if finding.at_most else ""
        saving = f", {most}{microseconds(finding.saving_ns)}"
    return f"{finding.code} {finding.name}{region} ({finding.test}{saving})"


def _interval(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return "-"
    return f"{format_change(effect.low)} to {format_change(effect.high)}"


def effect_columns() -> Columns[Effect]:
    """Return the columns of what a step did to each metric."""
    return Columns(
        id_column(lambda e: e.test),
        Column("metric", lambda e: e.metric, "metric", fit=METRIC),
        Column("unit", lambda e: e.unit),
        Column("before", lambda e: e.before, "before",
               lambda e: format_value(e.defined, e.before), right=True, fit=Fit(drop=2)),
        Column("after", lambda e: e.after, "after",
               lambda e: format_value(e.defined, e.after, beside=e.before), right=True),
        Column("change", lambda e: e.change if e.low is not None else None, "change",
               lambda e: format_change(e.change) if e.low is not None else "-", right=True),
        Column("low", lambda e: e.low, "interval", _interval, right=True, fit=DROPPED[1]),
        Column("high", lambda e: e.high),
        Column("outcome", lambda e: e.outcome, "verdict"),
    )  # fmt: skip


def commands(tried: Tried, cwd: Path) -> dict[str, str]:
    """Return what the user may do next; nothing of it is done for them."""
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


def _revert(tried: Tried, cwd: Path, new: Sequence[str], changed: Sequence[str]) -> str:
    """Return what undoes the change, and touches no other file; by name, if there are few."""
    base, state = tried.base.state.commit[:_SHORT], tried.step.state[:_SHORT]
    if len(new) + len(changed) > _MOST_FILES:
        top = os.path.relpath(tried.root, cwd)
        undo = command_line("git", *([] if top == "." else ["-C", top]), "apply", "-R")
        return f"{command_line('git', 'diff-tree', '-p', '--binary', base, state)} | {undo}"
    restored = command_line("git", "restore", f"--source={base}", "--", *changed)
    removed = command_line("rm", "-f", "--", *new)
    return " && ".join([*([restored] if changed else []), *([removed] if new else [])])


def try_document(tried: Tried, cwd: Path) -> dict[str, object]:
    """Return a step as one object of at most ``MOST_BYTES``: the least telling is left out."""
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


def _document(tried: Tried, cwd: Path) -> dict[str, object]:
    step = tried.step
    timed = [effect for effect in step.effects if effect.kind is not Kind.ACCURACY]
    accuracies = [effect for effect in step.effects if effect.kind is Kind.ACCURACY]
    timed.sort(key=lambda effect: _weight(effect, step.effects))
    return {
        "format": STEP_FORMAT,
        "decision": step.decision.value,
        "message": _cut(step.message),
        "reasons": [_cut(reason) for reason in step.reasons],
        "refusals": [
            {"edit": each.edit, "sentence": _cut(each.sentence)} for each in step.refusals
        ],
        "base": {"words": _cut(tried.base.words), "commit": step.base, "tree": step.base_tree},
        "state": {"commit": step.state, "tree": step.state_tree},
        "rounds": step.rounds,
        "effects": [_effect(effect) for effect in timed],
        "accuracies": [_accuracy(effect) for effect in accuracies],
        "ops": [
            {"test": _cut(test), "sentence": _cut(situation.by_op)}
            for test, situation in step.situations.items()
            if situation.by_op is not None
        ],
        "closed": [_finding(finding) for finding in step.closed],
        "opened": [_finding(finding) for finding in step.opened],
        "predictions": [_prediction(each) for each in step.predictions],
        "candidates": [_finding(finding) for finding in step.candidates],
        "situations": [
            {
                "test": _cut(test),
                "bottleneck": _cut(situation.bottleneck) if situation.bottleneck else None,
                "kernel_ns": situation.kernel_ns,
                "roofline_ns": situation.roofline_ns,
            }
            for test, situation in step.situations.items()
        ],
        "remarks": [_cut(remark) for remark in tried.remarks],
        "commands": {what: _cut(command) for what, command in commands(tried, cwd).items()},
        "record": _cut(shown_path(tried.file, cwd)),
    }


def _weight(effect: Effect, effects: Sequence[Effect]) -> tuple[bool, float]:
    """Return the order of effects: the main time of each test first, then what changed most."""
    is_main = main_time(effect.test, effects) == effect
    return not is_main, -abs(effect.change or 0.0)


def _effect(effect: Effect) -> dict[str, object]:
    return {
        "test": _cut(effect.test),
        "metric": _cut(effect.metric),
        "unit": _cut(effect.unit),
        "before": effect.before,
        "after": effect.after,
        "change": effect.change,
        "low": effect.low,
        "high": effect.high,
        "outcome": effect.outcome,
        "target": effect.target,
    }


def _accuracy(effect: Effect) -> dict[str, object]:
    return {
        "test": _cut(effect.test),
        "metric": _cut(effect.metric),
        "before": effect.before,
        "after": effect.after,
        "at_least": effect.at_least,
        "outcome": effect.outcome,
    }


def _prediction(prediction: Prediction) -> dict[str, object]:
    return {
        "test": _cut(prediction.test),
        "codes": list(prediction.codes[:_MOST_ITEMS]),
        "metric": _cut(prediction.metric),
        "predicted_ns": prediction.predicted_ns,
        "measured_ns": prediction.measured_ns,
        "at_most": prediction.at_most,
    }


def _finding(finding: StepFinding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": _cut(finding.name),
        "test": _cut(finding.test),
        "region": _cut(finding.region),
        "saving_ns": finding.saving_ns,
        "at_most": finding.at_most,
        "fix": _cut(finding.fix) if finding.fix else None,
    }


def _cut(text: str) -> str:
    return shortened(text, _LONGEST)


#: Settings of a device or a compiler that a change may be about. Another one is another workload.
TUNED: Final = frozenset({
    "num_command_queues", "trace_region_size", "l1_small_size", "worker_l1_size", "use_trace",
    "all_transfers_on_separate_command_queue", "optimization_level", "enable_trace",
    "enable_bfp8_conversion",
})  # fmt: skip


class Try(Struct, frozen=True):
    """What is asked for: a message, pytest's arguments, the most rounds, what both sides share.

    ``base`` is a commit to compare with; None for the last kept state.
    """

    message: str
    argv: Sequence[str]
    rounds: int
    cwd: Path
    shared: tuple[str, ...] = ()
    base: str | None = None


class Tried(Struct, frozen=True):
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
