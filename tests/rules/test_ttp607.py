"""Slow convolutions (TTP607), and those that run slice by slice (TTP608)."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.convolving import conv
from tests.rules.tables import op, table, tensor

slow, sliced = Ask("TTP607"), Ask("TTP608")
STEP = limit(0.02, "of a step")
LARGE = 102_400
#: What these pixels of 64 channels take to compute, at HiFi2 on 64 cores of Wormhole.
COMPUTE_NS = 2 * LARGE * 64 * 288 / (64 * 148 / 72 * 1000)


def test_far_from_the_roofline() -> None:
    ops = table(
        conv(pixels=LARGE, ns=COMPUTE_NS * 5)._replace(fidelity="HiFi2"),
        conv(pixels=LARGE, ns=COMPUTE_NS * 1.9)._replace(fidelity="HiFi2"),
    )
    answer = slow(ops=ops)
    assert answer.reason == "1 convolution at 20.0 % of the roofline"
    assert answer.value == pytest.approx(3 / 6.9)
    assert slow.saving(ops=ops) == (
        pytest.approx(COMPUTE_NS * 3),
        "143.5 µs − 57.4 µs at 50.0 % of the roofline",
    )
    assert slow.with_limits(efficiency=0.2)(ops=ops).value == pytest.approx(0.0)


def test_the_settings_of_a_slow_convolution_are_named() -> None:
    attributes = (
        "{'enable_act_double_buffer': 'false'; 'act_block_h_ntiles': '1'; "
        "'per_core_out_matrix_height_ntile': '50'}"
    )
    row = conv("BLOCK", pixels=LARGE, ns=COMPUTE_NS * 5, attributes=attributes)
    (evidence,) = slow(ops=table(row._replace(fidelity="HiFi2"))).evidence
    assert evidence.subject == (
        f"Conv2d 1x1x{LARGE}x32 (BLOCK → HEIGHT, act_block_h 32 of 1600 rows, no double buffer)"
    )


def test_an_ideal_of_the_profiler_counts_for_the_cores_in_use() -> None:
    """PM IDEAL is that of all cores of a chip; on 16, none is faster than those of Blackhole."""
    row = conv(pixels=LARGE, ns=2_000_000.0)._replace(fidelity="HiFi4", cores=16, ideal_ns=1_000.0)
    least = 2 * LARGE * 64 * 288 / (16 * 5.5296 / 4 * 1000)
    assert slow.saving(ops=table(row, arch=None))[0] == pytest.approx(2_000_000 - 2 * least)


def test_what_cannot_be_told() -> None:
    assert slow(ops=table(op("Unary"))) == not_applicable("no convolutions")
    assert slow(ops=table(conv())) == not_measured(
        "no convolution gives its operands, cores and fidelity"
    )
    assert slow(ops=table(conv(), arch=None)) == not_measured(
        "the peaks of an unnamed architecture are not known"
    )


def test_slices_cut_out_of_dram() -> None:
    part = tensor(1, 1, 1024, 64, memory="L1_HEIGHT_SHARDED")
    ops = table(
        op("PaddedSliceDeviceOperation", [tensor(1, 64, 64, 64)], [part], ns=6_000.0),
        conv(ns=90_000.0),
        op("SliceWriteDeviceOperation", [part], [tensor(1, 64, 64, 64)], ns=4_000.0),
    )
    assert sliced(ops=ops) == STEP.found(
        0.1,
        "10.0 % of a step cuts slices for convolutions out of DRAM, and writes them back",
        [
            Evidence("PaddedSlice 1x64x64x64", 6_000.0, "ns", 0.06),
            Evidence("SliceWrite 1x1x1024x64", 4_000.0, "ns", 0.04),
        ],
    )
    assert sliced.saving(ops=ops) == (10_000.0, "at most the time of 2 ops: 10.0 µs")
    assert sliced(ops=table(conv())) == STEP.clean(0.0)
    assert sliced(ops=table(op("PaddedSlice"))) == not_applicable("no convolutions")


def test_slices_of_an_image_in_tiles_read_mostly_padding() -> None:
    image = tensor(1, 384, 1280, 32, logical=(1, 384, 1280, 3))
    cut = op("PaddedSliceDeviceOperation", [image], ns=50_000.0)
    told = "Send the image row-major, with channels padded to 8: in TILE, 3 are 32."
    assert sliced.fix(ops=table(conv(ns=50_000.0), cut)) == told
    rows = image._replace(layout="ROW_MAJOR")
    cut = op("PaddedSliceDeviceOperation", [rows], ns=50_000.0)
    assert (sliced.fix(ops=table(conv(ns=50_000.0), cut)) or "").startswith("Make it fit")
