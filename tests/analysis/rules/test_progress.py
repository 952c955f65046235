from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import (
    Bottleneck,
    BottleneckKind,
    held_back,
    model_kind,
)
from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity, Subject
from pytest_ttnn_perf.core.ops import Signpost
from pytest_ttnn_perf.report.findings import First, ModelKind, Progress, State, Step, progress_of
from tests.analysis.rules.captures import report_of
from tests.analysis.rules.tables import Op, op, table

FOUND, CLEAN = RuleOutcome.FOUND, RuleOutcome.CLEAN
UNKNOWN, NOT_ASKED = RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE
ATTENTION = op("SdpaDecodeDeviceOperation", ns=100)
CONVOLUTION = op("Conv2dDeviceOperation", ns=200)


def finding(code: int, outcome: RuleOutcome, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(f"TTP{code:03}", "name", severity, outcome)


def kind_of(bottleneck: BottleneckKind | None, rows: list[Op]) -> ModelKind | None:
    held_by = Bottleneck(bottleneck, "…", 1.0, 0.5, "") if bottleneck else None
    return model_kind(table(*rows) if rows else None, held_by)


def test_the_whole_progress() -> None:
    findings = [
        finding(7, FOUND),
        finding(101, CLEAN), finding(102, FOUND), finding(104, FOUND, Severity.INFO),
        finding(201, CLEAN), finding(202, UNKNOWN), finding(203, FOUND, Severity.INFO),
        finding(301, UNKNOWN), finding(302, NOT_ASKED),
        finding(401, FOUND, Severity.ERROR), finding(402, FOUND),
        finding(601, NOT_ASKED), finding(602, NOT_ASKED),
        finding(801, FOUND), finding(901, CLEAN), finding(905, FOUND, Severity.INFO),
    ]  # fmt: skip
    assert progress_of(findings, has_baseline=True) == Progress(
        Step("baseline measured", State.DONE),
        (
            Step("data formats", State.OPEN, ("TTP102", "TTP104")),
            Step("layouts", State.OPEN, ("TTP203",)),
            Step("memory and sharding", State.NOT_MEASURED),
            Step("trace and host", State.OPEN, ("TTP401", "TTP402")),
            Step("command queues", State.NOT_MEASURED),
            Step("convolutions", State.NOT_APPLICABLE),
            Step("several devices", State.NOT_MEASURED),
        ),
        Step("final PCC", State.DONE),
        None,
        (First("TTP102", "name"),),
    )


@pytest.mark.parametrize(
    ("findings", "number", "state"),
    [
        # A program cache that is on does not tell whether the host is in the way.
        ([finding(401, UNKNOWN), finding(402, UNKNOWN), finding(406, CLEAN)], 4, UNKNOWN),
        ([finding(401, UNKNOWN), finding(402, CLEAN), finding(406, CLEAN)], 4, CLEAN),
        ([finding(102, CLEAN), finding(101, UNKNOWN), finding(103, UNKNOWN)], 1, UNKNOWN),
        ([finding(102, CLEAN), finding(101, NOT_ASKED), finding(103, UNKNOWN)], 1, UNKNOWN),
        ([finding(102, CLEAN), finding(101, NOT_ASKED), finding(103, NOT_ASKED)], 1, CLEAN),
        ([finding(202, CLEAN), finding(201, UNKNOWN), finding(203, UNKNOWN)], 2, UNKNOWN),
        ([finding(302, CLEAN), finding(301, UNKNOWN), finding(303, UNKNOWN)], 3, UNKNOWN),
        ([finding(501, CLEAN), finding(504, CLEAN), finding(502, UNKNOWN)], 5, UNKNOWN),
        ([finding(605, CLEAN), finding(601, UNKNOWN), finding(607, UNKNOWN)], 6, UNKNOWN),
        ([finding(701, CLEAN), finding(703, UNKNOWN), finding(704, UNKNOWN)], 7, UNKNOWN),
        # What was found, if it does not count, was at least looked at.
        ([finding(102, CLEAN), replace(finding(103, FOUND), quiet=True)], 1, CLEAN),
    ],
)
def test_a_step_is_done_only_if_a_rule_that_looks_at_it_could_tell(
    findings: list[Finding], number: int, state: RuleOutcome
) -> None:
    states = {CLEAN: State.DONE, UNKNOWN: State.NOT_MEASURED}
    progress = progress_of(findings, has_baseline=True)
    assert progress.steps[number - 1].state is states[state]


def test_nothing_is_known_of_nothing() -> None:
    progress = progress_of([], has_baseline=None)
    assert {step.state for step in progress.all} == {State.NOT_MEASURED}
    assert len(progress.all) == 9
    assert progress.first is None
    assert progress_of([], has_baseline=False).baseline.state is State.OPEN


@pytest.mark.parametrize(
    ("findings", "state", "codes"),
    [
        ([finding(901, CLEAN), finding(902, CLEAN)], State.DONE, ()),
        ([finding(901, CLEAN), finding(909, FOUND)], State.OPEN, ("TTP909",)),
        ([finding(901, UNKNOWN), finding(902, FOUND)], State.OPEN, ("TTP902",)),
        ([finding(901, UNKNOWN), finding(903, CLEAN)], State.NOT_MEASURED, ()),
        ([finding(905, CLEAN), finding(906, FOUND)], State.NOT_MEASURED, ()),
        ([finding(901, NOT_ASKED)], State.NOT_APPLICABLE, ()),
    ],
)
def test_the_final_pcc(findings: list[Finding], state: State, codes: tuple[str, ...]) -> None:
    assert progress_of(findings, has_baseline=True).pcc == Step("final PCC", state, codes)


@pytest.mark.parametrize(
    ("kind", "bottleneck", "rows"),
    [
        (ModelKind.LLM, None, [ATTENTION]),
        (ModelKind.CNN, None, [ATTENTION, CONVOLUTION]),
        (ModelKind.LLM, BottleneckKind.MEMORY, [ATTENTION]),
        (ModelKind.HOST_BOUND, BottleneckKind.HOST, [ATTENTION]),
        (ModelKind.HOST_BOUND, BottleneckKind.TRANSFER, [CONVOLUTION]),
        (ModelKind.MEMORY_BOUND, BottleneckKind.MEMORY, [op("Matmul")]),
        (ModelKind.MEMORY_BOUND, BottleneckKind.DRAM_TRAFFIC, []),
        (None, BottleneckKind.COMPUTE, [op("Matmul")]),
        (None, None, []),
    ],
)
def test_the_kind_of_a_model(
    kind: ModelKind | None, bottleneck: BottleneckKind | None, rows: list[Op]
) -> None:
    assert kind_of(bottleneck, rows) is kind


def test_a_report_tells_the_kind_of_its_model_too() -> None:
    report = report_of("cnn_small/db.sqlite").report
    assert model_kind(None, None, report) is ModelKind.CNN


@pytest.mark.parametrize(
    ("bottleneck", "rows", "opened", "first"),
    [
        (None, [ATTENTION], (3, 4, 6), 4),
        (None, [ATTENTION], (1, 3, 4), 1),
        (None, [CONVOLUTION], (1, 3, 6), 3),
        (None, [CONVOLUTION], (1, 4, 6), 6),
        (BottleneckKind.HOST, [CONVOLUTION], (1, 5, 6), 5),
        (BottleneckKind.MEMORY, [], (1, 2, 3), 3),
        (BottleneckKind.MEMORY, [], (2, 7), 2),
        (None, [], (2, 3), 2),
    ],
)
def test_the_step_to_take_first(
    bottleneck: BottleneckKind | None, rows: list[Op], opened: tuple[int, ...], first: int
) -> None:
    found = [finding(number * 100 + 1, FOUND) for number in opened]
    progress = progress_of(found, has_baseline=True, kind=kind_of(bottleneck, rows))
    assert progress.first == First(f"TTP{first}01", "name")


def saving(
    code: int, ns: float | None, severity: Severity = Severity.WARNING, **fields: Any
) -> Finding:
    return replace(finding(code, FOUND, severity), saving_ns=ns, **fields)


def first_of(*findings: Finding, kind: ModelKind | None = None) -> str | None:
    first = progress_of(findings, has_baseline=None, kind=kind).first
    return first.code if first else None


def test_what_saves_most_comes_first_and_the_path_breaks_ties() -> None:
    found = [saving(101, 100.0), saving(203, None), saving(305, 900.0), saving(401, 900.0)]
    assert first_of(*found) == "TTP305"
    assert first_of(*found, kind=ModelKind.LLM) == "TTP401"
    assert first_of(*found, saving(602, 9e9, Severity.INFO)) == "TTP305"
    assert first_of(saving(203, None), saving(401, None)) == "TTP203"
    assert first_of(saving(602, 9e9, Severity.INFO)) == "TTP602"


def test_of_two_regions_where_a_rule_saves_as_much_the_shorter_comes_first() -> None:
    """Estimates that differ by a few per cent are the same."""
    of_prefill = saving(308, 300.0, region="prefill", step_ns=3000.0)
    of_decode = saving(308, 294.0, region="decode", step_ns=1300.0)
    first = progress_of([of_prefill, of_decode], has_baseline=None).first
    assert first is not None
    assert first.region == "decode"


def test_an_upper_bound_comes_first_only_where_the_model_waits() -> None:
    found = (saving(402, 900.0, at_most=True), saving(305, 100.0))
    assert first_of(*found) == "TTP305"
    assert first_of(*found, kind=ModelKind.HOST_BOUND) == "TTP402"
    assert first_of(found[0]) == "TTP402"


def test_what_another_covers_keeps_its_step_open_and_is_never_first() -> None:
    covered = saving(202, 800.0, quiet=True, covered_by="TTP314", adds_ns=0.0)
    progress = progress_of([saving(314, 900.0), covered], has_baseline=None)
    assert progress.steps[1] == Step("layouts", State.OPEN, ("TTP202",))
    assert progress.first is not None
    assert progress.first.code == "TTP314"
    assert first_of(covered) is None


@pytest.mark.parametrize(
    ("share", "step"),
    [
        (0.51, Step("memory and sharding", State.NOT_MEASURED, ("TTP315",))),
        (0.49, Step("memory and sharding", State.DONE)),
    ],
)
def test_silence_about_most_of_a_step_is_no_praise(share: float, step: Step) -> None:
    unexplained = replace(finding(315, FOUND, Severity.INFO), value=share)
    told = [finding(305, CLEAN), unexplained]
    assert progress_of(told, has_baseline=None).steps[2] == step
    opened = progress_of([*told, finding(302, FOUND)], has_baseline=None).steps[2]
    assert opened == Step("memory and sharding", State.OPEN, ("TTP302",))


def test_regions_that_are_replayed_are_told_first_and_have_the_only_gaps_that_count() -> None:
    window = [op("UnaryDeviceOperation", ns=1000, gap_ns=9e4) for _ in range(4)]
    replays = [
        op("MatmulDeviceOperation", ns=1000, gap_ns=0, replay=(1, number)) for number in (1, 2)
    ]
    posts = (Signpost("PREFILL", 0), Signpost("PREFILL_END", 4))
    alone = replace(table(*window), signposts=posts)
    both = replace(table(*window, *replays), signposts=posts)
    text, kind = held_back(Subject(ops=alone), {})
    assert (text or "").startswith("prefill: host-bound: devices wait at most 98.5 % of the time")
    assert kind is ModelKind.HOST_BOUND
    text, kind = held_back(Subject(ops=both), {})
    assert (text or "").splitlines() == [
        "trace_1: matmuls: 100.0 % of a step (Matmul)",
        "prefill: elementwise ops: 100.0 % of a step (Unary)",
    ]
    assert kind is None
