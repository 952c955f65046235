"""Double buffers of activations (TTP603) and of weights (TTP604)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from pytest_ttnn_perf.core.finding import RuleOutcome, Severity
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.rules.tables import op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.readers.report_db import Report

UNIT = "of convolutions"
LIMIT = limit(0.0, UNIT)
BOTH = pytest.mark.parametrize(
    ("ask", "key", "noun"),
    [
        (Ask("TTP603"), "enable_act_double_buffer", "activations"),
        (Ask("TTP604"), "enable_weights_double_buffer", "weights"),
    ],
    ids=["TTP603", "TTP604"],
)


def switched(key: str) -> tuple[str, str]:
    """Return the attributes that switch something on, and off."""
    return f"{{'{key}': 'true'}}", f"{{'{key}': 'false'}}"


@BOTH
def test_on_a_chip_that_is_not_known_convolutions_are_counted(
    ask: Ask, key: str, noun: str
) -> None:
    on, off = switched(key)
    ops = table(
        conv("BLOCK", attributes=on),
        conv("BLOCK", attributes=off, ns=30.0),
        conv("BLOCK", attributes=off, ns=30.0),
        conv("BLOCK", attributes=off, pixels=64, ns=90.0),
        conv("BLOCK"),
        arch=None,
    )
    assert ask(ops=ops) == LIMIT.found(
        0.75,
        f"{noun} not double-buffered in 3 of 4 convolutions",
        [
            Evidence("Conv2d 1x1x64x32", 90.0, "ns", 90 / 350),
            Evidence("2 x Conv2d 1x1x1024x32", 60.0, "ns", 60 / 350),
        ],
    )
    assert ask.with_limits(switched=0.75)(ops=ops) == clean(0.75, limit=0.75, unit=UNIT)


#: What 1024 pixels of 64 channels take to compute, at HiFi2 on 64 cores of Wormhole; what reading
#: their weights takes.
COMPUTE_NS = 2 * 1024 * 64 * 288 / (64 * 148 / 72 * 1000)
READ_NS = 288 * 64 * 2 / 288


@BOTH
@pytest.mark.parametrize("times", [2.0, 4.0])
def test_what_a_second_buffer_can_hide(ask: Ask, key: str, noun: str, times: float) -> None:
    _, off = switched(key)
    ns = COMPUTE_NS * times
    rows = [
        conv("BLOCK", attributes=text, ns=ns)._replace(fidelity="HiFi2")
        for text in (off, f"{off} ", "")
    ]
    own = COMPUTE_NS if noun == "activations" else READ_NS
    # No convolution gets beyond four fifths of what its cores compute.
    hidden = min(own, ns - COMPUTE_NS, ns - COMPUTE_NS / 0.8)
    ops = table(*rows)
    answer = ask(ops=ops)
    assert answer.reason == f"{noun} not double-buffered in 2 of 2 convolutions"
    assert answer.value == pytest.approx(2 * hidden / (3 * ns))
    assert ask.saving(ops=ops)[0] == pytest.approx(2 * hidden)


@BOTH
def test_no_convolution_gets_beyond_the_best_of_its_like(ask: Ask, key: str, noun: str) -> None:
    on, off = switched(key)
    with_it = conv("BLOCK", attributes=on, ns=COMPUTE_NS * 3)._replace(fidelity="HiFi2")
    without = conv("BLOCK", attributes=off, ns=COMPUTE_NS * 3.5)._replace(fidelity="HiFi2")
    own = COMPUTE_NS if noun == "activations" else READ_NS
    saved = ask.saving(ops=table(with_it, without))[0]
    assert saved == pytest.approx(min(own, COMPUTE_NS * 0.5))


@pytest.mark.parametrize(
    ("ask", "key"),
    [
        (Ask("TTP603"), "enable_act_double_buffer"),
        (Ask("TTP604"), "enable_weights_double_buffer"),
    ],
    ids=["TTP603", "TTP604"],
)
def test_from_three_fifths_of_the_peak_on_there_is_nothing_to_gain(ask: Ask, key: str) -> None:
    on, off = switched(key)
    near = conv("BLOCK", attributes=off, ns=COMPUTE_NS / 0.61)._replace(fidelity="HiFi2")
    buffered = conv("BLOCK", attributes=on, ns=COMPUTE_NS * 4)._replace(fidelity="HiFi2")
    for row in (near, buffered):
        assert ask(ops=table(row)) == limit(0.02, "of a step").clean(0.0)


def test_height_sharded_convolutions_keep_their_weights_in_l1() -> None:
    _, off = switched("enable_weights_double_buffer")
    weights = Ask("TTP604")
    tall = conv(attributes=off, ns=COMPUTE_NS * 4)._replace(fidelity="HiFi2")
    kept = not_applicable("height-sharded convolutions keep their weights in L1")
    assert weights(ops=table(tall)) == weights(ops=table(tall, arch=None)) == kept
    block = conv("BLOCK", attributes=off, ns=COMPUTE_NS * 4)._replace(fidelity="HiFi2")
    assert weights.saving(ops=table(tall, block))[0] == pytest.approx(READ_NS)


FITS = convolving((called(1, circular=4_000, tensors=2_000), output(1)))


@pytest.mark.parametrize(
    ("made", "severity"),
    [
        (FITS, None),
        (None, Severity.INFO),
        (convolving((called(1, circular=4_000, tensors=2_001), output(1))), Severity.INFO),
        (convolving((called(1, circular=None), output(1))), Severity.INFO),
    ],
    ids=["pays", "no report", "no room", "room not told"],
)
def test_a_warning_only_where_it_is_known_to_fit(
    made: Report | None, severity: Severity | None
) -> None:
    _, off = switched("enable_act_double_buffer")
    ops = table(conv(attributes=off, ns=COMPUTE_NS * 2)._replace(fidelity="HiFi2"))
    answer = rule_of("TTP603").check(Subject(ops=ops, report=made))
    assert (answer.outcome, answer.severity) == (RuleOutcome.FOUND, severity)
    assert rule_of("TTP603").severity is Severity.WARNING


@BOTH
def test_a_report_without_a_table(ask: Ask, key: str, noun: str) -> None:
    on, off = (NOT_ASKED._replace(**{key: switch}) for switch in (True, False))  # type: ignore[arg-type]
    block = "L1_BLOCK_SHARDED"
    made = convolving(
        (called(1, asked=on), output(1, block)), (called(2, asked=off), output(2, block))
    )
    assert ask(report=made) == LIMIT.found(
        0.5,
        f"{noun} not double-buffered in 1 of 2 convolutions",
        [Evidence("ttnn.conv2d (operation 2)")],
    )
    untold = not_measured(f"the capture does not say whether {noun} are double-buffered")
    assert ask(ops=table(conv("BLOCK"))) == untold
    assert ask(report=convolving((called(1, asked=None), output(1, block)))) == untold


@pytest.mark.parametrize("ask", [Ask("TTP603"), Ask("TTP604")])
def test_nothing_to_look_at(ask: Ask) -> None:
    assert ask(ops=table(op("Unary"))) == not_applicable("no convolutions")
