"""Every promise of SECURITY.md names tests that are run by ``make test`` or ``.ci/run``."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Folders that ``.ci/run`` tests in environments of their own.
REAL_PARTS = ("tests/postgresql/",)


def test_every_promise_has_a_test_that_is_run() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = text.partition("| promise | checked by |")[2].partition("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ") and "`tests/" in row]
    assert len(rows) >= 8
    for row in rows:
        files = re.findall(r"`(tests/[\w/.]+)`", row)
        for name in files:
            tests = (ROOT / name).read_text(encoding="utf-8")
            quick = re.split(r"^def (?=test_)", tests, flags=re.MULTILINE)
            marked = [part for part in quick[:-1] if part.rstrip().endswith("@pytest.mark.long")]
            assert len(quick) - 1 > len(marked), f"{name} has only long tests"
            assert "pytestmark = pytest.mark.long" not in tests, name
        if any(name.startswith(REAL_PARTS) for name in files):
            assert f"parts+=' {REAL_PARTS[0].rstrip('/')}'" in (ROOT / ".ci/run").read_text(
                encoding="utf-8"
            )
