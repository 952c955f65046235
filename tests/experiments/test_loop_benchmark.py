"""What steps are answered by their true effects: the benchmark of that runs, and can fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import optimization_loop
from pytest_ttnn_perf.experiments.journal import Decision

if TYPE_CHECKING:
    import pytest


def test_gains_are_kept_nothing_else_is_and_wrong_answers_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(optimization_loop, "NOISES", (0.005,))
    monkeypatch.setattr(optimization_loop, "EFFECTS", (-0.10, 0.0))
    assert optimization_loop.main(["--runs", "5", "--real", "0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "noise   effect    KEEP  REVERT  CANNOT_TELL  rounds",
        " 0.5%     -10%   100.0%     0.0%     0.0%        4.0",
        " 0.5%      +0%     0.0%   100.0%     0.0%        4.0",
        "as it should be",
    ]

    monkeypatch.setattr(optimization_loop, "decide", lambda *_, **__: (Decision.KEEP, []))
    assert optimization_loop.main(["--runs", "1", "--real", "0"]) == 1
