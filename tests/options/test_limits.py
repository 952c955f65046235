"""``limits``: whether tests may ask for less PCC than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of, failure_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: What these correlate with: about 0.97, and a little more than 0.999.
BAD, GOOD = "[0.0, 1, 2, 2.3]", "[0.0, 1, 2, 3.1]"


def write(project: Project, *checks: tuple[str, str]) -> None:
    """Write a test for each check of ``bad`` and ``good`` outputs, and marker."""
    tests = "".join(
        f"@pytest.mark.ttnn_perf({marker})\ndef test_{n}(ttnn_perf): {check}\n\n"
        for n, (check, marker) in enumerate(checks)
    )
    arrays = f"expected, bad, good = map(np.array, ([0.0, 1, 2, 3], {BAD}, {GOOD}))"
    project.write(test_model=f"import numpy as np\nimport pytest\n\n{arrays}\n\n{tests}")


LOWERED = [
    ("ttnn_perf.check_pcc(expected, bad, at_least=0.9)", ""),
    ("ttnn_perf.check_pcc(expected, bad)", "pcc=0.9"),
    ("ttnn_perf.check_accuracy(pcc=0.97, at_least=0.9)", ""),
    ("ttnn_perf.check_accuracy(pcc=0.97)", ""),
]


@pytest.mark.parametrize("arguments", [[], ["--ttnn-perf"]], ids=["idle", "gated"])
def test_strict_limits_hold_whatever_a_test_asks_for(
    project: Project, arguments: list[str]
) -> None:
    write(project, *LOWERED)
    configure(project, 'limits = "strict"', 'missing = "ignore"', 'ignore = ["TTP9"]')

    ran = project.pytest(*arguments)

    assert counts_of(ran) == "4 failed"
    said = ", limit 0.99" if arguments else "expected at least 0.99"
    assert all(said in failure_of(ran, f"test_{n}") for n in range(4))
