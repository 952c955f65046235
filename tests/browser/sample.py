"""Pages to look at: a small one with everything that there can be, and a large one."""

from __future__ import annotations

import random
from dataclasses import replace

from pytest_ttnn_perf.report.page.contents import (
    Page,
    PageChange,
    PageColumn,
    PageDifference,
    PageFinding,
    PageHistory,
    PageLane,
    PageMetric,
    PageOp,
    PagePart,
    PagePoint,
    PageRegion,
    PageRoof,
    PageRun,
    PageSweep,
    PageTest,
    PageTimeline,
    PageTrend,
    PageWaterfall,
)

#: Ids that would do something if they were markup, or could turn or hide what stands beside them.
HOSTILE = (
    "tests/test_evil.py::test_a[<img src=x onerror=alert(1)>]",
    "tests/test_evil.py::test_b[</script><script>document.title='taken'</script>]",
    "tests/test_evil.py::test_c[<!--<script>]",
    "tests/test_evil.py::test_d[\u202egnp.exe\x1b[31m\x00\u2028]",
    "tests/test_evil.py::test_e[&lt;b&gt; {{ 7*7 }} {% raw %}]",
)
#: Of many tests, every so many-th fails.
_FAILS = 25
REGRESSED = "models/tests/test_llama.py::test_decode[8B-batch32-seq128]"
IMPROVED = "models/tests/test_resnet50.py::test_resnet50[batch16-device_params0]"


def small() -> Page:
    """Return a page with everything."""
    tests = (_regressed(), _improved(), *_others(), *map(_hostile, HOSTILE))
    words = [test.outcome for test in tests]
    return Page(
        title="Performance of models/tests",
        headline="2 of 12 tests failed",
        failed=True,
        facts=(
            ("Commit", "4f0c9d2a71 on main"),
            ("Host", "runner-07"),
            ("Hardware", "n300, 2 chips, firmware 18.4"),
            ("Started", "2026-11-16 02:14 UTC"),
        ),
        counts=tuple((word, words.count(word)) for word in dict.fromkeys(words)),
        runs=_runs(40),
        tests=tests,
        differences=(
            PageDifference("firmware", "18.2", "18.4", "changed in all runs since 2026-11-12"),
            PageDifference("TT_METAL_SLOW_DISPATCH_MODE", "not set", "0"),
        ),
        trends=(
            PageTrend(
                "wall_time of 14 tests is 4.1 % more on runner-07",
                ("since 2026-11-10, on no other host", "4.0 % to 4.3 %, all series"),
                worse=True,
                kind="host",
                tests=(REGRESSED, IMPROVED),
            ),
            PageTrend(
                "device_kernel_time of test_resnet50 is 6.2 % less",
                ("between 1111111 and 2222222",),
                worse=False,
                kind="code",
                command="ttnn-perf bisect 1111111 2222222 --test test_resnet50",
            ),
        ),
        sweeps=(_sweep(),),
        notes=("3 runs of pull requests are left out of histories.",),
    )


def large(tests: int = 1000, metrics: int = 3, sessions: int = 50) -> Page:
    """Return a page of so many tests, with metrics, and sessions in each of their histories."""
    chance = random.Random(7)
    failed = len(range(0, tests, _FAILS))
    return replace(
        small(),
        headline=f"{failed} of {tests} tests failed",
        counts=(("REGRESSED", failed), ("WITHIN", tests - failed)),
        runs=_runs(sessions),
        tests=tuple(_one_of_many(number, metrics, sessions, chance) for number in range(tests)),
    )


def _one_of_many(number: int, metrics: int, sessions: int, chance: random.Random) -> PageTest:
    failed = number % _FAILS == 0
    names = ("wall_time", "device_kernel_time", "first_call_time", "l1_peak")[:metrics]
    made = tuple(
        _metric(
            name,
            chance.lognormvariate(16, 1),
            chance,
            sessions=sessions,
            slower=0.08 if failed and place == 0 else 0.0,
        )
        for place, name in enumerate(names)
    )
    file = f"models/demos/family_{number % 17}/tests/test_model_{number}.py"
    id_ = f"{file}::test_perf[batch{number % 9}]"
    return PageTest(
        id_,
        "REGRESSED" if failed else "WITHIN",
        failed=failed,
        worst=0 if failed else 7,
        key="n300" if number % 3 else "n150",
        metrics=made,
        commands=(f"ttnn-perf baseline accept '{id_}' --reason '...'",) if failed else (),
    )


