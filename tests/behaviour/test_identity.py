"""What a test is filed under: its id without what somebody expects of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of, entry_of, record_of

if TYPE_CHECKING:
    from tests.harness.project import Project

TESTS = """
    import json
    from pathlib import Path

    import pytest

    @pytest.mark.parametrize("batch_size, expected_perf", [(1, 163.85), (8, 90.5)])
    def test_fps(ttnn_perf, batch_size, expected_perf):
        slower = json.loads(Path(__file__).with_name("slower.json").read_text())
        ttnn_perf.record("latency", [slower * batch_size, slower * batch_size], unit="ms")

    def test_plain(ttnn_perf):
        ttnn_perf.record("latency", [3.0, 3.0], unit="ms")
"""
BUMPED = TESTS.replace("163.85", "170.0")
#: As the conftest of tt-metal's ttnn tests, which renames the tests of a whole session.
RENAMING = """
    def pytest_make_parametrize_id(config, val, argname):
        return f"{argname}={val}"
"""
FILED = {"test_fps[1]", "test_fps[8]", "test_plain"}


@pytest.fixture
def model(project: Project) -> Project:
    """A project with expected values among its parameters, whose baselines are recorded."""
    write(project, TESTS)
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 0, ran.text
    return project


def write(project: Project, tests: str, *, slower: float = 10.0) -> None:
    """Write the tests, and how slow the model is."""
    project.write(test_model=tests)
    (project.path / "slower.json").write_text(json.dumps(slower))


def test_a_new_target_keeps_the_baseline(model: Project) -> None:
    assert set(model.stored()) == FILED
    write(model, BUMPED, slower=5.0)
    ran = model.pytest("--ttnn-perf")
    assert ran.code == 0, ran.text
    assert "pytest 'test_model.py::test_fps[1-170.0]'" in ran.text, "as pytest names it"
    assert "NO_BASELINE" not in ran.text
    assert "orphaned" not in ran.text
    assert {name.partition("::")[2] for name in record_of(model)["tests"]} == FILED


def test_workers_and_confirm_passes_find_the_test_by_its_node_id(model: Project) -> None:
    write(model, BUMPED, slower=20.0)
    options = ("--ttnn-perf-isolate", "process", "--ttnn-perf-confirm", "1")
    ran = model.pytest("--ttnn-perf", *options)
    assert ran.code == 1
    assert "FAILED test_model.py::test_fps[1-170.0] - REGRESSED" in ran.text
    assert "did not run again" not in ran.text
    judged = record_of(model)["tests"]["test_model.py::test_fps[1]"]
    assert judged["node_id"] == "test_model.py::test_fps[1-170.0]"
    assert judged["metrics"]["latency"]["confirmations"] == [[20.0, 20.0]]


TWINS = """
    import pytest

    @pytest.mark.parametrize("expected_perf", [100, 200])
    def test_a(ttnn_perf, expected_perf):
        ttnn_perf.record("latency", [1.0, 1.0], unit="ms")
"""


@pytest.mark.parametrize("isolate", ["inline", "process"])
def test_tests_that_would_share_a_baseline_are_refused_by_name(
    project: Project, isolate: str
) -> None:
    project.write(test_model=TWINS)
    ran = project.pytest("--ttnn-perf", "--ttnn-perf-isolate", isolate)
    assert ran.code == 4
    expected = (
        "test_model.py::test_a[100] and test_model.py::test_a[200] would share the baseline "
        "test_model.py::test_a: identity_ignores leaves out expected_perf"
    )
    assert expected in ran.errors
    configure(project, "identity_ignores = []")
    assert project.pytest("--ttnn-perf-update=new").code == 0
    assert set(project.stored()) == {"test_a[100]", "test_a[200]"}


ROWS = """
    import pytest

    class Shape:
        def __eq__(self, other):
            raise ValueError("as arrays do")

    SHAPE = Shape()

    @pytest.mark.parametrize("shape, expected_fps", [(SHAPE, 100), (SHAPE, 200)])
    def test_a(ttnn_perf, shape, expected_fps):
        ttnn_perf.record("latency", [1.0, 1.0], unit="ms")
