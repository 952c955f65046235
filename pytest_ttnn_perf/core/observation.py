"""Observations of tests, their verdicts, and the record of a run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import partial
from math import exp, log
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import (
    LARGEST,
    Coding,
    Mark,
    Omit,
    Value,
    decode,
    decode_format,
    decode_known,
    encode,
)
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.core.finding import Finding, Role, RuleOutcome, UnansweredRules
from pytest_ttnn_perf.core.hardware import (
    Environment,
    Hardware,
    Scalar,
)
from pytest_ttnn_perf.core.metric import Better, Metric, Source, representative

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.core.ops import OpGroups, OpTable
else:
    OpGroups = object  # most runs have no table of ops: its records are made with the first one


def _read_ops(value: Value) -> OpGroups:
    from pytest_ttnn_perf.core.ops import decode_groups

    return decode_groups(value)


def _write_ops(ops: OpGroups) -> dict[str, object]:
    from pytest_ttnn_perf.core.ops import encode_groups

    return encode_groups(ops)


#: The fact that names variables of tt-xla that were set after its import.
SET_LATE: Final = "set_after_import"
#: Why a time by the clock is not gated there.
NOT_TIMED: Final = "nothing is timed on a simulated device"


class Outcome(Enum):
    """The gate's answer. Only WITHIN and IMPROVED are good news.

    SHIFTED: beyond its limit, but no further than the machine as a whole; it fails the run.
    """

    WITHIN = "WITHIN"
    REGRESSED = "REGRESSED"
    SHIFTED = "SHIFTED"
    IMPROVED = "IMPROVED"
    NO_BASELINE = "NO_BASELINE"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    TOO_NOISY = "TOO_NOISY"
    NO_DATA = "NO_DATA"


#: Needs no sentence: as before, or what the machine did to all tests, which is said once.
QUIET: Final = frozenset({Outcome.WITHIN, Outcome.SHIFTED})
#: There is nothing to compare with.
WITHOUT_BASELINE: Final = frozenset({Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE})


class Reason(Enum):
    """The reason of an outcome, beyond a comparison of numbers."""

    ABSOLUTE_LIMIT = "absolute limit"
    VALUE_CHANGED = "value changed"
    SAMPLES_DIFFER = "samples differ"
    NO_SAMPLES = "no samples"
    NOT_FINITE = "not finite"
    NOT_POSITIVE = "not positive"
    NOT_RECORDED = "not recorded"
    NOTHING_RECORDED = "nothing recorded"
    NOTHING_GATED = "nothing gated"
    NOTHING_TIMED = "nothing timed"
    RAISED = "raised"
    OUT_OF_MEMORY = "out of memory"
    NOT_CONFIRMED = "not confirmed"
    LOST = "lost"
    SHIFTED = "environment shifted"
    GONE = "gone"
    EXPLAINS = "explains"
    OPS_CHANGED = "ops changed"
    NEW_TEST = "new test"
    NEW_METRIC = "new metric"
    OTHER_KEY = "other key"
    OTHER_CONFIGURATION = "other configuration"
    OTHER_SOURCE = "other source"
    OTHER_DEFINITION = "other definition"
    UNDECIDED = "undecided"


class Verdict(Struct, frozen=True):
    """One metric's verdict, complete enough to build its sentence from.

    ``change`` and ``limit`` are fractions, positive is worse (0.05 = 5 % worse), None where nothing
    was compared. ``observed`` and ``centre`` are in the metric's unit; ``confirmed`` are the
    medians of the confirm passes. ``detail`` completes ``reason`` (the keys that exist, the field
    that differs); without one it names the ops of a changed number. ``provisional``: the baseline
    has too few ``runs`` to show how much they differ. ``bound`` is the absolute limit that was
    broken. ``machine`` is how much worse the controls of the confirm passes were, which ``change``
    is without; None if unknown. ``worst`` is the worst of the sessions that ``centre`` is of, for
    accuracies; None where it is the centre. ``undecided``: within its limit, but so near that one
    more measurement might decide.
    """

    metric: Annotated[Metric, Mark.INLINE]
    outcome: Outcome
    reason: Reason | None = None
    detail: str | None = None
    observed: float | None = None
    centre: float | None = None
    change: float | None = None
    limit: float | None = None
    provisional: bool = False
    samples: int = 0
    sessions: int = 0
    confirmed: tuple[float, ...] = ()
    bound: float | None = None
    runs: Omit[int] = 0
    machine: Omit[float | None] = None
    worst: Omit[float | None] = None
    undecided: Omit[bool] = False

    @property
    def is_of_changed_time(self) -> bool:
        changed = self.outcome in {Outcome.REGRESSED, Outcome.IMPROVED}
        return changed and self.metric.compared_by_ratio

    @property
    def is_of_changed_ops(self) -> bool:
        changed = self.outcome in {Outcome.REGRESSED, Outcome.IMPROVED} and self.reason is None
        return changed and self.metric.counts_ops

    @property
    def worst_allowed(self) -> float | None:
        if self.bound is not None:
            return self.bound
        centre, limit = self.centre, self.limit
        if centre is None or limit is None:
            return None
        lower = self.metric.better is Better.LOWER
        if self.metric.compared_by_ratio:
            return centre * (1 + limit) if lower else centre / (1 + limit)
        return centre + abs(centre) * (limit if lower else -limit)

    @property
    def change_as_read(self) -> float | None:
        return self.metric.as_read(self.change)

    @property
    def limit_as_read(self) -> float | None:
        """``limit`` in the same terms, without a sign.

        That of a gain is on the other side of the baseline.
        """
        limit = self.limit
        if limit is None or not self.metric.compared_by_ratio:
            return limit
        gained = self.outcome is Outcome.IMPROVED
        read = self.metric.as_read(1 / (1 + limit) - 1 if gained else limit)
        return None if read is None else abs(read)


class Shift(Struct, frozen=True):
    """A move of most times of one source together.

    ``change`` is their median change, as a fraction; positive is worse. ``moved`` of the ``voting``
    tests did. ``differences`` are changes since the baselines were accepted.
    """

    change: float
    moved: int
    voting: int
    differences: tuple[str, ...] = ()
    source: Omit[Source] = Source.WALL

    @property
    def worse(self) -> bool:
        return self.change > 0


#: The version of the run record's schema that this code writes.
RUN_FORMAT: Final = 1


class Limits(Struct, frozen=True):
    """Limits of a test's author for one metric; None for the default.

    ``tolerance`` and ``max_regression`` are fractions (0.05 = 5 %); for accuracy, ``tolerance`` is
    the largest drop in the metric's own unit. The others are in the metric's unit. ``alone``: it is
    judged also where it explains a time that is judged.
    """

    tolerance: Omit[float | None] = None
    max_regression: Omit[float | None] = None
    at_least: Omit[float | None] = None
    at_most: Omit[float | None] = None
    target: Omit[float | None] = None
    alone: Omit[bool] = False


_FAILING: Final = frozenset({Outcome.REGRESSED, Outcome.NO_DATA})
#: Of two answers to one question the one that knows more comes last: what was found was found.
TELLS: Final = (
    RuleOutcome.NOT_MEASURED,
    RuleOutcome.NOT_APPLICABLE,
    RuleOutcome.CLEAN,
    RuleOutcome.FOUND,
)
#: What a test that says nothing asks for.
NO_LIMITS: Final = Limits()
_NUMBER: Final = frozenset({int, float})


def _read_samples(value: Value) -> tuple[float, ...]:
    raw = value.raw
    # Most samples are numbers, and there are many: look closer only where one is not.
    if not isinstance(raw, list) or not set(map(type, raw)) <= _NUMBER:
        return tuple(item.sample() for item in value.array())
    if raw and not -LARGEST <= min(raw) <= max(raw) <= LARGEST:
        return tuple(item.sample() for item in value.array())
    return tuple(raw)


def _write_samples(samples: Iterable[float]) -> list[float | None]:
    return [sample if -LARGEST <= sample <= LARGEST else None for sample in samples]


#: Numbers in the order in which they were taken; null stands for one that is not finite.
Samples = Annotated[tuple[float, ...], Coding(_read_samples, _write_samples)]


def _read_moves(value: Value) -> tuple[float | None, ...]:
    for move in value.array():
        if move.raw is not None and move.number() <= -1:
            raise move.refusal("a change above -1")
    return tuple(value.raw)  # type: ignore[arg-type]


class MetricObservation(Struct, frozen=True):
    """The samples of one metric, in order; NaN stands for "not finite".

    ``machine`` is, once there are ``confirmations``, how much worse tests that were not suspect
    were in the first pass and in each confirm pass than their baselines say (0.05 = 5 %); None
    where unknown. ``capture`` names, by its content, the file that samples were read from, if it
    was there before the test: they are the same however often it is read. ``why_ungated`` is set
    for a metric that is recorded only. ``rounds`` is what rounds against the commit of the baseline
    found; its ``detail`` says how many, and the interval.
    """

    metric: Annotated[Metric, Mark.INLINE]
    samples: Samples
    confirmations: tuple[Samples, ...] = ()
    machine: Annotated[tuple[float | None, ...], Mark.OMIT, Coding(_read_moves, list)] = ()
    warmup: Omit[Samples] = ()
    limits: Annotated[Limits, Mark.INLINE] = NO_LIMITS
    gated: Omit[bool] = True
    note: Omit[str | None] = None
    capture: Omit[str | None] = None
    why_ungated: Omit[str | None] = None
    rounds: Omit[Verdict | None] = None

    @property
    def value(self) -> float | None:
        """The mean of confirm passes, else what was measured at first.

        None without finite samples. What is printed is ``value_of``, which knows the verdict.
        """
        least = 0.0 if self.metric.compared_by_ratio else -LARGEST
        usable = [
            representative(self.metric, samples)
            for samples in (self.samples, *self.confirmations)
            if samples and all(-LARGEST <= each <= LARGEST for each in samples)
        ]
        again = [value for value in usable[1:] if value > least]
        if again and self.metric.compared_by_ratio:
            return exp(sum(map(log, again)) / len(again))
        return usable[-1] if usable else None


def value_of(observed: MetricObservation | None, verdict: Verdict | None) -> float | None:
    """Return the value of a metric that everything prints.

    Measured once, it is what was measured, whatever the machine excuses. Measured again, it is that
    of the verdict: the mean of the confirm passes; if one of them cleared the test, what that one
    measured, though no further on the other side than the limit; and of a new baseline what is
    stored, the median of all. Of rounds it is the later version's. Without a verdict it is the
    mean of the confirm passes.
    """
    if verdict is not None and verdict.observed is not None:
        # Of what was measured once, the samples say it, should a record have been edited.
        once = verdict.metric.compared_by_ratio and not verdict.confirmed
        if observed is None or observed.confirmations or observed.rounds or not once:
            return verdict.observed
    return observed.value if observed is not None else None


class Requester(Enum):
    """The origin of a request to gate a test."""

    TEST = "test"
    PROJECT = "project"


#: The file of a test, as in ids, and its line.
Location = tuple[str, int | None]


def _read_location(value: Value) -> Location:
    line = value.optional("line")
    return value.field("file").string(), None if line is None else line.integer(at_least=1)


def _write_location(location: Location) -> dict[str, object]:
    file, line = location
    return {"file": file} if line is None else {"file": file, "line": line}


class SweepPoint(Struct, frozen=True):
    """A point of a sweep; all points share the id ``sweep``.

    ``require`` are the requirements for the best point, by metric: a number in the metric's unit,
    or a text such as "10 ms".
    """

    sweep: str
    axes: Mapping[str, Scalar]
    require: Omit[Mapping[str, Scalar]] = {}


class EndKind(Enum):
    """Ends of a test that did not go well, by their members.

    RAISED: its body did not reach the end. LOST: its process sent no result. OUT_OF_MEMORY: a point
    of a sweep without room, which is a result and no error. UNCONFIRMED: it could not be measured
    again.
    """

    LOST = "lost"
    OUT_OF_MEMORY = "out_of_memory"
    RAISED = "raised"
    UNCONFIRMED = "unconfirmed"


_ENDS: Final = {
    EndKind.LOST: "its worker",
    EndKind.OUT_OF_MEMORY: "it ran out of memory:",
    EndKind.RAISED: "the test raised",
    EndKind.UNCONFIRMED: "it could not be confirmed:",
}
#: Enough for the kernel that did not compile, and the first thing that its compiler says.
_LONGEST_ERROR: Final = 300


class End(Struct, frozen=True):
    """The end of a test that did not go well."""

    kind: EndKind
    text: str

    @property
    def brief(self) -> str:
        """The beginning of the text, which may be a compiler's log."""
        text = self.text
        return text if len(text) <= _LONGEST_ERROR else text[: _LONGEST_ERROR - 1] + "…"

    def __str__(self) -> str:
        return f"{_ENDS[self.kind]} {self.brief}"


