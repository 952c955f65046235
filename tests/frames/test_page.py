"""The page for notebooks: its example runs, its output is real, its columns are those of frames."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from pytest_ttnn_perf import frames

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "notebook.py"
PAGE = (ROOT / "docs" / "how-to" / "use-in-a-notebook.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_prints_what_the_page_shows() -> None:
    command = [sys.executable, "-X", "utf8", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    assert [printed] == blocks("text")


def test_the_page_has_the_code_of_the_example() -> None:
    code = textwrap.dedent(SCRIPT.read_text(encoding="utf-8"))
    lines = [line.strip() for line in code.splitlines()]
    missing = [
        line for block in blocks("py") for line in block.splitlines() if line.strip() not in lines
    ]
    assert missing == []


def test_every_column_is_described() -> None:
    for name, columns in frames.COLUMNS.items():
        section = PAGE.partition(f"### {name}\n")[2].partition("\n###")[0]
        assert set(re.findall(r"`(\w+)`", section)) >= set(columns), name
