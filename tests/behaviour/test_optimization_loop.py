"""A session of optimizing on the simulated accelerator: good, useless and unlike steps.

The machine is noisy and drifts; what each honest step is worth follows from the cost of an op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.experiments.journal import Decision, Edit, read_steps, ways_of
from tests.harness.workshop import Workshop

if TYPE_CHECKING:
    from pathlib import Path

#: As examples/accelerator.py has them.
LAUNCH_NS, MULTIPLY_NS, ROWS, WIDTH = 5_000, 40, 32, 32


def cost_ns(*, cores: int, bits: int = 16, needless: int = 2, repeated: int = 2) -> float:
    """Return what a call takes: ops one after another, the first of which is waited for."""
    matmul = ROWS * WIDTH * WIDTH * bits // 16 * MULTIPLY_NS // cores
    unary = ROWS * WIDTH * MULTIPLY_NS // cores
    return LAUNCH_NS + repeated * (4 + needless) * (matmul + unary)


#: What is done to model.py, and what a call takes before and after.
START = {"cores": 8}
HONEST = (
    ("16 cores", "CORES = 8", "CORES = 16", {"cores": 16}),
    ("compute once", "REPEATED = 2", "REPEATED = 1", {"repeated": 1}),
    ("32 cores", "CORES = 16", "CORES = 32", {"cores": 32}),
    ("one identity less", "NEEDLESS = 2", "NEEDLESS = 1", {"needless": 1}),
)
#: What decides a measurement: the file, its edit, and the name of the reason.
UNLIKE = {
    "loosened tolerance": ("tuning.py", "0.02", "0.5", Edit.TOLERANCE),
    "edited test": ("test_model.py", "(ROWS, 32)", "(ROWS, 32)[:]", Edit.TEST),
    "edited conftest": ("conftest.py", "", "collect_ignore = []\n", Edit.CONFTEST),
    "edited configuration": ("pyproject.toml", '"true"', '"false"', Edit.CONFIGURATION),
}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("workshop"))


@pytest.mark.parametrize("name", list(UNLIKE))
def test_sides_that_are_not_measured_alike_are_refused_by_name(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file, before, after, edit = UNLIKE[name]
    workshop.edit(file, before, after)
    try:
        tried = workshop.attempt(name, monkeypatch)
    finally:
        workshop.git("checkout", "--quiet", ".")

    assert tried.step.decision is Decision.NOT_COMPARABLE
    assert edit.value in {refusal.edit for refusal in tried.step.refusals}, tried.step.refusals
    assert tried.step.effects == (), "what means nothing is not told"
    assert tried.step.rounds <= 1, "and not measured for long"


def test_honest_steps_are_kept_and_their_effects_lie_in_their_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the user commits a kept step, or goes on without."""
    workshop = Workshop(tmp_path)
    now = dict(START)
    for number, (message, before, after, what) in enumerate(HONEST):
        workshop.edit("model.py", before, after)
        then, now = now, {**now, **what}

        tried = workshop.attempt(message, monkeypatch)

        true = cost_ns(**now) / cost_ns(**then) - 1
        effect = next(e for e in tried.step.effects if e.metric == "sim_time")
        assert tried.step.decision is Decision.KEEP, tried.step.reasons
        assert effect.low is not None
        assert effect.high is not None
        assert effect.low <= true <= effect.high, (message, effect)
        if number in {0, 1}:
            workshop.commit(message)

    (way,) = ways_of(read_steps(workshop.settings.artifacts))
    assert len(way.parts) == len(HONEST)
    total = way.first + sum(part.counts for part in way.parts) + way.unexplained
    assert total == pytest.approx(way.now, rel=1e-12)