def _runs(count: int) -> tuple[PageRun, ...]:
    return tuple(
        PageRun(
            f"run-{day}",
            f"2026-{10 + day // 30:02}-{day % 30 + 1:02}T02:00:00+00:00",
            f"{(day + 3) * 2654435761 % 2**40:010x}00",
            "main",
            "runner-07" if day % 11 > 6 else "runner-03",
        )
        for day in range(count)
    )


def _metric(
    name: str,
    level: float,
    chance: random.Random,
    *,
    sessions: int = 40,
    slower: float = 0.0,
    samples: int = 10,
) -> PageMetric:
    values = [level * chance.lognormvariate(0, 0.008) for _ in range(sessions)]
    values[-1] = level * (1 + (slower or 0.004))
    outcome = "REGRESSED" if slower > 0 else "IMPROVED" if slower < 0 else "WITHIN"
    return PageMetric(
        name,
        "ms",
        1e-6,
        "lower",
        outcome,
        f"{name} {values[-1] / 1e6:.2f} ms, baseline {level / 1e6:.2f} ms: "
        f"{slower or 0.004:+.1%}, limit +3.0 %",
        value=values[-1],
        baseline=level,
        limit=level * 1.03,
        samples=tuple(values[-1] * chance.lognormvariate(0, 0.004) for _ in range(samples)),
        history=PageHistory(
            tuple(range(sessions)),
            tuple(values),
            ("WITHIN",) * (sessions - 1) + (outcome,),
            ("",) * sessions,
        ),
    )


def _regressed() -> PageTest:
    chance = random.Random(1)
    wall = _metric("wall_time", 12_410_000, chance, slower=0.082, samples=20)
    level = wall.baseline or 0
    confirmations = tuple(
        tuple(level * 1.081 * chance.lognormvariate(0, 0.004) for _ in range(20)) for _ in range(2)
    )
    values = [
        value * (1.06 if place < 14 else 1) for place, value in enumerate(wall.history.values)
    ]
    wall = replace(
        wall,
        target=11_900_000.0,
        confirmations=confirmations,
        history=replace(
            wall.history,
            values=tuple(values),
            outcomes=("WITHIN",) * 14
            + ("IMPROVED",) * 2
            + ("WITHIN",) * 13
            + ("TOO_NOISY",)
            + ("WITHIN",) * 8
            + ("REGRESSED",) * 2,
            marks=("stored",) + ("",) * 15 + ("accepted",) + ("",) * 23,
            changes=(
                PageChange(13, 14, -0.057, worse=False, cause="code: sharded the attention output"),
                PageChange(
                    37,
                    38,
                    0.079,
                    worse=True,
                    cause="code: MatmulDeviceOperation took 0.9 ms more",
                    command="ttnn-perf bisect 3f0c9d2a71 4f0c9d2a71 --test test_decode",
                ),
            ),
        ),
    )
    kernel = _metric("device_kernel_time", 9_870_000, chance, slower=0.091)
    pcc = PageMetric(
        "pcc",
        "",
        1.0,
        "higher",
        "WITHIN",
        "pcc 0.998712, limit 0.99",
        value=0.998712,
        limit=0.99,
        samples=(0.998712,),
    )
    compile_time = replace(
        _metric("first_call_time", 4.2e9, chance),
        gated=False,
        outcome="",
        why_ungated="it depends on the kernel cache",
        unit="s",
        scale=1e-9,
    )
    return PageTest(
        REGRESSED,
        "REGRESSED",
        failed=True,
        worst=0,
        key="n300",
        setting=(("batch", "32"), ("trace", "on"), ("queues", "2")),
        summary="wall_time 13.43 ms, baseline 12.41 ms: 8.2 % slower, limit 3.0 %; "
        "confirmed by 2 of 2.",
        by_op="MatmulDeviceOperation 32 x 4096 x 14336 took 0.71 ms more: "
        "it no longer runs DRAM-sharded.",
        commands=(
            f"ttnn-perf baseline accept '{REGRESSED}' --reason '...'",
            "ttnn-perf compare .ttnn_perf/runs/before.json .ttnn_perf/runs/after.json",
        ),
        metrics=(pcc, wall, kernel, compile_time),
        findings=_findings(),
        waterfalls=(_waterfall(),),
        regions=(_region(),),
        timelines=(_timeline(),),
        visualizer="ttnn-visualizer --profiler-path .ttnn_perf/reports/test_decode",
        trace="trace.json",
    )


