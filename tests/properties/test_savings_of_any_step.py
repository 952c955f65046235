"""Whatever a step holds: no rule, and no plan of all, saves more than there is."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.checklist.plan import Start, plan_of, start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity, Subject
from tests.analysis.rules.tables import Op, OpTable, Tensor, op, table, tensor
from tests.analysis.rules.test_plan import assert_sound

#: Those whose savings are reckoned op by op.
CODES = (
    *("TTP101", "TTP103", "TTP104", "TTP202", "TTP311", "TTP314"),
    *("TTP603", "TTP607", "TTP608"),
)
CONFIGS = (
    *("MatmulMultiCoreReuseMultiCast1DProgramConfig", "std::nullopt"),
    "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig",
)
FORMATS = ("BFLOAT16", "FLOAT32", "BFLOAT8_B", "BFLOAT4_B", "STRANGE")
MEMORY = ("DRAM_INTERLEAVED", "L1_BLOCK_SHARDED", "L1_HEIGHT_SHARDED")
OTHERS = ("BinaryNg", "Typecast", "Embeddings", "PaddedSlice", "Unary")
extents = st.sampled_from([1, 17, 32, 1024, 4096])


@st.composite
def activations(draw: st.DrawFn, columns: int) -> Tensor:
    outer, row = draw(st.sampled_from([1, 32])), draw(extents)
    return tensor(
        *(1, outer, math.ceil(row / 32) * 32, columns),
        logical=(1, outer, row, columns),
        dtype=draw(st.sampled_from(FORMATS)),
        memory=draw(st.sampled_from(MEMORY)),
    )


@st.composite
def operands(draw: st.DrawFn) -> tuple[str, list[Tensor], list[Tensor]]:
    """Return an op and what it takes and gives, in shapes that go together."""
    inner, outer = (draw(st.sampled_from([32, 1024, 4096])) for _ in range(2))
    taken = draw(activations(inner))
    code = draw(st.sampled_from(("Matmul", "Conv2d", *OTHERS)))
    if code in OTHERS:
        kind = draw(st.sampled_from(FORMATS))
        return code, [taken], [taken._replace(dtype=kind)]
    weights = tensor(1, 1, inner, outer, dtype=draw(st.sampled_from(FORMATS)))
    made = taken._replace(padded=(*taken.padded[:-1], outer), logical=None)
    return code, [taken, weights], [made]


@st.composite
def rows(draw: st.DrawFn, arch: str | None) -> Op:
    """Return an op that takes about as long as the chip allows, or much longer."""
    code, taken, given_back = draw(operands())
    switch = draw(st.sampled_from(["true", "false"]))
    row = op(
        code,
        taken,
        given_back,
        ns=1.0,
        device=draw(st.sampled_from([0, 0, 0, 1])),
        cores=draw(st.sampled_from([None, 1, 8, 64])),
        fidelity=draw(st.sampled_from([None, "LoFi", "HiFi2", "HiFi4", "HiFi9"])),
        attributes=f"{{'program_config': '{draw(st.sampled_from(CONFIGS))}'; "
        f"'in0_block_w': '{draw(st.integers(1, 4))}'; 'enable_act_double_buffer': '{switch}'; "
        f"'enable_weights_double_buffer': '{switch}'}}",
        ideal_ns=draw(st.one_of(st.none(), st.floats(1.0, 1e6))),
    )
    (line,) = rooflines(table(row, arch=arch))
    least = max(line.dram_ns or 0.0, line.compute_ns or 0.0, 100.0)
    return row._replace(kernel_ns=least * draw(st.sampled_from([0.0, 0.1, 1.0, 1.3, 4.0, 50.0])))


@st.composite
def tables(draw: st.DrawFn) -> OpTable:
    arch = draw(st.sampled_from(["wormhole_b0", "blackhole", "blackhole", "quasar", None]))
    return table(*draw(st.lists(rows(arch), min_size=1, max_size=5)), arch=arch)


RULES = [rule.with_limits(share=-1.0) if "share" in rule.limits else rule for rule in all_rules()]


@given(ops=tables())
def test_no_op_saves_more_than_it_takes_and_no_plan_more_than_there_is(ops: OpTable) -> None:
    subject = Subject(ops=ops)
    times = step_of(ops).columns.kernel_ns
    for rule in RULES:
        if rule.code in CODES:
            for row, saved in rule.check(subject).savings.items():
                assert 0 <= saved <= times[row] * (1 + 1e-9)
    for line in rooflines(ops):
        for fraction in (line.dram_fraction, line.compute_fraction):
            assert fraction is None or 0 <= fraction <= 1.05
        assert ops.arch in {"wormhole_b0", "blackhole"} or line.bound is None
    start = start_of(subject, {})
    if start is None:
        assert not sum(ops.columns.kernel_ns)
        return
    made = plan_of(run_rules(RULES, subject), start)
    assert_sound(made)
    # Nothing counts twice: steps add no more than their ops take, nor than each would alone.
    for step in made.steps:
        adds, saves = step.finding.adds_ns or 0.0, step.finding.saving_ns or 0.0
        assert adds <= saves * (1 + 1e-9) + 1e-6
    told = sum(step.finding.adds_ns or 0.0 for step in made.steps)
    assert told <= made.start.now_ns * (1 + 1e-9) + 1e-6


@st.composite
def findings(draw: st.DrawFn, code: str) -> Finding:
    """Return what a rule found: as much as others, or another amount."""
    adds, more = (draw(st.sampled_from([0.0, 10.0, 300.0, 2e4])) for _ in range(2))
    return Finding(
        code,
        code,
        draw(st.sampled_from([Severity.WARNING, Severity.INFO])),
        RuleOutcome.FOUND,
        saving_ns=adds + more,
        adds_ns=adds,
        at_most=draw(st.booleans()),
    )


starts = st.builds(
    Start,
    st.just("decode"),
    st.sampled_from([500.0, 1e4, 1e6]),
    st.sampled_from([None, 0.0, 400.0]),
    waits=st.booleans(),
)
FOUND = ("TTP101", "TTP302", "TTP311", "TTP314", "TTP402", "TTP607")


@given(
    found=st.tuples(*map(findings, FOUND)),
    start=starts,
    shuffled=st.permutations(FOUND),
)
def test_a_plan_of_any_findings_is_sound_and_in_one_order(
    found: tuple[Finding, ...],
    start: Start,
    shuffled: list[str],
) -> None:
    made = plan_of(found, start)
    assert_sound(made)
    again = sorted(found, key=lambda one: shuffled.index(one.code))
    assert plan_of(again, start).steps == made.steps
