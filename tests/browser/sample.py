"""Pages to look at: a small one with everything that there can be, and a large one."""

from __future__ import annotations

import random
from typing import Any

from msgspec.structs import replace

from pytest_ttnn_perf.history.page_html import (
    Page,
    PageHistory,
    PageMetric,
    PageTest,
)
from tests.browser.sample_ops import findings, journal, region, sweep, timeline, waterfall

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
    words = [metric.outcome for test in tests for metric in test.metrics if metric.gated]
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
            {
                "name": "firmware",
                "before": "18.2",
                "now": "18.4",
            },
            {
                "name": "TT_METAL_SLOW_DISPATCH_MODE",
                "before": "not set",
                "now": "0",
            },
        ),
        trends=(
            {
                "title": "wall_time of 14 tests is 4.1 % more on runner-07",
                "detail": ("since 2026-11-10, on no other host", "4.0 % to 4.3 %, all series"),
                "worse": True,
                "kind": "host",
                "tests": (REGRESSED, IMPROVED),
                "command": "",
            },
            {
                "title": "device_kernel_time of test_resnet50 is 6.2 % less",
                "detail": ("between 1111111 and 2222222",),
                "worse": False,
                "kind": "code",
                "tests": (),
                "command": "ttnn-perf bisect 1111111 2222222 --test test_resnet50",
            },
        ),
        sweeps=(sweep(REGRESSED),),
        journals=(journal(REGRESSED), journal("models/tests/test_vit.py::test_of_another_run")),
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


def _runs(count: int) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "id": f"run-{day}",
            "started_at": f"2026-{10 + day // 30:02}-{day % 30 + 1:02}T02:00:00+00:00",
            "commit": f"{(day + 3) * 2654435761 % 2**40:010x}00",
            "branch": "main",
            "host": "runner-07" if day % 11 > 6 else "runner-03",
            "label": "",
        }
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
        change=slower or 0.004,
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
    kernel = _metric("device_kernel_time", 9_870_000, chance, slower=0.091)
    pcc = PageMetric("pcc", "", 1.0, "higher", "WITHIN", "pcc 0.998712, limit 0.99", limit=0.99)
    pcc = replace(pcc, value=0.998712, samples=(0.998712,))
    first = _metric("first_call_time", 4.2e9, chance)
    first = replace(first, gated=False, outcome="", unit="s", scale=1e-9)
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
        metrics=(
            pcc,
            _regressed_wall_time(chance),
            kernel,
            replace(first, why_ungated="it depends on the kernel cache"),
        ),
        findings=findings(),
        waterfalls=(waterfall(),),
        regions=(region(),),
        timelines=(timeline(),),
        visualizer="ttnn-visualizer --profiler-path .ttnn_perf/reports/test_decode",
        trace="trace.json",
    )


def _regressed_wall_time(chance: random.Random) -> PageMetric:
    """Return a metric with all that a history can have: changes, marks, outcomes, hosts."""
    metric = _metric("wall_time", 12_410_000, chance, slower=0.082, samples=20)
    within = ("WITHIN",)
    faster = {
        "before": 13,
        "after": 14,
        "change": -0.057,
        "worse": False,
        "cause": "code: sharded the attention output",
        "command": "",
    }
    cause = "code: MatmulDeviceOperation took 0.9 ms more"
    slower = {
        "before": 37,
        "after": 38,
        "change": 0.079,
        "worse": True,
        "cause": cause,
        "command": "ttnn-perf bisect 3f0 4f0",
    }
    history = replace(
        metric.history,
        values=tuple(
            value * (1.06 if place < 14 else 1) for place, value in enumerate(metric.history.values)
        ),
        outcomes=within * 14 + ("IMPROVED",) * 2 + within * 13 + ("TOO_NOISY",) + within * 8
        + ("REGRESSED",) * 2,
        marks=("stored",) + ("",) * 15 + ("accepted",) + ("",) * 23,
        changes=(faster, slower),
    )  # fmt: skip
    confirmations = tuple(
        tuple(12_410_000 * 1.081 * chance.lognormvariate(0, 0.004) for _ in range(20))
        for _ in range(2)
    )
    return replace(metric, target=11_900_000.0, confirmations=confirmations, history=history)


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
    steady = _metric("wall_time", 7e6, chance)
    new = replace(steady, outcome="NO_BASELINE", baseline=None, limit=None, change=None)
    new = replace(new, sentence="wall_time has no baseline for n300", history=PageHistory())
    none = PageMetric("wall_time", "ms", 1e-6, "lower", "NO_DATA", "the worker ended: SIGSEGV")
    count = PageMetric("ops", "", 1.0, "equal", "WITHIN", "ops 412, as before", value=412.0)
    count = replace(count, baseline=412.0, limit=412.0, samples=(412.0,))
    file = "models/tests/test_vit.py"
    crash = PageTest(f"{file}::test_crash", "NO_DATA", failed=True, worst=1, key="n300")
    first = PageTest(f"{file}::test_new", "NO_BASELINE", failed=False, worst=5, key="n300")
    within = PageTest(f"{file}::test_steady", "WITHIN", failed=False, worst=7, key="n150")
    return (
        replace(crash, metrics=(none,), summary="The worker ended during the test: SIGSEGV."),
        replace(first, metrics=(new,)),
        replace(within, metrics=(steady, count)),
        replace(within, key="n300", metrics=(_metric("wall_time", 5e6, chance),)),
        PageTest(f"{file}::test_empty", "skipped", failed=False, worst=8, key="n150"),
    )


def _hostile(id_: str) -> PageTest:
    metric = _metric("wall_time", 3e6, random.Random(4))
    finding = {
        "code": "TTP999",
        "title": id_,
        "state": "found",
        "fails": False,
        "region": "",
        "saving_us": 1.0,
        "share": None,
        "evidence": (id_,),
        "fix": (id_,),
    }
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
