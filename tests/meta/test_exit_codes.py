"""The table of exit codes is what the code ends with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ttnn_perf.cli.main import ExitCode
from pytest_ttnn_perf.plugin.orchestrator import EXIT_SHIFTED

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"


def table() -> dict[int, tuple[str, str]]:
    """Return what the page says of each code: of ``ttnn-perf``, and of pytest."""
    rows = re.findall(r"^\| (\d+) \|(.*)\|(.*)\|$", PAGE.read_text(), flags=re.MULTILINE)
    assert len({code for code, _, _ in rows}) == len(rows)
    return {int(code): (ours.strip(), pytests.strip()) for code, ours, pytests in rows}


def test_all_codes_are_in_the_table_and_no_other() -> None:
    assert {code for code, (ours, _) in table().items() if ours} == set(ExitCode)
    codes_of_pytest = {*pytest.ExitCode, EXIT_SHIFTED}
    assert {code for code, (_, pytests) in table().items() if pytests} == codes_of_pytest
    assert int(ExitCode.SHIFTED) == EXIT_SHIFTED
    assert ExitCode.INTERNAL_ERROR not in codes_of_pytest