def _improved() -> PageTest:
    metric = _metric("wall_time", 4_310_000, random.Random(2), slower=-0.062)
    return PageTest(
        IMPROVED,
        "IMPROVED",
        failed=False,
        worst=6,
        key="n150",
        summary="wall_time 4.043 ms, baseline 4.310 ms: 6.2 % faster.",
        commands=(f"ttnn-perf baseline accept '{IMPROVED}'",),
        metrics=(metric,),
    )


def _others() -> tuple[PageTest, ...]:
    chance = random.Random(3)
    new = replace(
        _metric("wall_time", 2e6, chance),
        outcome="NO_BASELINE",
        baseline=None,
        limit=None,
        history=PageHistory(),
        sentence="wall_time has no baseline for n300",
    )
    none = PageMetric(
        "wall_time", "ms", 1e-6, "lower", "NO_DATA", "the worker ended: Segmentation fault"
    )
    count = PageMetric(
        "ops",
        "",
        1.0,
        "equal",
        "WITHIN",
        "ops 412, as before",
        value=412.0,
        baseline=412.0,
        limit=412.0,
        samples=(412.0,),
    )
    path = "models/tests/test_vit.py::"
    return (
        PageTest(
            path + "test_new", "NO_BASELINE", failed=False, worst=5, key="n300", metrics=(new,)
        ),
        PageTest(
            path + "test_crash",
            "NO_DATA",
            failed=True,
            worst=1,
            key="n300",
            metrics=(none,),
            summary="The worker ended during the test: Segmentation fault.",
        ),
        PageTest(
            path + "test_steady",
            "WITHIN",
            failed=False,
            worst=7,
            key="n150",
            metrics=(_metric("wall_time", 7e6, chance), count),
        ),
        PageTest(path + "test_empty", "skipped", failed=False, worst=8, key="n150"),
        PageTest(
            path + "test_steady",
            "WITHIN",
            failed=False,
            worst=7,
            key="n300",
            metrics=(_metric("wall_time", 5e6, chance),),
        ),
    )


def _hostile(id_: str) -> PageTest:
    metric = _metric("wall_time", 3e6, random.Random(4))
    finding = PageFinding("TTP999", id_, "found", evidence=(id_,), fix=(id_,), saving_us=1.0)
    return PageTest(
        id_,
        "WITHIN",
        failed=False,
        worst=7,
        key="n300",
        summary=id_,
        commands=(f"echo '{id_}'",),
        setting=((id_, id_),),
        metrics=(replace(metric, sentence=id_),),
        findings=(finding,),
        trace="javascript:alert(1)",
    )


def _findings() -> tuple[PageFinding, ...]:
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


def _waterfall() -> PageWaterfall:
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


def _region() -> PageRegion:
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


def _timeline() -> PageTimeline:
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


def _sweep() -> PageSweep:
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
                    REGRESSED,
                    (("batch", str(batch)), ("grid", grid)),
                    values,
                    best=batch == 16 and grid == "8x8",
                    frontier=grid == "8x8" and not gone,
                    note="L1 is full" if gone else "",
                )
            )
    columns = (
        PageColumn("wall_time", "ms", 1e-6, "lower"),
        PageColumn("samples_per_second", "1/s", 1.0, "higher"),
    )
    return PageSweep(
        "test_resnet50: batch x grid",
        columns,
        tuple(points),
        "batch 16 on 8x8 is best: 1,676 samples per second.",
    )
