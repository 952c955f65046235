"""What ops and sweeps tell, for a page to look at."""

from __future__ import annotations

import random

from pytest_ttnn_perf.report.page.contents import (
    PageColumn,
    PageFinding,
    PageJournal,
    PageLane,
    PageOp,
    PagePart,
    PagePoint,
    PageRegion,
    PageRoof,
    PageStep,
    PageSweep,
    PageTimeline,
    PageWaterfall,
)


def findings() -> tuple[PageFinding, ...]:
    return (
        PageFinding(
            "TTP311",
            "matmul-not-dram-sharded",
            "found",
            region="decode",
            saving_us=712.4,
            share=0.072,
            evidence=("MatmulDeviceOperation 32 x 4096 x 14336: 1,204.1 µs, at best 491.7 µs",),
            fix=("give it a MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig",),
        ),
        PageFinding(
            "TTP203",
            "layout-conversions",
            "found",
            region="decode",
            saving_us=130.2,
            share=0.013,
            evidence=("TilizeWithValPadding: 88.0 µs", "Untilize: 42.2 µs"),
        ),
        PageFinding(
            "TTP901",
            "pcc-below-limit",
            "found",
            fails=True,
            evidence=("layer 3: 0.981, limit 0.99",),
        ),
        PageFinding("TTP402", "trace-not-used", "waived", evidence=("waived: shapes are dynamic",)),
        PageFinding(
            "TTP304",
            "low-l1-headroom",
            "not measured",
            evidence=("no circular buffers in the graph",),
        ),
    )


def waterfall() -> PageWaterfall:
    parts = (
        PagePart("MatmulDeviceOperation 32 x 4096 x 14336", 712.4, "no longer DRAM-sharded"),
        PagePart("AllGatherAsync", 240.0, "waits longer for device 1"),
        PagePart("InterleavedToShardedDeviceOperation", 131.1, "added"),
        PagePart("LayerNormDeviceOperation", -96.5, "fewer cores idle"),
        PagePart("6 others", 12.0),
        PagePart("SoftmaxDeviceOperation", -101.0, "fidelity LoFi"),
    )
    return PageWaterfall(
        "device_kernel_time", "decode", 9870.0, 9870.0 + sum(p.change_us for p in parts), parts
    )


def journal(test: str) -> PageJournal:
    steps = (
        PageStep("bfloat8_b weights", "KEEP", True, -0.152, -0.157, -0.147, -0.171, 0.99921),
        PageStep("LoFi <b>everywhere</b>", "REVERT", False, -0.021, -0.026, -0.017, -0.03, 0.98114,
                 "accuracy 0.98114 is below its limit 0.99"),
        PageStep("a smaller batch", "NOT_COMPARABLE", False, why="test edited: test_llama.py"),
        PageStep("DRAM-sharded weights in every matmul of the feed-forward layers", "KEEP", True,
                 -0.083, -0.088, -0.078, -0.094, 0.99921),
    )  # fmt: skip
    return PageJournal(
        test, "wall_time", "ms", 1e-6, 15_860_000.0, 12_410_000.0, steps,
        remaining=("target 10.00 ms: 2.410 ms to go", "bottleneck: DRAM"),
    )  # fmt: skip


def region() -> PageRegion:
    rows = (
        ("MatmulDeviceOperation", "32 x 4096 x 14336 BF8", 32, 3853.1, 1573.0, "dram", 31.2, 30.1),
        ("MatmulDeviceOperation", "32 x 14336 x 4096 BF8", 32, 2204.0, 1573.0, "dram", 31.0, 52.7),
        ("ScaledDotProductAttentionDecode", "32 x 8 x 128", 32, 1490.2, 890.0, "dram", 7.8, 6.4),
        ("AllGatherAsync", "32 x 4096 BF16", 64, 1102.0, None, "", None, None),
        (
            "MatmulDeviceOperation",
            "2048 x 2048 x 2048 BF16",
            4,
            864.2,
            810.0,
            "compute",
            341.0,
            128.9,
        ),
        ("LayerNormDeviceOperation", "32 x 4096 BF16", 65, 501.2, 96.0, "dram", 1.9, 0.11),
        ("BinaryDeviceOperation", "32 x 4096 BF16", 96, 402.7, None, "", 0.17, 0.021),
        ("InterleavedToSharded", "32 x 4096", 32, 131.1, None, "", None, None),
        ("RotaryEmbedding", "32 x 128", 64, 120.0, None, "", 2.2, 0.05),
        *((f"SmallOp{n}", "1 x 32", 4, 60.0 / n, None, "", None, None) for n in range(1, 9)),
    )
    total = sum(row[3] for row in rows)
    return PageRegion(
        "decode",
        total,
        3,
        tuple(
            PageOp(name, shape, calls, time, time / total, ideal, bound, 64, intensity, tflops)
            for name, shape, calls, time, ideal, bound, intensity, tflops in rows
        ),
        PageRoof(576.0, (("LoFi", 262.0), ("HiFi2", 131.0), ("HiFi4", 65.5))),
        "It is bound by DRAM: 72 % of its time is in ops that are.",
    )


def timeline() -> PageTimeline:
    chance = random.Random(5)
    names = ("MatmulDeviceOperation", "LayerNormDeviceOperation", "AllGatherAsync", "from_torch")
    lanes = []
    for device in range(4):
        at, starts, durations, which, kinds = device * 2.0, [], [], [], ""
        for step in range(300):
            name = 2 if step % 9 == 8 else 3 if step == 0 else step % 2
            lasts = chance.lognormvariate(3.2, 0.5) * (3 if name == 2 else 1)
            starts.append(round(at, 3))
            durations.append(round(lasts, 3))
            which.append(name)
            kinds += "kkwh"[name]
            at += lasts + (chance.expovariate(0.3) if step % 20 else 90)
        lanes.append(
            PageLane(f"device {device}", tuple(starts), tuple(durations), tuple(which), kinds)
        )
    return PageTimeline(
        "decode", names, tuple(lanes), "The first 300 ops of each device are shown."
    )


def sweep(test: str) -> PageSweep:
    chance = random.Random(6)
    points = []
    for batch in (1, 2, 4, 8, 16, 32):
        for grid in ("8x4", "8x8"):
            fast = 1 if grid == "8x8" else 0.72
            latency, rate = (
                (3 + batch * 0.42 / fast) * 1e6,
                batch / (3 + batch * 0.42 / fast) * 1000,
            )
            gone = batch == 32 and grid == "8x4"
            values = (None, None) if gone else (latency, rate * chance.uniform(0.98, 1.0))
            points.append(
                PagePoint(
                    test,
                    (("batch", str(batch)), ("grid", grid)),
                    values,
                    best=batch == 16 and grid == "8x8",
                    note="L1 is full" if gone else "",
                )
            )
    columns = (
        PageColumn("wall_time", "ms", 1e-6),
        PageColumn("samples_per_second", "1/s", 1.0),
    )
    return PageSweep(
        "test_resnet50: batch x grid",
        columns,
        tuple(points),
        "batch 16 on 8x8 is best: 1,676 samples per second.",
    )
