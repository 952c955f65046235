"""What is written is what is read: every record, through the text that reaches the disk."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.baseline import decode_file, encode_text
from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.files import parse_json
from pytest_ttnn_perf.core.observation import decode_run, encode_run
from pytest_ttnn_perf.gate.record import Journal
from pytest_ttnn_perf.gate.store import ops_text, read_ops_file
from pytest_ttnn_perf.report.run import run_text
from tests.properties.records import BASELINE_FILES, OPS, runs
from tests.properties.strategies import FEW, SOME

if TYPE_CHECKING:
    import pytest

    from pytest_ttnn_perf.core.baseline import BaselineFile
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.ops import OpGroups

#: A session on a line of its own, as the layout of baselines promises.
_SESSION = re.compile(r"^ {12}\[.*\],?$", re.MULTILINE)


@SOME
@given(runs(), runs(judged=False))
def test_a_run_survives_json_and_the_layout_of_its_record(run: Run, unjudged: Run) -> None:
    assert decode_run(json.loads(json.dumps(encode_run(run), allow_nan=False))) == run
    assert parse_json(run_text(unjudged), decode_run, file=Path("run.json")) == unjudged


@FEW
@given(run=runs(judged=False))
def test_a_journal_holds_what_was_observed(
    tmp_path_factory: pytest.TempPathFactory, run: Run
) -> None:
    journal = Journal(tmp_path_factory.mktemp("artifacts") / "runs" / "journal.jsonl")
    journal.open(run)
    for judged in run.tests.values():
        journal.add(judged.observation.test, encode(judged.observation))
    read = read_run(journal.file)
    journal.close()
    expected = {name: judged.observation for name, judged in run.tests.items()}
    assert {name: judged.observation for name, judged in read.tests.items()} == expected
    assert (read.hardware, read.environment, read.label, read.id) == (
        run.hardware,
        run.environment,
        run.label,
        run.id,
    )


@SOME
@given(OPS)
def test_an_op_table_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory, ops: OpGroups
) -> None:
    file = tmp_path_factory.getbasetemp() / "ops.csv"
    file.write_text(ops_text(ops), encoding="utf-8", newline="\n")
    assert read_ops_file(file) == ops


@SOME
@given(BASELINE_FILES)
def test_a_baseline_survives_its_file_of_sorted_json_with_a_line_per_session(
    file: BaselineFile,
) -> None:
    text = encode_text(file)
    read = decode_file(json.loads(text))
    assert read == file
    assert encode_text(read) == text
    json.loads(text, object_pairs_hook=_sorted_members, parse_constant=_refused)
    stored = [metric for test in file.tests.values() for metric in test.metrics.values()]
    assert len(_SESSION.findall(text)) == sum(len(metric.sessions) for metric in stored)
    assert text.endswith("}\n")
    assert not re.search(r"[ \t]$", text, re.MULTILINE)


def _sorted_members(members: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in members]
    assert names == sorted(set(names))
    return dict(members)


def _refused(constant: str) -> object:
    message = f"{constant} is not JSON"
    raise AssertionError(message)
