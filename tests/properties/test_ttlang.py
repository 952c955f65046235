"""Any text, and any damage to one, through the readers of tt-lang output and of reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.readers.ops_csv import is_cpp_report, read_cpp_report
from pytest_ttnn_perf.analysis.readers.tt_smi import is_tt_smi, read_tt_smi
from pytest_ttnn_perf.analysis.readers.ttlang import (
    is_perf_summary_json,
    is_ttlang_log,
    parse_ttlang,
    read_perf_summary_json,
    read_ttlang_log,
)
from pytest_ttnn_perf.analysis.readers.ttlang_sim import (
    is_sim_trace,
    read_sim_trace,
)
from pytest_ttnn_perf.core.errors import InputError
from tests.analysis.readers import (
    test_cpp_report,
    test_tt_smi,
    test_ttlang_log,
    test_ttlang_sim,
)
from tests.analysis.readers import ttlang_text as sample
from tests.properties.strategies import FEW, SOME

if TYPE_CHECKING:
    from collections.abc import Callable

import json

READERS: dict[str, tuple[Callable[[Path], object], Callable[[str], bool], str]] = {
    "log": (read_ttlang_log, is_ttlang_log, sample.WHOLE_LOG),
    "summary": (
        read_perf_summary_json,
        is_perf_summary_json,
        json.dumps({
            "arch": "a", "freq_mhz": 1, "max_compute_cores": 2,
            "programs": [test_ttlang_log.PROGRAM],
        }),
    ),
    "trace": (read_sim_trace, is_sim_trace, test_ttlang_sim.text(test_ttlang_sim.OPERATION)),
    "device report": (
        read_cpp_report,
        is_cpp_report,
        test_cpp_report.HEADER + test_cpp_report.ROW * 3,
    ),
    "boards": (read_tt_smi, is_tt_smi, json.dumps({"device_info": [test_tt_smi.DEVICE]})),
}  # fmt: skip
NAMES = st.sampled_from(sorted(READERS))
PIECES = st.sampled_from([
    "\n", " ", "\t", "-1", "0", "9" * 40, "1,", ".", "=", "{", "[", '"', "\\", "\x1b[2m", "\0",
    "├─ ", "─", "(x", "null", "NaN", "1e999", "é", "\u2028", "٣", "=== PERF SUMMARY ===\n",
    "THREAD SUMMARY\n", "SIGNPOST PROFILE\n", "=== CB FLOW GRAPH ===\n", "--- Program 1 ---\n",
])  # fmt: skip


def attempted(folder: pytest.TempPathFactory, name: str, content: bytes) -> None:
    read, recognise, _ = READERS[name]
    file = folder.getbasetemp() / "input"
    file.write_bytes(content)
    recognise(content.decode("utf-8", "replace"))
    refusal = ""
    try:
        read(file)
    except InputError as refused:
        refusal = str(refused)
    assert "\n" not in refusal


@SOME
@given(name=NAMES, content=st.binary(max_size=200) | st.lists(PIECES).map("".join).map(str.encode))
def test_any_content(tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes) -> None:
    attempted(tmp_path_factory, name, content)


@SOME
@given(
    name=NAMES,
    damage=st.lists(st.tuples(st.floats(0, 1), PIECES, st.integers(0, 60)), min_size=1, max_size=4),
)
def test_any_damage(
    tmp_path_factory: pytest.TempPathFactory, name: str, damage: list[tuple[float, str, int]]
) -> None:
    text = READERS[name][2]
    for place, more, fewer in damage:
        at = round(place * len(text))
        text = text[:at] + more + text[at + fewer :]
    attempted(tmp_path_factory, name, text.encode("utf-8", "replace"))


@pytest.mark.parametrize("name", sorted(READERS))
def test_the_samples_are_read(tmp_path: Path, name: str) -> None:
    read, recognise, text = READERS[name]
    file = tmp_path / "input"
    file.write_text(text, encoding="utf-8")
    read(file)
    assert [other for other in READERS if READERS[other][1](text)] == [name]
    assert recognise(text)


@FEW
@given(noise=st.lists(st.text(alphabet="abc =:#{}", max_size=80), max_size=20))
def test_noise_around_sections_changes_nothing(noise: list[str]) -> None:
    other = "".join(f"> {line}\n" for line in noise)
    found = parse_ttlang(other + sample.WHOLE_LOG + other + sample.WHOLE_LOG, Path("x"))
    assert not found.problems
    assert len(found.perf_summaries) == len(found.auto_profiles) == 2