def _read_ended(value: Value) -> End | None:
    for kind in EndKind:
        text = value.optional(kind.value)
        if text is not None:
            return End(kind, text.string())
    return None


def _write_ended(ended: End) -> dict[str, str]:
    return {ended.kind.value: ended.text}


class Observation(Struct, frozen=True):
    """The results of one test in one process.

    ``test`` is its name in files; ``node_id`` pytest's id, if that differs. ``problems`` are
    mistakes in how the test uses the plugin; each fails the test. ``findings`` are of the rules
    that have an answer. ``environment`` was true of the device meanwhile; it is never compared.
    ``dropped``: a profiler ran out of room, and one with more may not. Metrics of the sources in
    ``left_out`` are not missed. ``bottleneck`` and ``model_kind`` describe the model, where known;
    ``has_kernels``: it has output of tt-lang kernels. ``asked`` is None for a test that was taken
    in with all others. ``profiles_itself``: it starts a profiled process of its own. ``attached``
    are its captures, from the folder that it ran in, as far as they are below that. ``conditions``
    are recorded on request: of each metric ``warmup``, ``iterations``, ``depth`` and the shapes of
    ``inputs``. ``host`` says which calls make its wall time slower.
    """

    # In the order of the file.
    test: Annotated[str, Mark.KEY]
    metrics: Annotated[Mapping[str, MetricObservation], Mark.REQUIRED] = {}
    configuration: Mapping[str, Scalar] = {}
    facts: Mapping[str, Scalar] = {}
    ops: Annotated[OpGroups | None, Coding(_read_ops, _write_ops)] = None
    waived: Mapping[str, str] = {}
    findings: tuple[Finding, ...] = ()
    unanswered: tuple[UnansweredRules, ...] = ()
    hardware: Omit[Hardware | None] = None
    location: Annotated[Location | None, Mark.OMIT, Coding(_read_location, _write_location)] = None
    environment: Omit[Mapping[str, Scalar]] = {}
    left_out: Omit[tuple[Source, ...]] = ()
    problems: Omit[tuple[str, ...]] = ()
    dropped: Omit[bool] = False
    has_kernels: Omit[bool] = False
    ended: Annotated[End | None, Mark.INLINE, Mark.OMIT, Coding(_read_ended, _write_ended)] = None
    bottleneck: Omit[str | None] = None
    model_kind: Omit[str | None] = None
    asked: Omit[Requester | None] = None
    profiles_itself: Omit[bool] = False
    node_id: Omit[str | None] = None
    sweep: Omit[SweepPoint | None] = None
    attached: Omit[tuple[str, ...]] = ()
    conditions: Omit[Mapping[str, dict[str, Any]]] = {}
    host: Omit[str | None] = None

    @property
    def outcomes(self) -> Mapping[str, RuleOutcome]:
        told = [(code, group.outcome) for group in self.unanswered for code in group.codes]
        told += [(finding.code, finding.outcome) for finding in self.findings]
        return dict(sorted(told, key=lambda item: TELLS.index(item[1])))

    @property
    def reached_end(self) -> bool:
        return self.ended is None or self.ended.kind is EndKind.UNCONFIRMED

    @property
    def out_of_memory(self) -> bool:
        return self.ended is not None and self.ended.kind is EndKind.OUT_OF_MEMORY

    @property
    def device_facts(self) -> Mapping[str, Scalar]:
        """The facts of devices; empty where none was opened or stated."""
        setting = self.setting
        return {**self.environment, **setting} if setting else {}

    @property
    def setting(self) -> Mapping[str, Scalar]:
        return {**self.configuration, **self.facts}

    @property
    def is_simulated(self) -> bool:
        return self.hardware is not None and self.hardware.simulated


