"""Writes the pages that follow from the code; ``--check`` fails when one is stale."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from pytest_ttnn_perf.model.settings import Settings
from pytest_ttnn_perf.plugin.options import declare_options

DOCS = Path(__file__).parent
OPTIONS_PAGE = DOCS / "reference" / "options.md"

INTRODUCTION = """\
# Options

Generated from the code by `make docs`.

Every option has a twin in `[tool.ttnn_perf]`; see [configuration](configuration.md).
`--ttnn-perf-all`, `--ttnn-perf-update` and `--ttnn-perf-replay` turn the gate on by themselves.

| option | twin | meaning |
|---|---|---|
"""


class Declared:
    """Stands in for pytest's parser and keeps what is declared."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def getgroup(self, *_: str) -> Declared:
        """Return the only group there is."""
        return self

    def addoption(self, name: str, **attributes: Any) -> None:
        """Keep one option as a row of the table."""
        value = attributes.get("metavar") or "\\|".join(attributes.get("choices", ()))
        optional = attributes.get("nargs") == "?"
        shown = f"{name}[={value}]" if optional else f"{name} {value}".strip()
        twin = name.removeprefix("--ttnn-perf").lstrip("-") or "enabled"
        if twin not in {field.name for field in fields(Settings)}:
            message = f"{name} has no twin {twin!r} in the configuration"
            raise SystemExit(message)
        self.rows.append(f"| `{shown}` | `{twin}` | {attributes['help']} |")


def options_page() -> str:
    """Return the table of options."""
    declared = Declared()
    declare_options(declared)  # type: ignore[arg-type]
    return INTRODUCTION + "\n".join(declared.rows) + "\n"


def main() -> int:
    """Write or check every generated page, and check every link."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    problems = broken_links()
    page = options_page()
    if not check:
        OPTIONS_PAGE.parent.mkdir(exist_ok=True)
        OPTIONS_PAGE.write_text(page, encoding="utf-8")
    elif not OPTIONS_PAGE.exists() or OPTIONS_PAGE.read_text(encoding="utf-8") != page:
        problems.append(f"{OPTIONS_PAGE.relative_to(DOCS.parent)} is stale: run make docs")
    for problem in problems:
        print(problem, file=sys.stderr)
    print("documentation: " + ("not current" if problems else "current, all links resolve"))
    return 1 if problems else 0


def broken_links() -> list[str]:
    """Name every link to a file that is not there."""
    pages = [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]
    return [
        f"{page.relative_to(DOCS.parent)}: broken link {target}"
        for page in sorted(pages)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]


if __name__ == "__main__":
    sys.exit(main())
