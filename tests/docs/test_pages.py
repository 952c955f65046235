"""What pages show is what a reader gets: their files are written, their commands run."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.settings import ProfilerKind, Settings
from pytest_ttnn_perf.experiments import ab
from tests.docs.pages import ROOT, Reader
from tests.docs.test_capture_pages import mlp
from tests.harness.project import run_command
from tests.harness.workshop import InThisProcess, run_test

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.experiments.rounds import Version

#: Pages that are whole: what their commands need is on the page. The first two are what newcomers
#: follow; ``make test-all`` follows the others, too.
FIRST_PAGES = ("README.md", "docs/tutorial.md")
PAGES = (
    "docs/how-to/baselines.md",
    "docs/how-to/noise.md",
    "docs/how-to/optimize.md",
    "docs/how-to/why-slower.md",
    "docs/how-to/measure-a-model.md",
    "docs/how-to/judge-a-run-from-elsewhere.md",
    "docs/how-to/sweep.md",
    "docs/how-to/measure-an-llm.md",
    "docs/how-to/let-an-agent-optimize.md",
    "docs/how-to/use-benchmark-json.md",
    "docs/how-to/keep-a-history-database.md",
    "docs/explanation/how-the-gate-decides.md",
    "docs/reference/files.md",
)
#: Whole pages that try many changes, and the test that these are measured by. ``ttnn-perf`` runs in
#: this process and so do both sides of its rounds: with workers, as optimize.md has them, each page
#: would take a minute of a processor.
WALKS = {
    "docs/how-to/optimize-a-cnn.md": "test_cnn.py::test_cnn",
    "docs/how-to/optimize-a-language-model.md": "test_llm.py::test_decode",
}


@pytest.mark.parametrize(
    "page", [*FIRST_PAGES, *(pytest.param(page, marks=pytest.mark.long) for page in PAGES)]
)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    if "mlp.csv" in (ROOT / page).read_text(encoding="utf-8"):
        (folder / "mlp.csv").write_text(mlp())
    _follow(page, Reader(folder))


@pytest.mark.long
@pytest.mark.parametrize("page", WALKS)
def test_a_walk_shows_what_its_commands_print(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(ab, "Turns", partial(_turns, WALKS[page], tmp_path))
    _follow(page, Reader(_folder(tmp_path), run_here=_run_here))


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "reader"
    folder.mkdir()
    return folder


def _follow(page: str, reader: Reader) -> None:
    differences = [
        f"$ {command}\nnot printed, or not in this order:\n" + "\n".join(missing) + f"\n{output}"
        for command, missing, output in reader.follow(page)
        if missing
    ]
    assert not differences, "\n\n".join(differences)


def _turns(test: str, folder: Path, before: Version, after: Version, *_: object) -> InThisProcess:
    settings = Settings(
        baselines=folder / "reader/baselines",
        artifacts=folder / "reader/.ttnn_perf",
        profiler=ProfilerKind.OFF,
    )

    def observe(tree: Path, *, checklist: bool) -> Observation:
        return run_test(test, tree, folder, settings, checklist=checklist)

    return InThisProcess(test, observe, before, after)


def _run_here(folder: Path, arguments: list[str]) -> str:
    before = Path.cwd()
    os.chdir(folder)
    try:
        ran = run_command(*arguments)
    finally:
        os.chdir(before)
    return ran.errors + ran.text
