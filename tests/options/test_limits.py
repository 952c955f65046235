"""``limits``: whether tests may ask for less PCC than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of, failure_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: What these correlate with: about 0.97, and a little more than 0.999.
BAD, GOOD = "[0.0, 1, 2, 2.3]", "[0.0, 1, 2, 3.1]"


def write(project: Project, check: str, *, marker: str = "") -> None:
    """Write a test that makes this check of ``bad`` and ``good`` outputs."""
    project.write(
        test_model=f"""
            import numpy as np
            import pytest

            expected = np.array([0.0, 1, 2, 3])
            bad, good = np.array({BAD}), np.array({GOOD})

            @pytest.mark.ttnn_perf({marker})
            def test_model(ttnn_perf):
                {check}
        """
    )


LOWERED = [
    ("ttnn_perf.check_pcc(expected, bad, at_least=0.9)", ""),
    ("ttnn_perf.check_pcc(expected, bad)", "pcc=0.9"),
    ("ttnn_perf.check_accuracy(pcc=0.97, at_least=0.9)", ""),
    ("ttnn_perf.check_accuracy(pcc=0.97)", ""),
]


@pytest.mark.parametrize("arguments", [[], ["--ttnn-perf"]], ids=["idle", "gated"])
@pytest.mark.parametrize(("check", "marker"), LOWERED)
def test_strict_limits_hold_whatever_a_test_asks_for(
    project: Project, arguments: list[str], check: str, marker: str
) -> None:
    write(project, check, marker=marker)
    configure(project, 'limits = "strict"', 'missing = "ignore"', 'ignore = ["TTP9"]')

    ran = project.pytest(*arguments)

    assert counts_of(ran) == "1 failed"
    text = failure_of(ran)
    assert ("below its limit 0.99" if arguments else "expected at least 0.99") in text


@pytest.mark.parametrize("limits", ['limits = "asked"', "confirm = 0"], ids=["asked", "default"])
@pytest.mark.parametrize(("check", "marker"), LOWERED[:3])
def test_limits_are_as_asked_otherwise_and_named(
    project: Project, limits: str, check: str, marker: str
) -> None:
    write(project, check, marker=marker)
    configure(project, limits, 'missing = "ignore"')

    ran = project.pytest("--ttnn-perf")

    assert counts_of(ran) == "1 passed"
    assert "TTP906 pcc-limit-lowered" in ran.text


def test_a_good_pcc_and_other_accuracies_are_as_ever(project: Project) -> None:
    write(
        project,
        "ttnn_perf.check_pcc(expected, good, at_least=0.9); "
        "ttnn_perf.check_accuracy(top1=0.7, at_least=0.6); "
        "ttnn_perf.check_accuracy(pcc_error=0.1, at_most=0.2)",
    )
    configure(project, 'limits = "strict"', 'missing = "ignore"')
    ran = project.pytest("--ttnn-perf")
    assert counts_of(ran) == "1 passed"
    assert "TTP906" not in ran.text
