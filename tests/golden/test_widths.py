"""Whole outputs on terminals of four widths: all of it fits, and reads well."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.report.tables import columns_of
from tests.golden.test_checklist import CNN, LLM
from tests.golden.test_command_line import BASELINE, RECORD
from tests.harness.captures import capture, op
from tests.harness.golden import assert_golden
from tests.harness.terminal import Terminal

if TYPE_CHECKING:
    from tests.harness.project import Project

WIDTHS = pytest.mark.parametrize("width", [60, 80, 120, 200])
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
    """Check that nothing is wider than the terminal but a word of a command, and pytest's own."""
    wide = [line for line in text.splitlines() if columns_of(line) > width]
    assert all(re.fullmatch(r" +\S+(?: \\)?|_ \S+ _|FAILED \S+", line) for line in wide), wide
    return text


def ours(text: str) -> str:
    """Return what follows the results: how pytest's own lines begin depends on its version."""
    return text[text.index("=== FAILURES") :]


@WIDTHS
def test_run(models: Project, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    text = Terminal(models, monkeypatch, width=width).pytest("--ttnn-perf", FOLDER)
    assert_golden(f"widths/run_{width}", fits(ours(text), width))


@pytest.mark.parametrize(("name", "option"), [("quiet", "-q"), ("verbose", "-v")])
def test_run_with_less_and_with_more(
    models: Project, monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    text = Terminal(models, monkeypatch, width=80).pytest("--ttnn-perf", FOLDER, option)
    assert_golden(f"widths/run_{name}", fits(ours(text), 80))


def test_failures_that_pytest_does_not_show_are_told(
    models: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, wherever that is."""
    shown = Terminal(models, monkeypatch, width=200).pytest("--ttnn-perf", FOLDER)
    hidden = Terminal(models, monkeypatch, width=200).pytest("--ttnn-perf", FOLDER, "--tb=no")
    for text in (shown, hidden):
        assert text.count("by op: +") == 1
        assert text.count("accept it with:") == 1
        assert text.count("record it with:") == 1


def test_verdicts_have_colours(models: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(models, monkeypatch, width=80, colour=True)
    text = terminal.pytest("--ttnn-perf", FOLDER)
    for code, word in (("31", "REGRESSED"), ("32", "IMPROVED"), ("33", "NO_BASELINE")):
        assert f"\x1b[{code}m{word}\x1b[0m\n" in text
    assert "WITHIN\n" in text
    assert "\x1b" not in terminal.pytest("--ttnn-perf", FOLDER, "--color=no")


@WIDTHS
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("check", ("check", "--csv", "cnn.csv")),
        ("compare", ("compare", "cnn.csv", "slower.csv")),
        ("show", ("show", "cnn.csv")),
        ("analyze", ("analyze", "cores", "--csv", "cnn.csv")),
        ("overview", ("analyze", "cnn.csv")),
        ("rules", ("rules",)),
    ],
)
def test_command(
    models: Project,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    command: tuple[str, ...],
    width: int,
) -> None:
    text = Terminal(models, monkeypatch, width=width).cli(*command)
    if name == "rules":  # as many as tell how they are laid out
        text = "\n".join(text.splitlines()[:8])
    assert_golden(f"widths/{name}_{width}", fits(text, width))


@WIDTHS
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("baseline_list", ("baseline", "list")),
        ("show_run", ("show", "run.json")),
        ("gate", ("gate", "run.json", "--baselines", "baselines")),
        ("compare_runs", ("compare", "run.json", "run.json")),
    ],
)
def test_command_about_runs(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    command: tuple[str, ...],
    width: int,
) -> None:
    (project.path / "run.json").write_text(json.dumps(RECORD))
    folder = project.path / "baselines" / "wormhole_b0-n150-1x1" / "models"
    folder.mkdir(parents=True)
    (folder / "test_resnet.json").write_text(BASELINE)
    text = Terminal(project, monkeypatch, width=width).cli(*command)
    assert_golden(f"widths/{name}_{width}", fits(text, width))
