"""What Tracy's report holds between the signposts of a test."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.assignment import signposts_of
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.core.ops import Op, OpTable, Signpost, Unread
from pytest_ttnn_perf.core.settings import Checklist, Settings
from pytest_ttnn_perf.machine.processes import Ending
from pytest_ttnn_perf.plugin.workers import _read_report, profile_with_tracy
from tests.analysis.ops.tables import MATMUL, NORM, RESHARD, op, table
from tests.analysis.readers import ops_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.assignment import PassKind

TEST = "models/test_llama.py::test_decode"


def capture(*content: Op | str) -> OpTable:
    """Return a capture of ops with signposts between them."""
    ops: list[Op] = []
    posts: list[Signpost] = []
    for each in content:
        if isinstance(each, str):
            posts.append(Signpost(each, len(ops)))
        else:
            ops.append(each)
    return replace(table(ops), signposts=tuple(posts))


def measured(test: str, *iterations: Sequence[Op], run: int = 1) -> list[Op | str]:
    """Return the measured calls of a test, each between its signposts."""
    content: list[Op | str] = []
    for number, ops in enumerate(iterations):
        begin, end = signposts_of(test, run=run, iteration=number)
        content += [begin, *ops, end]
    return content


def told(*content: Op | str) -> dict[str, Observation]:
    return dict(_read_report(capture(*content), Settings(checklist=Checklist.OFF)))


def metric(name: str, *samples: float, note: str | None = None) -> MetricObservation:
    kind, unit = (Kind.COUNT, "") if name == "op_count" else (Kind.TIME, "ns")
    return MetricObservation(
        Metric(name, unit, Better.LOWER, kind, Source.TRACY), samples, note=note
    )


def nothing(test: str, why: str) -> dict[str, Observation]:
    name = "device_kernel_time"
    return {test: Observation(test, {name: metric(name, note=why)})}


def kernel_times(found: dict[str, Observation]) -> dict[str, tuple[float, ...]]:
    return {test: each.metrics["device_kernel_time"].samples for test, each in found.items()}


def test_the_checklist_is_asked_of_the_measured_calls_alone() -> None:
    call = [op(MATMUL, 40), op(RESHARD, 80), op(MATMUL, 40)]
    content = [op(MATMUL, 900), *measured(TEST, call, call)]
    found = dict(_read_report(capture(*content), Settings(select=("TTP302", "TTP004"))))[TEST]
    (resharding,) = found.findings
    assert (resharding.code, resharding.value) == ("TTP302", 0.5)
    assert found.outcomes["TTP004"] is RuleOutcome.NOT_APPLICABLE


def test_each_window_is_a_sample() -> None:
    calls = [[op(MATMUL, 40), op(NORM, 20)], [op(MATMUL, 42), op(NORM, 20)]]
    found = told(op(RESHARD, 900), *measured(TEST, *calls), op(RESHARD, 900))
    expected = [
        metric("device_kernel_time", 60, 62),
        metric("op_count", 2),
        metric("device_kernel_time_matmul", 40, 42),
        metric("device_kernel_time_norm", 20, 20),
    ]
    ops = found[TEST].ops
    assert ops is not None
    assert sorted(each.total_ns for each in ops.groups) == [20, 41]
    assert found == {
        TEST: Observation(TEST, {each.metric.name: each for each in expected}, ops=ops)
    }
    assert list(found[TEST].metrics) == [each.metric.name for each in expected]


def test_iterations_that_ran_different_numbers_of_ops_have_no_time() -> None:
    calls = [[op(), op()], [op()], [op(), op()]]
    assert told(*measured(TEST, *calls)) == nothing(
        TEST, "the iterations ran different numbers of ops: 2, 1, 2"
    )


def test_a_call_in_which_an_op_has_no_time_is_no_data_and_another_test_is_none_the_worse() -> None:
    calls = [*measured(TEST, [op(MATMUL, 40)]), *measured("a.py::other", [op(MATMUL, 40)])]
    broken = replace(capture(*calls), unread=(Unread(9, "no kernel duration", signposts=1),))
    found = dict(_read_report(broken, Settings(checklist=Checklist.OFF)))
    why = "1 of 2 device ops has no kernel duration, first in line 9 of Tracy's report"
    assert found[TEST] == nothing(TEST, why)[TEST]
    assert kernel_times(found)["a.py::other"] == (40,)


def traced(*kernel_ns: float, replay: int) -> list[Op]:
    return [op(MATMUL, each, replay=(1, replay)) for each in kernel_ns]


ONE = [op(MATMUL, 5)], [op(MATMUL, 6)]
BEGIN, END = signposts_of(TEST, run=1, iteration=0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([BEGIN, op(MATMUL, 5), "decode", op(NORM, 2), "decode_END", END], (7,)),
        ([*measured(TEST, *ONE), *measured(TEST, [op(MATMUL, 7)], run=3)], (7,)),
        (measured(TEST, [*traced(5, 6, replay=0), *traced(7, 8, replay=1)]), (11, 15)),
        (
            [*measured(TEST, *ONE), signposts_of("b.py::raised", run=2, iteration=0)[0], op()],
            (5, 6),
        ),
    ],
    ids=["signposts inside", "ran again", "replays", "another test's call raised"],
)
def test_the_samples_of_a_test(content: list[Op | str], expected: tuple[float, ...]) -> None:
    assert kernel_times(told(*content))[TEST] == expected


@pytest.mark.parametrize(
    "test",
    ["a.py::b[1 x 32 x 4096]", "a.py::b[ttnn-perf begin 0.0 x]", "a.py::b[_END]",
     "my tests/a.py::b", "a.py::test_END_of_sequence", "7"],
)  # fmt: skip
def test_a_name_is_taken_as_it_is(test: str) -> None:
    assert kernel_times(told(*measured(test, *ONE))) == {test: (5, 6)}


def test_replays_that_lost_ops_have_no_time() -> None:
    found = told(*measured(TEST, [*traced(5, 6, replay=0), *traced(7, replay=1)]))
    why = "Tracy's report: the replays of trace 1 on device 0 ran different ops"
    assert found[TEST].metrics == nothing(TEST, why)[TEST].metrics


@dataclass
class WorkerLauncher:
    """One worker that Tracy launches: it leaves these files in its folder."""

    path: Path
    files: dict[str, str] = field(default_factory=dict)
    launched: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    kept: bool = False

    def next_folder(self, kind: PassKind) -> Path:
        folder = self.path / f"1-{kind.value}"
        folder.mkdir()
        return folder

    def run_batch(self, folder: Path, launcher: list[str]) -> Ending:
        self.launched = list(launcher)
        for name, text in self.files.items():
            file = folder / "tracy" / "reports" / name
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
        return Ending(1)

    def print_line(self, text: str) -> None:
        self.said.append(text)

    def keep(self) -> None:
        self.kept = True

    def discard(self, folder: Path) -> None:
        shutil.rmtree(folder)


def run_pass(workers: WorkerLauncher) -> tuple[dict[str, Observation], list[str]]:
    """Run the pass; return what it told and what it said."""
    found = profile_with_tracy(workers).observations  # type: ignore[arg-type]
    said = workers.said
    assert said[0] == "ttnn-perf: device pass: profiling with Tracy; its report comes at the end"
    return dict(found), said[1:]


def test_the_last_report_is_read_and_the_folder_goes(tmp_path: Path) -> None:
    begin, end = map(ops_text.signpost, signposts_of(TEST, run=1, iteration=0))
    old, new = (ops_text.text([begin, ops_text.op(kernel=ns), end]) for ns in (7, 9))
    workers = WorkerLauncher(
        tmp_path, {"2026_01/ops_perf_results_1.csv": old, "2026_02/ops_perf_results_2.csv": new}
    )
    found, said = run_pass(workers)
    assert (kernel_times(found), said, workers.kept) == ({TEST: (9,)}, [], False)
    assert list(tmp_path.iterdir()) == []
    *words, port = workers.launched
    folder = str(tmp_path / "1-device" / "tracy")
    assert words == ["-m", "tracy", "-r", "-p", "-o", folder, "-t"]
    assert port.isdecimal()


def test_a_report_that_cannot_be_read_is_said_to_be(tmp_path: Path) -> None:
    workers = WorkerLauncher(tmp_path, {"2026_01/ops_perf_results_1.csv": "no report\n"})
    file = tmp_path / "1-device" / "tracy" / "reports" / "2026_01" / "ops_perf_results_1.csv"
    found, (said,) = run_pass(workers)
    assert found == {}
    assert said.startswith(f"ttnn-perf: device pass: {file}: ")


def test_tracy_that_ends_without_a_report_is_said_and_its_folder_kept(tmp_path: Path) -> None:
    workers = WorkerLauncher(tmp_path)
    found, (said,) = run_pass(workers)
    assert (found, workers.kept) == ({}, True)
    assert said == (
        "ttnn-perf: device pass: Tracy ended with exit code 1 without a report; see "
        f"{tmp_path / '1-device'}"
    )
