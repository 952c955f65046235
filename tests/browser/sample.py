"""Pages to look at: a small one with everything that there can be, and a large one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.history.page_html import Part

#: Ids that would do something if they were markup, or could turn or hide what stands beside them.
HOSTILE = (
    "tests/test_evil.py::test_a[<img src=x onerror=alert(1)>]",
    "tests/test_evil.py::test_b[</script><script>document.title='taken'</script>]",
    "tests/test_evil.py::test_c[<!--<script>]",
    "tests/test_evil.py::test_d[\u202egnp.exe\x1b[31m\x00\u2028]",
    "tests/test_evil.py::test_e[&lt;b&gt; {{ 7*7 }} {% raw %}]",
)
REGRESSED = "models/tests/test_llama.py::test_decode[8B-batch32-seq128]"
IMPROVED = "models/tests/test_resnet50.py::test_resnet50[batch16-device_params0]"
_NO_HISTORY: Part = {name: [] for name in ("runs", "values", "outcomes", "marks")}


def small() -> Part:
    """Return a page with everything."""
    tests = [_regressed(), _improved(), *_others(), *map(_hostile, HOSTILE)]
    words = [metric["outcome"] for each in tests for metric in each["metrics"] if metric["gated"]]
    return {
        "title": "models: 2 of 12 tests failed (n300, 4f0c9d2)",
        "subject": "models (n300, 4f0c9d2)",
        "headline": "2 of 12 tests failed",
        "tone": "bad",
        "facts": [("Commit", "4f0c9d2a71 on main"), ("Hardware", "n300, 2 chips, firmware 18.4")],
        "counts": [(words.count(word), word, "none") for word in dict.fromkeys(words)],
        "runs": _runs(40),
        "tests": tests,
        "rules": {"TTP311": "Matmuls read slowly.\n\n## What to do\nStore them `SHARDED`."},
        "differences": [("firmware", "18.2", "18.4")],
        "notes": ["3 runs of pull requests are left out of histories."],
    }  # fmt: skip


def _test(id_: str, outcome: str, worst: int, **members: object) -> Part:
    empty: Part = {
        name: []
        for name in (
            "setting",
            "commands",
            "metrics",
            "findings",
            "waterfalls",
            "regions",
        )
    }
    texts = dict.fromkeys(("summary", "by_op"), "")
    return {"id": id_, "outcome": outcome, "failed": False, "worst": worst, "key": "n300", **empty,
            **texts, "rules": {"CLEAN": 20, "FOUND": 2, "NOT_MEASURED": 1}, **members}  # fmt: skip


def _runs(count: int) -> list[Part]:
    return [
        {
            "id": f"run-{day}",
            "started_at": f"2026-{10 + day // 30:02}-{day % 30 + 1:02}T02:00:00+00:00",
            "commit": f"{(day + 3) * 2654435761 % 2**40:010x}00",
            "branch": "main",
            "host": "runner-07" if day % 11 > 6 else "runner-03",
            "label": "",
        }
        for day in range(count)
    ]


def _plain_metric(name: str, outcome: str, text: str, **members: object) -> Part:
    numbers = dict.fromkeys(("value", "baseline", "limit", "target", "change"))
    return {"name": name, "unit": "", "scale": 1.0, "better": "lower", "outcome": outcome,
            "whole": name == "ops", "sentence": text, "gated": True, "why_ungated": "",
            "samples": [], "confirmations": [], "history": _NO_HISTORY,
            **numbers, **members}  # fmt: skip


def _metric(
    name: str, level: float, chance: random.Random, *, sessions: int = 40, slower: float = 0.0,
) -> Part:  # fmt: skip
    values = [level * chance.lognormvariate(0, 0.008) for _ in range(sessions)]
    change = slower or 0.004
    values[-1] = level * (1 + change)
    outcome = "REGRESSED" if slower > 0 else "IMPROVED" if slower < 0 else "WITHIN"
    text = f"{name} {values[-1] / 1e6:.2f} ms, baseline {level / 1e6:.2f} ms: {change:+.1%}"
    samples = [values[-1] * chance.lognormvariate(0, 0.004) for _ in range(10)]
    history = {
        "runs": [*range(sessions)],
        "values": values,
        "marks": [""] * sessions,
        "outcomes": ["WITHIN"] * (sessions - 1) + [outcome],
    }
    return _plain_metric(
        name, outcome, text, unit="ms", scale=1e-6, change=change, value=values[-1],
        baseline=level, limit=level * 1.03, samples=samples, history=history,
    )  # fmt: skip


def _regressed() -> Part:
    chance = random.Random(1)
    kernel = _metric("device_kernel_time", 9_870_000, chance, slower=0.091)
    pcc = _plain_metric(
        "pcc",
        "WITHIN",
        "pcc 0.998712, limit 0.99",
        better="higher",
        limit=0.99,
        value=0.998712,
        samples=[0.998712],
    )
    first = {
        **_metric("first_call_time", 4.2e9, chance),
        "gated": False,
        "outcome": "",
        "unit": "s",
        "scale": 1e-9,
        "why_ungated": "it depends on the kernel cache",
    }
    return _test(
        REGRESSED, "REGRESSED", 0,
        failed=True,
        setting=[("batch", "32"), ("trace", "on")],
        summary="wall_time 13.43 ms, baseline 12.41 ms: 8.2 % slower, limit 3.0 %; "
        "confirmed by 2 of 2.",
        by_op="MatmulDeviceOperation took 0.71 ms more: it no longer runs DRAM-sharded.",
        commands=[f"ttnn-perf baseline accept '{REGRESSED}' --reason '...'"],
        metrics=[pcc, _wall_time(chance), kernel, first],
        findings=_findings(),
        waterfalls=[_waterfall()],
        regions=[_region()],
    )  # fmt: skip


def _wall_time(chance: random.Random) -> Part:
    """Return a metric with all that a history can have: marks, outcomes, hosts."""
    metric = _metric("wall_time", 12_410_000, chance, slower=0.082)
    values = metric["history"]["values"]
    history = {
        **metric["history"],
        "values": [value * (1.06 if place < 14 else 1) for place, value in enumerate(values)],
        "outcomes": ["WITHIN"] * 14 + ["IMPROVED"] * 2 + ["WITHIN"] * 13 + ["TOO_NOISY"]
        + ["WITHIN"] * 8 + ["REGRESSED"] * 2,
        "marks": ["stored"] + [""] * 15 + ["accepted"] + [""] * 23,
    }  # fmt: skip
    again = [[1.08 * 12_410_000 * chance.lognormvariate(0, 0.004) for _ in range(20)]] * 2
    return {**metric, "target": 11_900_000.0, "confirmations": again, "history": history}


def _improved() -> Part:
    metric = _metric("wall_time", 4_310_000, random.Random(2), slower=-0.062)
    text = "wall_time 4.043 ms, baseline 4.310 ms: 6.2 % faster."
    return _test(IMPROVED, "IMPROVED", 6, key="n150", summary=text, metrics=[metric])


def _others() -> list[Part]:
    steady = _metric("wall_time", 7e6, random.Random(3))
    new = {
        **steady,
        "outcome": "NO_BASELINE",
        "baseline": None,
        "limit": None,
        "change": None,
        "history": _NO_HISTORY,
        "sentence": "wall_time has no baseline for n300",
    }
    none = _plain_metric("wall_time", "NO_DATA", "the worker ended: SIGSEGV", unit="ms")
    ops = _plain_metric(
        "ops",
        "WITHIN",
        "ops 412, as before",
        better="equal",
        value=412.0,
        baseline=412.0,
        limit=412.0,
        samples=[412.0],
    )
    file = "models/tests/test_vit.py"
    ended = "The worker ended during the test: SIGSEGV."
    return [
        _test(f"{file}::test_crash", "NO_DATA", 1, failed=True, metrics=[none], summary=ended),
        _test(f"{file}::test_new", "NO_BASELINE", 5, metrics=[new]),
        _test(f"{file}::test_steady", "WITHIN", 7, key="n150", metrics=[steady, ops]),
        _test(f"{file}::test_stable", "WITHIN", 7, metrics=[steady]),
        _test(f"{file}::test_empty", "RECORDED", 8, key="n150"),
    ]


def _hostile(id_: str) -> Part:
    metric = {**_metric("wall_time", 3e6, random.Random(4)), "sentence": id_}
    finding = _finding("TTP999", id_, 1.0, evidence=id_)
    return _test(id_, "WITHIN", 7, summary=id_, commands=[f"echo '{id_}'"], setting=[(id_, id_)],
                 metrics=[metric], findings=[finding])  # fmt: skip


def _finding(
    code: str, title: str, saving_us: float | None, state: str = "found", evidence: str = "",
    *, fails: bool = False,
) -> Part:  # fmt: skip
    return {
        "code": code,
        "title": title,
        "state": state,
        "fails": fails,
        "region": "decode",
        "saving_us": saving_us,
        "saving": saving_us and f"{saving_us} of 9870.0 µs",
        "evidence": [evidence],
        "how": "100 % of the bandwidth",
        "fix": "Use `sharded` weights.",
    }


def _findings() -> list[Part]:
    return [
        _finding("TTP311", "matmul-not-dram-sharded", 712.4),
        _finding("TTP203", "layout-conversions", 130.2, evidence="Untilize: 42.2 µs"),
        _finding("TTP901", "pcc-below-limit", None, fails=True),
        _finding("TTP402", "trace-not-used", None, "waived"),
        _finding("TTP304", "low-l1-headroom", None, "without data"),
    ]


def _waterfall() -> Part:
    parts = [
        ("MatmulDeviceOperation 32 x 4096 x 14336", 712.4),
        ("AllGatherAsync", 240.0),
        ("LayerNormDeviceOperation", -96.5),
        ("6 others", 12.0),
        ("Softmax", -101.0),
    ]
    after_us = 9870.0 + sum(change_us for _, change_us in parts)
    rows = [{"name": name, "change_us": us, "cause": "added"} for name, us in parts]
    return {"metric": "device_kernel_time", "region": "decode", "before_us": 9870.0,
            "after_us": after_us, "parts": rows}  # fmt: skip


def _region() -> Part:
    fields = ("name", "shape", "calls", "time_us", "ideal_us", "bound", "intensity", "tflops")
    rows = (
        ("MatmulDeviceOperation", "32 x 4096 x 14336 BF8", 32, 3853.1, 1573.0, "dram", 31.2, 30.1),
        ("ScaledDotProductAttentionDecode", "32 x 8 x 128", 32, 1490.2, 890.0, "dram", 7.8, 6.4),
        ("AllGatherAsync", "32 x 4096 BF16", 64, 1102.0, None, "", None, None),
        ("MatmulDeviceOperation", "2048 x 2048", 4, 864.2, 810.0, "compute", 341.0, 128.9),
        ("BinaryDeviceOperation", "32 x 4096 BF16", 96, 402.7, None, "", 0.17, 0.021),
        *((f"SmallOp{n}", "1 x 32", 4, 60.0 / n, None, "", None, None) for n in range(1, 9)),
    )
    total = sum(row[3] for row in rows)
    ops = [
        {**dict(zip(fields, row, strict=True)), "share": row[3] / total, "cores": 64, "note": ""}
        for row in rows
    ]
    peaks = [("LoFi", 262.0), ("HiFi2", 131.0), ("HiFi4", 65.5)]
    return {"name": "decode", "time_us": total, "ops": ops,
            "roof": {"dram_gb_s": 576.0, "peaks_tflops": peaks},
            "bottleneck": "It is bound by DRAM: 72 % of its time is in ops that are."}  # fmt: skip
