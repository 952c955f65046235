"""``check_pcc`` and ``check_accuracy`` under the gate: absolute limits, told at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    entry_of,
    failure_of,
    outcomes,
    record_of,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Passes without a baseline: an absolute limit holds all the same.
QUIET = ("--ttnn-perf", "--ttnn-perf-missing=ignore")


def write_lines(project: Project, *lines: str) -> None:
    """Write a test from the lines of its body; ``up`` is a tensor, ``-up`` its opposite."""
    body = "".join(f"    {line}\n" for line in ("up = np.arange(4.0)", *lines))
    project.write(test_model=f"import numpy as np\n\ndef test_model(ttnn_perf):\n{body}")


#: Each call, and what the record keeps: limits, or the mistake in it.
LIMITS: dict[str, dict[str, tuple[float | None, float | None]]] = {
    "top1=0.8, top5=0.9, at_least=0.75": {"top1": (0.75, None), "top5": (0.75, None)},
    "top1=0.8, top5=0.9, at_least={'top5': 0.85}": {"top1": (None, None), "top5": (0.85, None)},
    "top1=0.8, fid=12, at_least={'top1': 0.75}, at_most={'fid': 20}": {
        "top1": (0.75, None),
        "fid": (None, 20),
    },
}
MISTAKES = {
    "top1=0.8, at_least={'top5': 0.9}": "at_least names top5, which is not among the values (top1)",
    "fid=3, at_most='low'": "at_most: expected a finite number, found 'low'",
    "fid=3, at_most={'fid': float('nan')}": "at_most: expected a finite number, found nan",
    "top1='good'": "top1: sample 0 is not a number: 'good'",
}
BROKEN = {
    "check_accuracy(top1=0.8, top5=0.8, at_least={'top5': 0.85})":
        "BELOW_LIMIT: top5 0.8, limit 0.85",
    "check_accuracy(ppl=9, at_least=1, at_most=5)": "ABOVE_LIMIT: ppl 9, limit 5",
    "check_pcc(up, up[:2])":
        "NO_DATA: pcc is not a finite number: expected has shape (4,) and actual has shape (2,): "
        "PCC does not exist",
    "check_pcc(up, np.where(up == 2, np.inf, up))":
        "NO_DATA: pcc is not a finite number: actual holds 0 NaN and 1 infinite of 4 values, "
        "the first (inf) at [2]: PCC does not exist",
    "check_accuracy(top1=float('nan'), at_least=0.75)":
        "NO_DATA: top1 is not a finite number: sample 1 of 1",
}  # fmt: skip


def test_limits_are_kept_and_broken_ones_fail(project: Project) -> None:
    calls = [f"check_accuracy({each})" for each in (*LIMITS, *MISTAKES)]
    tests = (
        f"def test_{number:02}(ttnn_perf):\n    ttnn_perf.{call}\n"
        for number, call in enumerate([*calls, *BROKEN])
    )
    heading = "import numpy as np\nup = np.arange(4.0)\n\n"
    project.write(test_model=heading + "\n".join(tests))

    ran = project.pytest(*QUIET)

    # A mistake is shown where the test made it, and not in our source.
    assert "pytest_ttnn_perf.UsageError: top1: sample 0 is not a number: 'good'" in ran.text
    assert "raise UsageError" not in ran.text
    found = list(record_of(project)["tests"].values())
    kept, mistaken = found[: len(LIMITS)], found[len(LIMITS) : len(calls)]
    assert counts_of(ran) == f"{len(MISTAKES) + len(BROKEN)} failed, {len(LIMITS)} passed"
    for entry, limits in zip(kept, LIMITS.values(), strict=True):
        metrics = entry["metrics"]
        assert {n: (m.get("at_least"), m.get("at_most")) for n, m in metrics.items()} == limits
        assert {m["better"] for m in metrics.values() if "at_most" in m} <= {"lower"}
        assert {m["kind"] for m in metrics.values()} == {"accuracy"}
    assert [each["raised"] for each in mistaken] == [f"UsageError: {m}" for m in MISTAKES.values()]
    for number, sentence in enumerate(BROKEN.values(), start=len(calls)):
        first, *more = failure_of(ran, f"test_{number:02}").splitlines()
        assert first == sentence
        fix = "  fix the model, or change the limit in the test; no update accepts this"
        assert more == [fix] or sentence.startswith("NO_DATA")


def test_errors_of_a_pcc_are_recorded_beside_it_and_not_gated(project: Project) -> None:
    write_lines(
        project,
        "ttnn_perf.check_pcc(up, up + 1, name='encoder')",
        "ttnn_perf.check_pcc(0 * up, 0 * up)",
    )

    ran = project.pytest(*QUIET)

    metrics = entry_of(project)["metrics"]
    assert metrics["encoder_max_abs_error"]["samples"] == [1.0]
    assert metrics["encoder_relative_l2"]["samples"] == [pytest.approx(2 / 14**0.5)]
    assert outcomes(project) == {"encoder": "NO_BASELINE", "pcc": "NO_BASELINE"}
    # Constant tensors that agree pass with a note.
    assert counts_of(ran) == "1 passed"
    assert (
        "note test_model.py::test_model: pcc: both sides are constant at 0.0: PCC is 0/0 and 1.0 "
        "by definition"
    ) in ran.text.splitlines()