"""


def test_rows_of_objects_are_told_apart_by_their_number(project: Project) -> None:
    project.write(test_model=ROWS)
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 0, ran.text + ran.errors
    assert set(project.stored()) == {"test_a[shape0]", "test_a[shape1]"}


IDS = """
    import enum
    import pytest

    class Mode(enum.Enum):
        FAST = 1

    @pytest.mark.parametrize("dtype", [{"a": 1}, Mode.FAST, None, "b-f"])
    @pytest.mark.parametrize(
        "batch, expected_time, margin", [(1, 10, 0.03), (2, None, 0.05)]
    )
    def test_objects(ttnn_perf, batch, expected_time, margin, dtype):
        ttnn_perf.record("latency", [1.0], unit="ms")

    @pytest.mark.parametrize("batch, expected", [pytest.param(1, 163.85, id="b1-163.85")])
    def test_written(ttnn_perf, batch, expected):
        ttnn_perf.record("latency", [1.0], unit="ms")

    @pytest.mark.parametrize("batch, expected", [(1, 5.5)], ids=["resnet"])
    def test_named(ttnn_perf, batch, expected):
        ttnn_perf.record("latency", [1.0], unit="ms")

    @pytest.mark.parametrize("batch, expected", [(1, "a"), (1, "b")])
    def test_words(ttnn_perf, batch, expected):
        ttnn_perf.record("latency", [1.0], unit="ms")

    @pytest.mark.parametrize("batch, expected_fps", [(1, 5.5)], ids=lambda v: f"<{v}>")
    def test_callable(ttnn_perf, batch, expected_fps):
        ttnn_perf.record("latency", [1.0], unit="ms")
"""
IDENTITIES = {
    *(f"test_objects[{batch}-{kind}]" for batch in (1, 2)
      for kind in ("dtype0", "Mode.FAST", "None", "b-f")),
    "test_written[b1-163.85]",
    "test_named[resnet]",
    "test_words[1-a]",
    "test_words[1-b]",
    "test_callable[<1>]",
}  # fmt: skip


@pytest.mark.parametrize("conftest", ["", RENAMING])
def test_what_is_left_out_and_what_stays(project: Project, conftest: str) -> None:
    project.write(test_model=IDS, conftest=conftest)
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 0, ran.text
    words = {"test_words[1-a]", "test_words[1-b]"}
    # What has nothing that is left out is filed under its id, whatever that is.
    renamed = {"test_words[batch=1-expected=a]", "test_words[batch=1-expected=b]"}
    expected = (IDENTITIES - words) | renamed if conftest else IDENTITIES
    assert set(project.stored()) == expected


#: As pytest-repeat does it.
REPEATS = """
    def pytest_generate_tests(metafunc):
        metafunc.fixturenames.append("__pytest_repeat_step_number")
        metafunc.parametrize(
            "__pytest_repeat_step_number", range(3), indirect=True,
            ids=lambda i, n=3: f"{i + 1}-{n}", scope="function",
        )

    import pytest

    @pytest.fixture
    def __pytest_repeat_step_number(request):
        return request.param
"""
REPEATED = """
    import pytest

    LATENCIES = [10.0, 10.2, 10.1]

    @pytest.mark.ttnn_perf
    @pytest.mark.parametrize("size", [32])
    def test_model(ttnn_perf, size):
        ttnn_perf.record("latency", LATENCIES.pop(), unit="ms")
"""


@pytest.mark.parametrize("isolate", ["inline", "process"])
def test_repeats_are_samples_of_one_test(project: Project, isolate: str) -> None:
    project.write(conftest=REPEATS, test_model=REPEATED)
    options = ("--ttnn-perf-isolate", isolate, "--ttnn-perf-confirm=0")

    ran = project.pytest(*options, "--ttnn-perf-update=new")

    assert counts_of(ran) == "3 passed", ran.text
    assert list(project.stored()) == ["test_model[32]"]
    entry = entry_of(project, "test_model.py::test_model[32]")
    assert entry["metrics"]["latency"]["samples"] == [10.1, 10.2, 10.0]
    again = project.pytest(*options, "--ttnn-perf")
    assert counts_of(again) == "3 passed", again.text
    assert "1 test gated" in again.text
