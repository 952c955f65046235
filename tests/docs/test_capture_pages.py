"""What pages show of ``check`` and ``analyze`` is what these print, of one small capture."""

from __future__ import annotations

import csv
import io
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.captures import COLUMNS, op
from tests.harness.project import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.project import Project

DOCS = Path(__file__).parents[2] / "docs"
TRACED = {"METAL TRACE ID": "0", "METAL TRACE REPLAY SESSION ID": "1"}


def tensor(name: str, rows: int, columns: int, layout: str = "TILE") -> dict[str, str]:
    """Return the cells of an operand."""
    cells = {
        "W_PAD[LOGICAL]": "1[1]",
        "Z_PAD[LOGICAL]": "1[1]",
        "Y_PAD[LOGICAL]": f"{rows}[{rows}]",
        "X_PAD[LOGICAL]": f"{columns}[{columns}]",
        "LAYOUT": layout,
        "DATATYPE": "BFLOAT16",
        "MEMORY": "DEV_0_DRAM_INTERLEAVED",
    }
    return {f"{name}_{cell}": value for cell, value in cells.items()}


def mlp() -> str:
    """Return the capture: two matmuls, and a needless way into rows and back between them."""
    into = {**tensor("INPUT_0", 32, 2048), **tensor("INPUT_1", 2048, 8192)}
    out_of = {**tensor("INPUT_0", 32, 8192), **tensor("INPUT_1", 8192, 2048)}
    wide, in_rows = tensor("OUTPUT_0", 32, 8192), tensor("OUTPUT_0", 32, 8192, "ROW_MAJOR")
    from_rows = tensor("INPUT_0", 32, 8192, "ROW_MAJOR")
    first = tensor("INPUT_0", 32, 8192)
    rows = [
        op("MatmulDeviceOperation", 210_000, {**into, **wide}, cores=24),
        op("UntilizeDeviceOperation", 30_000, {**first, **in_rows}),
        op("TilizeDeviceOperation", 30_000, {**from_rows, **wide}),
        op("UnaryDeviceOperation", 4_000, {**first, **wide}),
        op("MatmulDeviceOperation", 205_000, {**out_of, **tensor("OUTPUT_0", 32, 2048)}),
    ]
    text = io.StringIO()
    columns = dict.fromkeys([*COLUMNS, *tensor("INPUT_1", 1, 1), *wide])
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({**row, **TRACED, "OP TO OP LATENCY [ns]": "700"} for row in rows)
    return text.getvalue()


_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands_of(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each command about the capture on a page, and what is shown of its output."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if re.match(r"ttnn-perf (check|analyze|plan) .*mlp\.csv", command):
                yield command, output


SHOWN = [
    (page, number)
    for page in ("how-to/optimize.md",)
    for number, _ in enumerate(commands_of(DOCS / page))
]


@pytest.mark.parametrize(("page", "number"), SHOWN)
def test_the_output_on_a_page_is_printed(project: Project, page: str, number: int) -> None:
    (project.path / "mlp.csv").write_text(mlp())
    command, shown = list(commands_of(DOCS / page))[number]

    text = project.cli(*shlex.split(command)[1:]).text + "\n"

    kept = re.split(r"^\.\.\.\n", clean(shown) + "\n", flags=re.MULTILINE)
    pattern = ".*?".join(map(re.escape, kept))
    assert re.fullmatch(pattern, text, re.DOTALL), f"{command}\n{text}"
