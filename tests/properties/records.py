"""Every record of the model, with every field drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from pytest_ttnn_perf.core.baseline import (
    Acceptance,
    BaselineFile,
    MetricBaseline,
    Session,
    TestBaseline,
    ops_path,
)
from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.finding import Evidence, Finding, RuleOutcome, Severity, UnansweredRules
from pytest_ttnn_perf.core.hardware import Environment, Hardware
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    Coverage,
    End,
    EndKind,
    JudgedTest,
    Limits,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Run,
    Verdict,
)
from pytest_ttnn_perf.core.ops import OpGroup, OpGroups, Signature, Tensor

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

TEXTS = st.text(max_size=8)
#: A record with an id that no command line can hold is refused.
IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NUMBERS = st.floats(-LARGEST, LARGEST) | st.integers(-int(LARGEST), int(LARGEST))
POSITIVE = st.floats(1e-300, LARGEST) | st.integers(1, int(LARGEST))
COUNTS = st.integers(0, 10**6)
SCALARS = st.none() | st.booleans() | TEXTS | NUMBERS
#: One NaN object for all, as decoding makes it: a NaN equals only itself, and that by identity.
SAMPLES = st.lists(NUMBERS | st.just(math.nan), max_size=4).map(tuple)

_ENUMS = {
    "better": st.sampled_from(Better),
    "kind": st.sampled_from(Kind),
    "source": st.sampled_from(Source),
}
#: No mesh is written by leaving it out, so an empty name of a mesh does not exist.
HARDWARE = st.builds(Hardware, TEXTS, TEXTS, mesh=st.none() | st.text(min_size=1, max_size=5))
CONFIGURATIONS = st.dictionaries(TEXTS, SCALARS, max_size=3)
LIMITS = st.builds(Limits, *[st.none() | NUMBERS] * 5)
EVIDENCE = st.builds(Evidence, TEXTS, st.none() | NUMBERS, TEXTS, st.none() | NUMBERS)
#: What a finding says; an empty text is written by leaving it out, as one that is not there.
SAID = st.text(min_size=1, max_size=8)
CODES = st.from_regex(r"[A-Z]{3}[0-9]{3}", fullmatch=True)
FINDINGS = st.builds(
    Finding,
    code=CODES,
    name=SAID,
    severity=st.sampled_from(Severity),
    outcome=st.sampled_from(RuleOutcome),
    reason=st.none() | SAID,
    value=st.none() | NUMBERS,
    limit=st.none() | NUMBERS,
    unit=TEXTS,
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    fix=st.none() | SAID,
    waived=st.none() | SAID,
)
UNANSWERED = st.builds(
    UnansweredRules,
    st.sampled_from(RuleOutcome),
    TEXTS,
    st.lists(CODES, max_size=2).map(tuple),
)
ENVIRONMENTS = st.builds(
    Environment,
    started_at=st.none() | TEXTS,
    python=st.none() | TEXTS,
    cpu_count=st.none() | COUNTS,
    load_1m=st.none() | NUMBERS,
    host_hash=st.none() | TEXTS,
    ttnn=st.none() | TEXTS,
    commit=st.none() | TEXTS,
    dirty=st.none() | st.booleans(),
    runner=st.none() | TEXTS,
)
LOCATIONS = st.tuples(TEXTS, st.none() | st.integers(1, 10**6))
_NAMES = st.lists(TEXTS, max_size=2).map(tuple)
COVERAGES = st.builds(Coverage, _NAMES, _NAMES)
#: A word of an operand: what a profiler writes there has no spaces.
WORDS = st.sampled_from(["", "TILE", "BFLOAT16", "L1_HEIGHT_SHARDED"])
SIZES = st.integers(0, 10**6)


@st.composite
def _tensors(draw: DrawFn) -> Tensor:
    padded = tuple(draw(st.lists(SIZES, max_size=4)))
    logical = draw(st.none() | st.tuples(*[SIZES] * len(padded)))
    return Tensor(padded, logical, draw(WORDS), draw(WORDS), draw(WORDS))


OPERANDS = st.lists(_tensors(), max_size=2).map(tuple)
#: As a profiler writes it: a line end of its own would be read back as a plain one.
LINES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8)
OP_GROUPS = st.builds(
    OpGroup,
    st.builds(Signature, LINES, OPERANDS, OPERANDS),
    cores=st.none() | COUNTS,
    fidelity=st.none() | st.sampled_from(["HiFi4", "LoFi"]),
    settings=LINES,
    count=st.integers(1, 10**6),
    total_ns=st.floats(0, LARGEST),
    median_ns=st.floats(0, LARGEST),
)
OPS = st.builds(OpGroups, LINES, st.lists(OP_GROUPS, min_size=1, max_size=3).map(tuple))


def metrics(name: str) -> st.SearchStrategy[Metric]:
    """Draw a metric called ``name``."""
    return st.builds(Metric, st.just(name), TEXTS, **_ENUMS)


@st.composite
def verdicts(draw: DrawFn) -> Verdict:
    """Draw a verdict."""
    return Verdict(
        metric=draw(TEXTS.flatmap(metrics)),
        outcome=draw(st.sampled_from(Outcome)),
        reason=draw(st.none() | st.sampled_from(Reason)),
        detail=draw(st.none() | TEXTS),
        observed=draw(st.none() | NUMBERS),
        centre=draw(st.none() | NUMBERS),
        change=draw(st.none() | NUMBERS),
        limit=draw(st.none() | NUMBERS),
        provisional=draw(st.booleans()),
        samples=draw(COUNTS),
        sessions=draw(COUNTS),
        confirmed=tuple(draw(st.lists(NUMBERS, max_size=2))),
        bound=draw(st.none() | NUMBERS),
        worst=draw(st.none() | NUMBERS),
        runs=draw(COUNTS),
        machine=draw(st.none() | NUMBERS),
        undecided=draw(st.booleans()),
    )


@st.composite
def observations(draw: DrawFn, test: str, *, with_hardware: bool) -> Observation:
    """Draw what ``test`` observed."""
    names = draw(st.lists(TEXTS, max_size=3, unique=True))
    return Observation(
        test=test,
        metrics={name: draw(_observed(name)) for name in names},
        hardware=draw(HARDWARE if with_hardware else st.none() | HARDWARE),
        configuration=draw(CONFIGURATIONS),
        facts=draw(st.dictionaries(TEXTS, SCALARS, max_size=2)),
        ops=draw(st.none() | OPS),
        environment=draw(st.dictionaries(TEXTS, SCALARS, max_size=2)),
        waived=draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
        findings=tuple(draw(st.lists(FINDINGS, max_size=2))),
        unanswered=tuple(draw(st.lists(UNANSWERED, max_size=2))),
        problems=tuple(draw(st.lists(TEXTS, max_size=2))),
        attached=tuple(draw(st.lists(TEXTS, max_size=2))),
        location=draw(st.none() | LOCATIONS),
        ended=draw(st.none() | st.builds(End, st.sampled_from(EndKind), SAID)),
        dropped=draw(st.booleans()),
        left_out=tuple(draw(st.lists(st.sampled_from(Source), max_size=2))),
        bottleneck=draw(st.none() | SAID),
        model_kind=draw(st.none() | SAID),
        has_kernels=draw(st.booleans()),
    )


def _observed(name: str) -> st.SearchStrategy[MetricObservation]:
    return st.builds(
        MetricObservation,
        metric=metrics(name),
        samples=SAMPLES,
        confirmations=st.lists(SAMPLES, max_size=2).map(tuple),
        machine=st.lists(st.none() | st.floats(-0.99, LARGEST), max_size=3).map(tuple),
        warmup=SAMPLES,
        limits=LIMITS,
        gated=st.booleans(),
        note=st.none() | TEXTS,
    )


@st.composite
def runs(draw: DrawFn, *, judged: bool = True) -> Run:
    """Draw a run; its tests have hardware of their own where the run has none."""
    hardware = draw(st.none() | HARDWARE)
    tests = {}
    for name in draw(st.lists(IDS, max_size=3, unique=True)):
        observation = draw(observations(name, with_hardware=hardware is None))
        drawn = draw(st.lists(verdicts(), max_size=2, unique_by=lambda v: v.metric.name))
        written = frozenset(draw(st.sets(TEXTS, max_size=2)))
        by_op = draw(st.none() | TEXTS)
        tests[name] = JudgedTest(observation, tuple(drawn) if judged else (), written, by_op)
    label, identifier = draw(st.none() | TEXTS), draw(st.none() | TEXTS)
    complete = draw(st.booleans())
    coverage = draw(st.none() | COVERAGES)
    environment = draw(ENVIRONMENTS)
    refuted = draw(st.booleans())
    return Run(
        hardware,
        tests,
        environment,
        label,
        identifier,
        complete,
        shift_refuted=refuted,
        coverage=coverage,
    )


@st.composite
def _metric_baselines(draw: DrawFn, name: str) -> MetricBaseline:
    metric = draw(metrics(name))
    medians = POSITIVE if metric.compared_by_ratio else NUMBERS
    spreads = NUMBERS.map(abs).map(float)
    session = st.builds(Session, medians.map(float), spreads, st.integers(1, 10**6), TEXTS)
    sessions = draw(st.lists(session, min_size=1, max_size=4))
    return MetricBaseline(metric, tuple(sessions), draw(st.integers(0, len(sessions) - 1)))


@st.composite
def _test_baselines(draw: DrawFn) -> TestBaseline:
    names = draw(st.lists(TEXTS, max_size=3, unique=True))
    optional = st.none() | TEXTS
    return TestBaseline(
        draw(st.builds(Acceptance, TEXTS, optional, optional, optional)),
        {name: draw(_metric_baselines(name)) for name in names},
        draw(CONFIGURATIONS),
        ops=draw(st.none() | st.builds(_place, TEXTS, TEXTS)),
    )


def _place(file: str, name: str) -> str:
    """Return where the op table of any test is put."""
    return str(ops_path(f"{file}::{name}"))


BASELINE_FILES = st.builds(
    BaselineFile,
    HARDWARE,
    tests=st.dictionaries(TEXTS, _test_baselines(), max_size=3),
    test_file=st.none() | TEXTS,
)