def _read_verdicts(value: Value) -> tuple[Verdict, ...]:
    """Read verdicts by metric; producers may leave out its definition."""
    verdicts = []
    for name, item in value.items():
        members = item.members()
        if members.get("unit") is None:
            members = {**members, "unit": ""}
        try:
            verdicts.append(decode(Verdict, members, key=name))
        except DecodeError as error:
            raise error.below(name) from None
    return tuple(verdicts)


def _write_verdicts(verdicts: Iterable[Verdict]) -> dict[str, object]:
    return {verdict.metric.name: encode(verdict) for verdict in verdicts}


class JudgedTest(Struct, frozen=True):
    """An observation with its verdicts.

    ``written`` names the metrics whose baseline it changes. ``by_op`` names the ops that make up a
    change of its times; None without a change, or an op table on both sides.
    """

    observation: Annotated[Observation, Mark.INLINE]
    verdicts: Annotated[tuple[Verdict, ...], Coding(_read_verdicts, _write_verdicts)] = ()
    written: Omit[frozenset[str]] = frozenset()
    by_op: Omit[str | None] = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that no verdict or target line repeats."""
        failing = {verdict.metric.name for verdict in self.verdicts if verdict.outcome in _FAILING}
        return tuple(
            finding for finding in self.observation.findings if not _is_said(finding, failing)
        )

    def target_of(self, verdict: Verdict) -> float | None:
        observed = self.observation.metrics.get(verdict.metric.name)
        return observed.limits.target if observed else None

    def target_reached(self, verdict: Verdict) -> bool:
        target = self.target_of(verdict)
        if target is None or verdict.observed is None:
            return False
        if verdict.metric.better is Better.HIGHER:
            return verdict.observed >= target
        return verdict.observed <= target


def _is_said(finding: Finding, metrics: set[str]) -> bool:
    if Role.REPEATS_VERDICT.has(finding.code) and finding.stands:
        named = {evidence.subject for evidence in finding.evidence}
        return bool(named) and named <= metrics
    return Role.REPEATS_TARGET.has(finding.code)


class Run(Struct, frozen=True):
    """One run of the gate; ``hardware`` is the default of its tests.

    A run that is not ``complete`` was cut short: some of its tests may be missing. ``coverage`` is
    None if unknown. ``shift_refuted``: most tests had moved together, and controls showed that it
    was not the machine.
    """

    hardware: Hardware | None
    tests: Mapping[str, JudgedTest]
    # Nothing is judged by the environment, and other producers describe theirs as they like.
    environment: Annotated[Environment, Coding(partial(decode_known, Environment))] = Environment()
    label: str | None = None
    id: str | None = None
    complete: Omit[bool] = True
    shift: Omit[Shift | None] = None
    shift_refuted: Omit[bool] = False
    coverage: Annotated[Coverage | None, "collected", Mark.OMIT] = None


def encode_heading(run: Run) -> dict[str, object]:
    """Encode what is known of a run before its first test."""
    heading = encode_run(replace(run, tests={}))
    del heading["tests"]
    return heading


def encode_run(run: Run) -> dict[str, object]:
    members = encode(run)
    tests = members.pop("tests")
    return {"format": RUN_FORMAT, "id": run.id, **members, "tests": tests}


def decode_run(document: object) -> Run:
    """Decode a run record, of this program or of any other producer."""
    value = Value(document)
    decode_format(value, current=RUN_FORMAT, what="a run record")
    run = decode(Run, document)
    if "complete" in value.members():
        value.field("complete").boolean()  # null is no word for a whole run
    for name in run.tests:
        if "\0" in name:  # no command line can hold it: nobody could accept that test and no other
            raise DecodeError(("tests", name), "an id without null characters", repr(name)[:80])
    if run.hardware is None:
        for name, item in value.field("tests").items():
            if run.tests[name].observation.hardware is None:
                item.field("hardware").members()  # neither here nor at the top: refused
    return run


def lies_in(test: str, place: str) -> bool:
    """Return whether a test is at or below a place.

    >>> lies_in("models/test_a.py::test_x[8]", "models"), lies_in("test_ab.py::test_x", "test_a.py")
    (True, False)
    """
    return place in {"", ".", test} or test.startswith((f"{place}/", f"{place}::", f"{place}["))


def function_of(test: str) -> str:
    """Return a test's id without its parameters.

    >>> function_of("test_a.py::TestX::test_y[a/b[0]]")
    'test_a.py::TestX::test_y'
    """
    file, separator, name = test.partition("::")
    return file + separator + name.partition("[")[0]


class Coverage(Struct, frozen=True):
    """The collection of a run; of ``places`` it collected all.

    ``others`` are tests without a result: deselected, skipped, not measured. A file among them
    could not be collected, so that its tests are unknown. ``unasked`` are deselected ones.
    """

    places: tuple[str, ...]
    others: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()

    def covers(self, test: str) -> bool:
        """Return whether the run would have met an existing test."""
        inside = any(lies_in(test, place) for place in self.places)
        return inside and not any(lies_in(test, other) for other in self._unknown())

    def without(self, results: Iterable[str]) -> Coverage:
        known = frozenset(results)
        others = sorted({other for other in self.others if other not in known})
        unasked = sorted({other for other in self.unasked if other not in known})
        return Coverage(self.places, tuple(others), tuple(unasked))

    def with_identities(self, identities: Mapping[str, str]) -> Coverage:
        """Return this with tests' names in files next to their ids.

        The baseline of a test may be stored under either.
        """
        return Coverage(
            self.places,
            _and_identities(self.others, identities),
            _and_identities(self.unasked, identities),
        )

    def asks_for(self, test: str) -> bool:
        return self.covers(test) and test not in self.unasked

    def joined(self, other: Coverage) -> Coverage:
        """Return the coverage of two shards; either may ask for a test."""
        ours = {test for test in self.unasked if not other.asks_for(test)}
        theirs = {test for test in other.unasked if not self.asks_for(test)}
        return Coverage(
            tuple(dict.fromkeys((*self.places, *other.places))),
            tuple(dict.fromkeys((*self.others, *other.others))),
            tuple(sorted(ours | theirs)),
        )

    def functions(self, results: Iterable[str]) -> frozenset[str]:
        return frozenset(function_of(test) for test in (*results, *self.others))

    def _unknown(self) -> tuple[str, ...]:
        return tuple(other for other in self.others if "::" not in other)


def _and_identities(tests: tuple[str, ...], identities: Mapping[str, str]) -> tuple[str, ...]:
    if not identities:
        return tests
    return (*tests, *(identities[test] for test in tests if test in identities))


class Artifact(Struct, frozen=True):
    """The contents of one artifact, or several of one test.

    ``arch``, ``board`` and ``devices`` are of the hardware that it was recorded on, ``hardware`` is
    set if the artifact names all of it. ``facts`` are about the model. ``environment`` is recorded,
    and never compared. ``table``, ``report`` and ``kernels`` are the artifacts themselves, for the
    checklist.
    """

    metrics: tuple[MetricObservation, ...] = ()
    ops: OpGroups | None = None
    arch: str | None = None
    board: str | None = None
    devices: int | None = None
    hardware: Hardware | None = None
    facts: Mapping[str, Scalar] = {}
    environment: Mapping[str, Scalar] = {}
    table: OpTable | None = None
    report: Any = None
    kernels: Any = None

    def named(self, name: str) -> Artifact:
        """Return this for one of several models: named metrics, no op table."""
        metrics = (
            replace(m, metric=replace(m.metric, name=f"{name}_{m.metric.name}"))
            for m in self.metrics
        )
        return replace(self, metrics=tuple(metrics), ops=None)

    def completed_by(self, other: Artifact) -> Artifact:
        """Join two artifacts; the first wins where both have a value."""
        return Artifact(
            metrics=(*self.metrics, *other.metrics),
            ops=_with_times(self.ops, other.ops),
            arch=self.arch or other.arch,
            board=self.board or other.board,
            devices=self.devices or other.devices,
            hardware=self.hardware or other.hardware,
            facts={**other.facts, **self.facts},
            environment={**other.environment, **self.environment},
            table=self.table or other.table,
            report=self.report or other.report,
            kernels=self.kernels or other.kernels,
        )


def _with_times(first: OpGroups | None, second: OpGroups | None) -> OpGroups | None:
    """Join op tables with times; a list of calls is second best."""
    tables = [table for table in (first, second) if table is not None]
    timed = [table for table in tables if table.is_timed] or tables[:1]
    if len(timed) < 2:
        return timed[0] if timed else None
    known = set(timed[0].regions)
    others = tuple(group for group in timed[1].groups if group.region not in known)
    return replace(timed[0], groups=timed[0].groups + others)


#: What a test without artifacts has.
NO_ARTIFACT: Final = Artifact()
