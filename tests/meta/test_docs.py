"""The generated pages are those of the code; one that is not is found."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.harness.corpus import corpus_folder

ROOT = Path(__file__).parents[2]
CHECK = ["--check"]


def script(name: str) -> Any:
    """Return a script as a module: the pages are no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generate() -> Any:
    return script("generate")


@pytest.fixture
def without_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "no corpus"
    monkeypatch.setenv("TTNN_PERF_CORPUS", str(folder))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a copy of the pages, with what they link to."""
    copy = tmp_path / "project" / "docs"
    shutil.copytree(ROOT / "docs", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, copy.parent)
    shutil.copytree(ROOT / "templates", copy.parent / "templates")
    for linked in ("LICENSE", "examples/board.py"):
        (copy.parent / linked).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / linked, copy.parent / linked)
    return copy


@pytest.mark.usefixtures("without_corpus")
def test_without_the_corpus_its_page_is_said_to_be_unchecked(
    generate: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code = generate.main(CHECK)
    ended = capsys.readouterr()
    assert code == 0, ended.err
    missing = corpus_folder() / "ops_perf" / "bh_p100_dlv3.csv"
    assert ended.out.startswith(f"docs/rules/corpus.md was not checked: no {missing}; ")


@pytest.mark.usefixtures("without_corpus")
def test_missing_and_superfluous_pages_are_found_and_mended(
    generate: Any, docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "rules" / "TTP101.md").rename(docs / "rules" / "TTP999.md")
    (docs / "reference" / "options.md").write_text("# Options\n", encoding="utf-8")
    assert generate.main(CHECK, docs=docs) == 1
    problems = capsys.readouterr().err.splitlines()
    assert problems[:3] == [
        "docs/reference/options.md is stale: run make docs",
        "docs/rules/TTP101.md is missing: run make docs",
        "docs/rules/TTP999.md is of no rule: run make docs",
    ]
    assert "docs/rules/index.md: broken link TTP101.md" in problems
    assert generate.main([], docs=docs) == 0, capsys.readouterr().err
    assert generate.main(CHECK, docs=docs) == 0, capsys.readouterr().err


def test_prose_that_has_to_be_translated_is_found() -> None:
    lint = script("lint")
    page = 'It is told. `told` is code, "told" is quoted.\n\n' + "word " * 45 + ".\n"
    page += "\n```console\n$ pytest\n```\n"
    assert list(lint.wrong_words("page.md", page)) == ["page.md: 'told': use report, show, print"]
    assert "page.md: a sentence of 45 words" in "\n".join(lint.wrong_lengths({"page.md": page}))
    assert len(list(lint.not_run({"page.md": page}))) == 1
    said = page.replace("```console", "<!-- not run: no board -->\n```console")
    assert not list(lint.not_run({"page.md": said}))
