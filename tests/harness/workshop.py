"""A model on the simulated accelerator that is optimized step by step, without worker processes.

All of ``ttnn-perf try`` is real but for the workers: each side's own files are run here, so that a
whole session of steps takes seconds. The machine is noisy, and gets slower all the time.
"""

from __future__ import annotations

import importlib
import random
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.settings import Checklist, ProfilerKind, Settings, TestSettings
from pytest_ttnn_perf.experiments import ab
from pytest_ttnn_perf.experiments.rounds import Experiment, Sessions, _flaw
from pytest_ttnn_perf.experiments.try_change import try_change
from pytest_ttnn_perf.measure.observer import Observer
from pytest_ttnn_perf.plugin.worker import checked
from tests.harness.git import git_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pytest

    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.experiments.rounds import Version
    from pytest_ttnn_perf.experiments.try_change import TryResult

EXAMPLES = Path(__file__).parents[2] / "examples"
TEST = "test_model.py::test_model"
MODEL = """
    import numpy as np
    CORES = 8
    WEIGHTS = "bfloat16"
    NEEDLESS = 2
    REPEATED = 2


    class Model:
        def __init__(self, device):
            self.device = device
            device.cores = CORES
            random = np.random.default_rng(7)
            self.weights = [random.standard_normal((32, 32)) / 5 for _ in range(4)]

        def __call__(self, x):
            for _ in range(REPEATED):
                output = self.layers(x)
            return output

        def layers(self, x):
            for weight in [*self.weights, *[np.eye(32)] * NEEDLESS]:
                x = self.device.linear(x, weight, weights=WEIGHTS)
            return x
"""
#: What the test is asked for, in a file that is no test.
TUNING = """
    ROWS = 32
    WARMUP = 1
    ITERATIONS = 3
    PCC = 0.99
    TOLERANCE = 0.02
"""
TESTS = """
    import numpy as np
    import pytest
    from accelerator import Accelerator
    from model import Model
    from tuning import ITERATIONS, PCC, ROWS, TOLERANCE, WARMUP

    @pytest.mark.ttnn_perf(
        warmup=WARMUP, iterations=ITERATIONS, pcc=PCC, tolerance={"*": TOLERANCE},
        target={"sim_time": "0.06 ms"},
    )
    def test_model(ttnn_perf, folder):
        device = Accelerator()
        model = Model(device)
        x = np.random.default_rng(1).standard_normal((ROWS, 32))
        output = ttnn_perf.measure(model, x, sync=device.synchronize, clock=device.clock_ns)
        expected = x
        for weight in model.weights:
            expected = np.maximum(expected @ weight, 0)
        ttnn_perf.check_pcc(expected, output)
        device.write_capture(folder / "warm_up_and_samples.csv")
        model(x)
        device.write_capture(folder / "ops.csv")
        ttnn_perf.attach(folder / "ops.csv")
"""
FILES = {
    "model.py": MODEL,
    "tuning.py": TUNING,
    "test_model.py": TESTS,
    "conftest.py": "",
    "pyproject.toml": '[tool.ttnn_perf]\nreset = "true"\n[tool.other]\nx = 1\n',
    "baselines/example.json": "{}\n",
    ".gitignore": "__pycache__/\n",
}


