"""What pages show is what a reader gets: their files are written, their commands run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import Reader

if TYPE_CHECKING:
    from pathlib import Path

#: Pages that are whole: what their commands need is on the page.
PAGES = (
    "docs/tutorial.md",
    "docs/how-to/accept-from-ci.md",
    "docs/how-to/judge-a-run-from-elsewhere.md",
    "docs/how-to/deal-with-noise.md",
    "docs/how-to/optimize-step-by-step.md",
    "docs/how-to/sweep.md",
    "docs/how-to/measure-an-llm.md",
    "docs/how-to/keys-and-identities.md",
    "docs/how-to/let-an-agent-optimize.md",
    "docs/how-to/use-benchmark-json.md",
    "docs/how-to/keep-a-history-database.md",
    "docs/how-to/look-at-a-report.md",
    "docs/explanation/how-the-gate-decides.md",
    "docs/reference/files.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    differences = [
        f"$ {command}\nnot printed, or not in this order:\n" + "\n".join(missing) + f"\n{output}"
        for command, missing, output in Reader(folder).follow(page)
        if missing
    ]
    assert not differences, "\n\n".join(differences)
