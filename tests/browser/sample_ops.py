"""What ops and sweeps tell, for a page to look at."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ttnn_perf.history.page_html import Part


def findings() -> tuple[Part, ...]:
    return (
        {
            "code": "TTP311",
            "title": "matmul-not-dram-sharded",
            "state": "found",
            "fails": False,
            "region": "decode",
            "saving_us": 712.4,
            "share": 0.072,
            "evidence": ("MatmulDeviceOperation 32 x 4096 x 14336: 1,204.1 µs, at best 491.7 µs",),
            "fix": ("give it a MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig",),
        },
        {
            "code": "TTP203",
            "title": "layout-conversions",
            "state": "found",
            "fails": False,
            "region": "decode",
            "saving_us": 130.2,
            "share": 0.013,
            "evidence": ("TilizeWithValPadding: 88.0 µs", "Untilize: 42.2 µs"),
            "fix": (),
        },
        {
            "code": "TTP901",
            "title": "pcc-below-limit",
            "state": "found",
            "fails": True,
            "region": "",
            "saving_us": None,
            "share": None,
            "evidence": ("layer 3: 0.981, limit 0.99",),
            "fix": (),
        },
        {
            "code": "TTP402",
            "title": "trace-not-used",
            "state": "waived",
            "fails": False,
            "region": "",
            "saving_us": None,
            "share": None,
            "evidence": ("waived: shapes are dynamic",),
            "fix": (),
        },
        {
            "code": "TTP304",
            "title": "low-l1-headroom",
            "state": "not measured",
            "fails": False,
            "region": "",
            "saving_us": None,
            "share": None,
            "evidence": ("no circular buffers in the graph",),
            "fix": (),
        },
    )


def waterfall() -> dict[str, Any]:
    parts = [
        ("MatmulDeviceOperation 32 x 4096 x 14336", 712.4, "no longer DRAM-sharded"),
        ("AllGatherAsync", 240.0, "waits longer for device 1"),
        ("InterleavedToShardedDeviceOperation", 131.1, "added"),
        ("LayerNormDeviceOperation", -96.5, "fewer cores idle"),
        ("6 others", 12.0, ""),
        ("SoftmaxDeviceOperation", -101.0, "fidelity LoFi"),
    ]
    return {
        "metric": "device_kernel_time",
        "region": "decode",
        "before_us": 9870.0,
        "after_us": 9870.0 + sum(change_us for _, change_us, _ in parts),
        "parts": [{"name": n, "change_us": us, "cause": cause} for n, us, cause in parts],
    }


def journal(test: str) -> dict[str, Any]:
    fields = ("message", "decision", "kept", "change", "low", "high", "device", "accuracy", "why")
    steps = (
        ("bfloat8_b weights", "KEEP", True, -0.152, -0.157, -0.147, -0.171, 0.99921, ""),
        ("LoFi <b>everywhere</b>", "REVERT", False, -0.021, -0.026, -0.017, -0.03, 0.98114,
         "accuracy 0.98114 is below its limit 0.99"),
        ("a smaller batch", "NOT_COMPARABLE", False, None, None, None, None, None,
         "test edited: test_llama.py"),
        ("DRAM-sharded weights in every matmul of the feed-forward layers", "KEEP", True,
         -0.083, -0.088, -0.078, -0.094, 0.99921, ""),
    )  # fmt: skip
    return {
        "test": test,
        "metric": "wall_time",
        "unit": "ms",
        "scale": 1e-6,
        "first": 15_860_000.0,
        "now": 12_410_000.0,
        "steps": [dict(zip(fields, step, strict=True)) for step in steps],
        "remaining": ["target 10.00 ms: 2.410 ms to go", "bottleneck: DRAM"],
    }


def region() -> Part:
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
    return {
        "name": "decode",
        "time_us": total,
        "calls": 3,
        "ops": tuple(
            {
                "name": name,
                "shape": shape,
                "calls": calls,
                "time_us": time,
                "share": time / total,
                "ideal_us": ideal,
                "bound": bound,
                "cores": 64,
                "intensity": intensity,
                "tflops": tflops,
                "note": "",
            }
            for name, shape, calls, time, ideal, bound, intensity, tflops in rows
        ),
        "roof": {
            "dram_gb_s": 576.0,
            "peaks_tflops": (("LoFi", 262.0), ("HiFi2", 131.0), ("HiFi4", 65.5)),
        },
        "bottleneck": "It is bound by DRAM: 72 % of its time is in ops that are.",
    }


def timeline() -> Part:
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
            {
                "device": f"device {device}",
                "starts_us": tuple(starts),
                "durations_us": tuple(durations),
                "names": tuple(which),
                "kinds": kinds,
            }
        )
    return {
        "region": "decode",
        "names": names,
        "lanes": tuple(lanes),
        "shortened": "The first 300 ops of each device are shown.",
    }


def sweep(test: str) -> Part:
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
                {
                    "test": test,
                    "axes": (("batch", str(batch)), ("grid", grid)),
                    "values": values,
                    "best": batch == 16 and grid == "8x8",
                    "note": "L1 is full" if gone else "",
                }
            )
    columns = (
        {
            "name": "wall_time",
            "unit": "ms",
            "scale": 1e-6,
        },
        {
            "name": "samples_per_second",
            "unit": "1/s",
            "scale": 1.0,
        },
    )
    return {
        "name": "test_resnet50: batch x grid",
        "metrics": columns,
        "points": tuple(points),
        "summary": "batch 16 on 8x8 is best: 1,676 samples per second.",
    }
