"""Rules on convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.analysis.rules.answers import Ask, Evidence, limit
from tests.analysis.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.analysis.rules.tables import op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.readers.report_db import Operation


def switched(key: str) -> tuple[str, str]:
    """Return the attributes that switch something on, and off."""
    return f"{{'{key}': 'true'}}", f"{{'{key}': 'false'}}"


#: What 1024 pixels of 64 channels take to compute, at HiFi2 on 64 cores of Wormhole; what reading
#: their weights takes.
COMPUTE_NS = 2 * 1024 * 64 * 288 / (64 * 148 / 72 * 1000)
READ_NS = 288 * 64 * 2 / 288


def test_height_sharded_convolutions_keep_their_weights_in_l1() -> None:
    _, off = switched("enable_weights_double_buffer")
    ttp603 = Ask("TTP603")
    tall = conv(attributes=off, ns=COMPUTE_NS * 4)._replace(fidelity="HiFi2")
    assert ttp603(ops=table(tall)) == limit(0.02, "of a step").clean(0.0)
    block = conv("BLOCK", attributes=off, ns=COMPUTE_NS * 4)._replace(fidelity="HiFi2")
    assert ttp603.saving(ops=table(tall, block))[0] == pytest.approx(READ_NS)
    _, off = switched("enable_act_double_buffer")
    tall = conv(attributes=off, ns=COMPUTE_NS * 4)._replace(fidelity="HiFi2")
    assert ttp603.saving(ops=table(tall))[0] == pytest.approx(COMPUTE_NS)


FITS = called(1, asked=NOT_ASKED._replace(act_block_h_override=32), circular=1_000)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (FITS, "act_block_h_override 32 → 256"),
        (replace(FITS, cb_bytes_per_core=None), None),
        (replace(FITS, cb_bytes_per_core=9_000), "CLEAN"),
    ],
    ids=["room", "untold", "full"],
)
def test_a_larger_block_that_fits(call: Operation, answer: str | None) -> None:
    found = Ask("TTP602")(report=convolving((call, output(1, rows=256))))
    said = [each.subject.partition(", ")[2] for each in found.evidence] or [found.outcome.value]
    assert said == [answer or "NOT_MEASURED"]


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
