"""The same code is the same and 5 % are found, while a stored baseline is fooled by the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import ab

if TYPE_CHECKING:
    import pytest


def test_the_machine_is_told_from_the_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert ab.main(["--runs", "5", "--real", "0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "the same code, while the machine gets slower: right is WITHIN",
        "  ttnn-perf ab:      5 of 5 WITHIN",
        "  a stored baseline: 5 of 5 REGRESSED",
        "5 % slower code, while the machine gets faster: right is REGRESSED",
        "  ttnn-perf ab:      5 of 5 REGRESSED",
        "  a stored baseline: 5 of 5 WITHIN",
        "as it should be",
    ]


def test_what_is_not_as_it_should_be_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sides that keep their places: the second one has the drift of every round."""
    monkeypatch.setattr(ab, "DRIFT", 0.0)
    monkeypatch.setattr(ab, "after_is_first", lambda _: True)
    steep = ab.Scene("steep", 0.0, -0.05, "WITHIN")
    monkeypatch.setattr(ab, "SCENES", (steep,))
    assert ab.main(["--runs", "2", "--real", "0"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "NOT as it should be"
