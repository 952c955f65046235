"""What makes a test slower on the host is named, on a clock that functions move themselves."""

from __future__ import annotations

import re
import sys
from textwrap import dedent
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.experiments import host
from pytest_ttnn_perf.experiments.host import CallRecorder, host_sentence
from pytest_ttnn_perf.measure.timing import Stopwatch, Timings, Workload, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: Nanoseconds; each function says itself how long it takes.
NOW = [0]

TTNN = """
def add(a, b): NOW[0] += 4000
def to_memory_config(x): NOW[0] += 2000
def to_layout(x): NOW[0] += 3000; return _tile(x)
def _tile(x): NOW[0] += 1000
def from_torch(x): NOW[0] += 9000
def synchronize_device(d=0): NOW[0] += 6000
class Operation:
    def __init__(self, name): self.python_fully_qualified_name = name
    def __call__(self, *x): NOW[0] += 5000
matmul, softmax = Operation("ttnn.matmul"), Operation("ttnn.softmax")
"""
MODEL = """
import functools
import ttnn
masks = {}
@functools.lru_cache
def rotation(n): NOW[0] += 8000; return n
def mask(n): NOW[0] += 7000; return n
def cached_mask(n):
    if n not in masks: masks[n] = mask(n)
    return masks[n]
def scale(x): NOW[0] += 1000; return x
def convert(x): NOW[0] += 5000; return x
class Layer:
    def norm(self, x): NOW[0] += 2000; return x
    def forward(self, x):
        self.norm(x)
        ttnn.matmul(x, x)
        ttnn.add(x, x)
        rotation(3); cached_mask(3); scale(x)
        return x
layers = [Layer() for _ in range(12)]
def forward():
    x = 1
    for layer in layers: x = layer.forward(x)
    ttnn.to_memory_config(x)
    def head(x): NOW[0] += 1500; return x
    return head(x)
"""
#: What is replaced, what with, and the function that is then to be named.
PLANTED = [
    ("ttnn.to_memory_config(x)", "[ttnn.to_memory_config(x) for _ in 'abc']",
     "ttnn.to_memory_config"),
    ("ttnn.matmul(x, x)", "ttnn.matmul(x, x); ttnn.matmul(x, x)", "ttnn.matmul"),
    ("scale(x)\n", "[scale(x) for _ in range(9)]\n", "model.scale"),
    ("self.norm(x)\n", "self.norm(self.norm(x))\n", "model.Layer.norm"),
    ("return head(x)", "return head(head(head(head(x))))", "model.forward.head"),
    ("NOW[0] += 1000; return x", "NOW[0] += 4000; return x", "model.scale"),
    ("NOW[0] += 2000; return x", "NOW[0] += 3000; return x", "model.Layer.norm"),
    ("NOW[0] += 1500", "NOW[0] += 9500", "model.forward.head"),
    ("for layer in layers:", "NOW[0] += 20000\n    for layer in layers:", "model.forward"),
    ("        rotation(3)", "        NOW[0] += 700\n        rotation(3)", "model.Layer.forward"),
    ("@functools.lru_cache\n", "", "model.rotation"),
    ("if n not in masks: masks", "masks", "model.mask"),
    ("cached_mask(3)", "cached_mask(NOW[0])", "model.mask"),
    ("rotation(3)", "rotation.cache_clear(); rotation(3)", "model.rotation"),
    ("        return x\nlayers", "        ttnn.synchronize_device()\n        return x\nlayers",
     "ttnn.synchronize_device"),
    ("    x = 1\n", "    x = 1\n    ttnn.synchronize_device()\n", "ttnn.synchronize_device"),
    ("scale(x)\n", "scale(x); ttnn.softmax(x)\n", "ttnn.softmax"),
    ("    x = 1\n", "    x = ttnn.from_torch(1)\n", "ttnn.from_torch"),
    ("ttnn.add(x, x)", "ttnn.add(ttnn.to_layout(x), x)", "ttnn.to_layout"),
    ("    x = 1\n", "    x = convert(1)\n", "model.convert"),
]  # fmt: skip


@pytest.fixture
def profiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], tuple[dict[str, Any], float]]]:
    """Profile a model, and say how long it takes in ns."""
    ttnn = ModuleType("ttnn")
    vars(ttnn)["NOW"] = NOW
    exec(compile(TTNN, "ttnn/__init__.py", "exec"), vars(ttnn))
    monkeypatch.setitem(sys.modules, "ttnn", ttnn)
    monkeypatch.setattr(host, "perf_counter_ns", lambda: NOW[0])

    def profile(source: str) -> tuple[dict[str, Any], float]:
        model = {"NOW": NOW, "__name__": "model"}
        exec(compile(source, str(tmp_path / "model.py"), "exec"), model)
        timings, recorder = Timings(), CallRecorder(tmp_path)
        monkeypatch.setattr(Stopwatch, "recorder", recorder)
        workload = Workload(model["forward"], clock=lambda: NOW[0])  # type: ignore[arg-type]
        measure(workload, timings, warmup=1, iterations=3)
        return recorder.take(), timings.samples_ns[-1]

    yield profile
    assert sys.getprofile() is None


@pytest.mark.parametrize(("old", "new", "named"), PLANTED)
def test_the_function_that_makes_a_model_slower_is_named(
    profiled: Callable[[str], tuple[dict[str, Any], float]], old: str, new: str, named: str
) -> None:
    (then, then_ns), (now, now_ns) = profiled(MODEL), profiled(MODEL.replace(old, new))
    assert MODEL.count(old) >= 1
    sentence = host_sentence(then, now, now_ns - then_ns)
    assert sentence is not None
    first = sentence.partition(", ")[2]
    assert first.startswith(f"{named} "), sentence
    assert re.search(r"\((model|ttnn/__init__)\.py:\d+\)", first)


def test_calls_of_an_op_and_what_they_do_not_explain_are_said(
    profiled: Callable[[str], tuple[dict[str, Any], float]],
) -> None:
    old, new, _ = PLANTED[0]
    (then, _), (now, _) = profiled(MODEL), profiled(MODEL.replace(old, new))
    line = 1 + MODEL[: MODEL.index(old)].count("\n")
    assert host_sentence(then, now, 180_000.0) == dedent(f"""\
        host: +180.0 µs, ttnn.to_memory_config 1 → 3 calls (model.py:{line}); \
        +176.0 µs not explained by these""").replace("        ", "")
    assert host_sentence(then, then, 5000.0) is None
