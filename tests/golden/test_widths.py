"""Whole outputs on terminals of three widths: all of it fits, and reads well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.observation import Outcome, Reason, Shift, Verdict
from pytest_ttnn_perf.report.sentences import Rerun
from pytest_ttnn_perf.report.tables import Style, columns_of, printed
from pytest_ttnn_perf.report.terminal import summary_lines
from tests.golden.test_checklist import CNN, LLM
from tests.harness.captures import capture, op
from tests.harness.ci_report import PCC, judged, told, verdict
from tests.harness.golden import assert_golden
from tests.harness.terminal import Terminal

if TYPE_CHECKING:
    from tests.harness.project import Project

WIDTHS = (60, 80, 120)
FOLDER = "models/demos/wormhole/llama/tests"
#: A regression that ops explain, a gain, a new test, a steady one, and a long id.
MODELS = """
    import os

    import pytest

    now = "NOW" in os.environ

    @pytest.mark.parametrize("layer", ["sliding-bfloat8_b-device_params0-batch32-seq4096"])
    def test_decode_of_the_whole_model(ttnn_perf, layer):
        ttnn_perf.attach("slower.csv" if now else "cnn.csv")

    def test_gained(ttnn_perf):
        ttnn_perf.record("latency", [8.0, 8.1, 8.2] if now else [10.0, 10.1, 9.9], unit="ms")

    def test_steady(ttnn_perf):
        ttnn_perf.record("latency", [10.0, 10.1, 9.9], unit="ms")
        ttnn_perf.record("tokens", 5, kind="count")

    if now:
        def test_new(ttnn_perf):
            ttnn_perf.record("latency", [10.0, 10.1, 9.9], unit="ms")
"""
SLOWER = (*CNN[:1], *(op("Conv2dDeviceOperation", 99_000, cores=16) for _ in range(3)), *CNN[4:])


@pytest.fixture
def models(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a baseline, whose models have changed since."""
    for name, rows in (("cnn", CNN), ("llm", LLM), ("slower", SLOWER)):
        (project.path / f"{name}.csv").write_text(capture(*rows))
    folder = project.path / FOLDER
    folder.mkdir(parents=True)
    project.write(**{f"{FOLDER}/test_llama": MODELS})
    assert project.pytest("--ttnn-perf-update=new").code == 0
    monkeypatch.setenv("NOW", "yes")
    return project


def fits(text: str, width: int) -> str:
    """Check that nothing is wider than the terminal but commands, and pytest's own."""
    wide = [line for line in text.splitlines() if columns_of(line) > width]
    assert all(
        re.fullmatch(r" +\S.*: (?:pytest|ttnn-perf) .*|_ \S+ _|FAILED \S+", line) for line in wide
    ), wide
    return text


def ours(text: str) -> str:
    """Return failures and summary: how pytest's own lines begin depends on its version."""
    return text[text.index("=== FAILURES") :]


def test_run(models: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in WIDTHS:
        text = Terminal(models, monkeypatch, width=width).pytest("--ttnn-perf", FOLDER)
        assert_golden(f"widths/run_{width}", fits(ours(text), width))
    terminal = Terminal(models, monkeypatch, width=80, colour=True)
    text = terminal.pytest("--ttnn-perf", FOLDER)
    for code, word in (("31", "REGRESSED"), ("32", "IMPROVED"), ("33", "NO_BASELINE")):
        assert f"\x1b[{code}m{word}\x1b[0m\n" in text
    assert "\x1b" not in terminal.pytest("--ttnn-perf", FOLDER, "--color=no")


def test_standard_messages() -> None:
    """One of each outcome, the worst first, and a machine that is slower."""
    verdicts = {
        "regressed": verdict(Outcome.REGRESSED, confirmed=(12.1e6, 11.9e6)),
        "limit": Verdict(
            PCC, Outcome.REGRESSED, observed=0.962171, bound=0.99, reason=Reason.ABSOLUTE_LIMIT,
            detail="logits, worst of 3 outputs",
        ),
        "noisy": verdict(Outcome.TOO_NOISY),
        "other": verdict(Outcome.NOT_COMPARABLE),
        "raised": verdict(Outcome.NO_DATA),
        "new": verdict(Outcome.NO_BASELINE),
        "faster": verdict(Outcome.IMPROVED),
        "shifted": replace(verdict(Outcome.REGRESSED), outcome=Outcome.SHIFTED),
    }  # fmt: skip
    tests = [judged(f"models/test_llama.py::test_{name}", v) for name, v in verdicts.items()]
    shift = Shift(0.26, 6, 6, ("governor performance → powersave",))
    run = told(*tests, shift=shift)
    rerun = Rerun(record=".ttnn_perf/runs/run.json", base="3ab6072")
    options = replace(run.summary_options, rerun=rerun, record=rerun.record)
    for width in WIDTHS:
        lines = printed(summary_lines(tests, summary_options=options), Style(width, wrap=True))
        assert_golden(f"widths/messages_{width}", fits("\n".join(lines), width))
