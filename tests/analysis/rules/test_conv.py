"""Rules on convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from pytest_ttnn_perf.core.finding import RuleOutcome, Severity
from tests.analysis.rules.answers import Ask, Evidence, Subject, limit, not_applicable
from tests.analysis.rules.convolving import called, conv, convolving, output
from tests.analysis.rules.tables import op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.readers.report_db import Report


def switched(key: str) -> tuple[str, str]:
    """Return the attributes that switch something on, and off."""
    return f"{{'{key}': 'true'}}", f"{{'{key}': 'false'}}"


#: What 1024 pixels of 64 channels take to compute, at HiFi2 on 64 cores of Wormhole; what reading
#: their weights takes.
COMPUTE_NS = 2 * 1024 * 64 * 288 / (64 * 148 / 72 * 1000)
READ_NS = 288 * 64 * 2 / 288


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


ttp605 = Ask("TTP605")
LIMIT_605 = limit(0, "batch norms")
NORM = op("BatchNormOperation", [tensor(1, 64, 32, 32)], ns=70.0)


def test_batch_norms_that_run() -> None:
    ops = table(conv(), NORM, conv(), NORM)
    assert ttp605(ops=ops) == LIMIT_605.found(
        2,
        "2 batch norms beside 2 convolutions",
        [Evidence("2 x BatchNorm 1x64x32x32", 140.0, "ns", 140 / 340)],
    )
    assert ttp605.with_limits(batch_norms=2)(ops=ops).value == 2


slow = Ask("TTP607")
LARGE = 102_400


def test_an_ideal_of_the_profiler_counts_for_the_cores_in_use() -> None:
    """PM IDEAL is that of all cores of a chip; on 16, none is faster than those of Blackhole."""
    row = conv(pixels=LARGE, ns=2_000_000.0)._replace(fidelity="HiFi4", cores=16, ideal_ns=1_000.0)
    least = 2 * LARGE * 64 * 288 / (16 * 5.5296 / 4 * 1000)
    assert slow.saving(ops=table(row, arch=None))[0] == pytest.approx(2_000_000 - 2 * least)
