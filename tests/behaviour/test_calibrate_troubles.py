"""``ttnn-perf calibrate`` when something goes wrong: refused early, or named and not stored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import metric
from tests.behaviour.turns import id_of, latencies, write_turns

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

TWO = ("calibrate", "--sessions", "2")


def failures_in(ran: Ran) -> dict[str, str]:
    """Return why tests have no result, by the name of their turns."""
    found = re.findall(r"^failed test_model\.py::test_model\[(\w+)\]: (.*)$", ran.text, re.M)
    return dict(found)


def rows_of(ran: Ran) -> list[str]:
    """Return the names of the tests in the table."""
    return re.findall(r"^test_model\.py::test_model\[(\w+)\] ", ran.text, re.M)


def turns_taken(project: Project, name: str) -> int:
    """Return how often a test has run."""
    file = project.path / f"{name}.turn"
    return int(file.read_text()) if file.exists() else 0


def sessions_of(project: Project, name: str) -> Any:
    """Return the stored sessions of a test's latency."""
    return project.stored()[f"test_model[{name}]"]["metrics"]["latency"]["sessions"]


MISTAKES = {
    "nothing marked": ("def test_plain(): pass", "no test was measured: mark tests with "
                       "@pytest.mark.ttnn_perf, or name others"),
    "exit": ("import pytest\ndef test_model(): pytest.exit('had enough')",
             "a test or a plugin ended the session: had enough"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_measured_is_refused_with_the_reason(project: Project, mistake: str) -> None:
    source, reason = MISTAKES[mistake]
    project.write(test_model=source)

    ran = project.cli(*TWO, "--write")

    assert (ran.code, ran.text) == (2, "")
    assert ran.errors.splitlines()[-1] == f"ttnn-perf: {reason}"
    assert not (project.path / "baselines").exists()


def test_tests_that_went_wrong_in_a_session_are_named_and_not_stored(project: Project) -> None:
    good = latencies(10)
    accuracy = "ttnn_perf.check_accuracy(top1={}, at_least=0.9)".format
    write_turns(
        project,
        good=good,
        raises=[*good, "raise RuntimeError('no device')"],
        early=["raise RuntimeError('no device')", *good],
        dies=[*good, "os._exit(3)"],
        skips=[*good, "pytest.skip('no device')"],
        wrong=[accuracy(0.95), accuracy(0.5)],
        counts=[{"ops": metric(ops, unit="", kind="count")} for ops in (7, 8)],
        moved=[f"ttnn_perf.facts(batch={n}); ttnn_perf.record('t', 5, unit='ms')" for n in (1, 2)],
        last=good,
    )

    ran = project.cli(*TWO, "--write")

    assert ran.code == 1
    assert rows_of(ran) == ["good", "last"]
    failures = failures_in(ran)
    assert re.fullmatch(
        r"session 2: its worker ended with exit code 3; log: .*/2-calibrate/worker\.log",
        failures.pop("dies"),
    )
    assert failures == {
        "raises": "session 2: RuntimeError: no device",
        "early": "session 1: RuntimeError: no device",
        "skips": "session 2: the test did not run again",
        "wrong": "session 2: top1 0.5 is below its limit 0.9",
        "counts": "session 2: not as in session 1: ops 8, baseline 7: 14.3 % higher, limit no "
        "change (1 sample against 1 session)",
        "moved": "session 2: not as in session 1: t 5.000 ms was measured in another "
        "configuration: batch is 2, in the baseline 1",
    }
    assert list(project.stored()) == ["test_model[good]", "test_model[last]"]
    assert "2 tests, 2 sessions each" in ran.text.splitlines()
    assert turns_taken(project, "early") == 1, "it can have no result any more"


INTERRUPT = "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"


def test_ctrl_c_keeps_what_was_measured_and_stores_it(project: Project) -> None:
    write_turns(project, a=latencies(10, 10.1), b=[*latencies(20), INTERRUPT])

    ran = project.cli_process("calibrate", "--sessions", "20", "--write")

    assert ran.code == 1
    assert "Traceback" not in ran.errors
    assert rows_of(ran) == ["a", "b"]
    assert "interrupted: 2 tests, at least 1 of 20 sessions each" in ran.text.splitlines()
    assert sessions_of(project, "a") == [[10, 0, 1], [10.1, 0, 1]]
    assert sessions_of(project, "b") == [[20, 0, 1]]


def test_folder_that_cannot_be_written_is_refused_before_any_test_runs(project: Project) -> None:
    write_turns(project, a=latencies(10))
    (project.path / "taken").write_text("a file")

    ran = project.cli(*TWO, "--write", "--baselines", "taken")

    assert (ran.code, ran.text) == (3, "")
    assert ran.errors == "ttnn-perf: taken: cannot write: Not a directory"
    assert turns_taken(project, "a") == 0


def test_result_that_can_no_longer_be_stored_is_shown_all_the_same(project: Project) -> None:
    taken = "Path('baselines').write_text('a file'); ttnn_perf.record('latency', 10, unit='ms')"
    write_turns(project, a=[*latencies(10), taken])

    ran = project.cli(*TWO, "--write")

    assert ran.code == 1
    assert rows_of(ran) == ["a"]
    assert re.search(r"^not written: .*baselines\S*: cannot write: \S", ran.text, re.M)


def test_sessions_that_no_gate_would_pass_are_not_stored(project: Project) -> None:
    write_turns(project, wild=latencies(30.0, 60.0, 30.0, 60.0))

    ran = project.cli("calibrate", "--sessions", "4", "--write")

    noisy = "latency is too noisy: noise alone reaches "
    assert ran.code == 1
    assert f"no gate would pass {id_of('wild')}: {noisy}" in ran.text
    assert f"not written {id_of('wild')}: {noisy}" in ran.text
    assert not list(project.path.glob("baselines/*/*.json"))