@dataclass(slots=True)
class Workshop:
    """A project under git, in which steps are tried."""

    path: Path
    #: How much a process differs from the one before, and how much slower each finds the machine.
    noise: float = 0.004
    drift: float = 0.002
    _random: random.Random = field(default_factory=lambda: random.Random(20))
    _processes: int = 0

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=work")
        shutil.copy(EXAMPLES / "accelerator.py", self.root)
        for file, text in FILES.items():
            self.write(file, dedent(text))
        self.commit("Start")

    @property
    def root(self) -> Path:
        return self.path / "project"

    @property
    def settings(self) -> Settings:
        artifacts, baselines = self.root / ".ttnn_perf", self.root / "baselines"
        return Settings(baselines=baselines, artifacts=artifacts, profiler=ProfilerKind.OFF)

    def write(self, file: str, text: str) -> None:
        place = self.root / file
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def edit(self, file: str, before: str, after: str) -> None:
        text = (self.root / file).read_text(encoding="utf-8")
        assert before in text, f"{file} has no {before!r}"
        self.write(file, text.replace(before, after))

    def commit(self, subject: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", subject)

    def git(self, *words: str) -> str:
        """Run git."""
        return git_in(self.root, *words)

    def attempt(self, message: str, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> TryResult:
        """Try what is in the working tree, with workers that are none."""
        monkeypatch.setattr(ab, "Turns", self._turns)
        argv, base = asked.pop("argv", ()), asked.pop("base", None)
        step = Experiment(("try",), argv, 20, self.root, self.settings, lambda *_: None, **asked)
        return try_change(step, message, base)

    def _turns(self, before: Version, after: Version, *_: object) -> InThisProcess:
        return InThisProcess(TEST, self.observe, before, after)

    def observe(self, tree: Path, *, checklist: bool) -> Observation:
        """Run the test of a checked-out version, on a machine that is noisy."""
        folder = self.path / f"process-{self._processes}"
        folder.mkdir()
        self._processes += 1
        observation = run_test(
            TEST,
            tree,
            folder,
            self.settings,
            checklist=checklist,
        )
        return self._slowed(replace(observation, hardware=Hardware("example", "a", simulated=True)))

    def _slowed(self, observation: Observation) -> Observation:
        speed = (1 + self.drift) ** self._processes * (1 + self._random.gauss(0, self.noise))
        return replace(
            observation,
            metrics={
                name: replace(observed, samples=tuple(s * speed for s in observed.samples))
                if observed.metric.compared_by_ratio
                else observed
                for name, observed in observation.metrics.items()
            },
        )


def run_test(
    test: str,
    tree: Path,
    folder: Path,
    settings: Settings,
    *,
    checklist: bool,
) -> Observation:
    """Run a test of a checked-out version as a worker would: it takes the fixture and a folder."""
    file, _, name = test.partition("::")
    with _modules_of(tree):
        function = getattr(importlib.import_module(Path(file).stem), name)
        asked = TestSettings(**function.pytestmark[0].kwargs)
        kind = Checklist.ENFORCE if checklist else Checklist.OFF
        observer = Observer(test, asked, replace(settings, checklist=kind))
        observer.conditions = {}
        function(observer, folder)
        # As what is observed of a device or a compiler.
        facts = getattr(sys.modules.get("model"), "FACTS", {})
        return replace(checked(observer), facts=facts)


class InThisProcess:
    """Takes turns as the workers of two versions do; ``observe`` runs a test of a tree."""

    def __init__(
        self, test: str, observe: Callable[..., Observation], before: Version, after: Version
    ) -> None:
        self._test, self._observe, self._orders = test, observe, after.asked.plan.orders()
        self.before, self.after = Sessions(20), Sessions(20)
        self._sides = ((before, self.before), (after, self.after))

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        assert tests is None or tests == (self._test,)
        order = self._sides if self._orders[number - 1] else self._sides[::-1]
        for version, found in order:
            seen = self._observe(version.move.tree, checklist=number == 1)
            found.measured.setdefault(self._test, []).append(seen)
            flaw = _flaw(seen)
            if flaw is not None:
                found.troubles.setdefault(self._test, f"round {number}: {flaw}")
            found.completed = number
        return None


@contextmanager
def _modules_of(tree: Path) -> Iterator[None]:
    """Have modules of the project imported anew from one version of it."""
    kept = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # two edits within a second look the same to a cache
    sys.path.insert(0, str(tree))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(tree))
        sys.dont_write_bytecode = kept
        for file in tree.glob("*.py"):
            sys.modules.pop(file.stem, None)
