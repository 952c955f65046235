"""``ttnn-perf calibrate``: sessions in fresh processes, what they tell, and what is stored."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.behaviour.model import metric
from tests.behaviour.turns import id_of, latencies, write_turns
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.behaviour.turns import Turn
    from tests.harness.project import Project, Ran

TWO = ("calibrate", "--sessions", "2")


def rows_of(ran: Ran) -> list[str]:
    """Return the names of the tests in the table."""
    return re.findall(r"^test_model\.py::test_model\[(\w+)\] ", ran.text, re.M)


def bars_in(text: str) -> list[str]:
    """Return lines of progress without the time that is left, which is anyone's guess."""
    return [re.sub(r", about .* left *$", "", line) for line in re.split(r"[\r\n]+", text) if line]


def decoding(latency: float) -> Turn:
    samples = [latency * factor for factor in (0.99, 1.0, 1.01, 1.02)]
    rates = [1000 / sample for sample in samples]
    rate = metric(*rates, unit="tok/s", kind="throughput", better="higher")
    return {"latency": metric(*samples), "rate": rate}


def test_table_progress_and_words_for_pytest(project: Project) -> None:
    write_turns(
        project,
        decode=[decoding(10.0), decoding(10.3)],
        prefill=[{"latency": metric(2.0), "ops": metric(7, unit="", kind="count")}],
        other=latencies(1),
    )
    project.write(
        conftest="""
            import json

            def pytest_configure(config):
                with open("words.jsonl", "a") as file:
                    file.write(json.dumps(list(config.invocation_params.args)) + "\\n")
        """
    )
    words = ["-k", "model and not other", "-m", "not slow", "--tb", "no", "-x", "--", "."]

    own = ("--sessions", "2", "--format", "table")
    ran = project.cli_process("calibrate", *words[:2], *own[:2], *words[2:4], *own[2:], *words[4:])

    assert_golden("calibrate_table", ran.text)
    assert not (project.path / "baselines").exists(), "nothing is stored unasked"
    told = [json.loads(line) for line in (project.path / "words.jsonl").read_text().splitlines()]
    assert [arguments[-len(words) :] for arguments in told] == [words] * 2
    assert bars_in(ran.errors) == ["session 1 of 2, test 2 of 2", "session 2 of 2, test 2 of 2"]


def test_tests_that_went_wrong_in_a_session_are_named(project: Project) -> None:
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
        wild=latencies(30, 60),
        last=good,
    )

    ran = project.cli(*TWO)

    assert ran.code == 1
    assert rows_of(ran) == ["good", "wild", "last"]
    failures = dict(
        re.findall(r"^failed test_model\.py::test_model\[(\w+)\]: (.*)$", ran.text, re.M)
    )
    assert re.fullmatch(
        r"session 2: its worker ended with exit code 3; log: .*/2-calibrate/worker\.log",
        failures.pop("dies"),
    )
    assert failures == {
        "raises": "session 2: RuntimeError: no device",
        "early": "session 1: RuntimeError: no device",
        "skips": "session 2: the test did not run again",
        "wrong": "session 2: top1 0.5, limit 0.9",
    }
    noisy = f"no gate would pass {id_of('wild')}: latency is too noisy: noise alone reaches "
    assert noisy in ran.text
    assert "3 tests, 2 sessions each" in ran.text.splitlines()
    assert (project.path / "early.turn").read_text() == "1", "it can have no result any more"


def test_ctrl_c_keeps_what_was_measured(project: Project) -> None:
    interrupt = "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"
    write_turns(project, a=latencies(10, 10.1), b=[*latencies(20), interrupt])

    ran = project.cli_process("calibrate", "--sessions", "20")

    assert ran.code == 1
    assert "Traceback" not in ran.errors
    assert rows_of(ran) == ["a", "b"]
    assert "interrupted: 2 tests, at least 1 of 20 sessions each" in ran.text.splitlines()


def test_a_session_that_a_test_ends_is_refused_with_the_reason(project: Project) -> None:
    project.write(test_model="import pytest\ndef test_model(): pytest.exit('had enough')")
    ran = project.cli(*TWO)
    assert (ran.code, ran.text) == (2, "")
    expected = "ttnn-perf: a test or a plugin ended the session: had enough"
    assert ran.errors.splitlines()[-1] == expected
    assert not (project.path / "baselines").exists()


def test_what_cannot_be_meant_is_refused(project: Project) -> None:
    project.write(test_model="def test_plain(): pass")
    ran = project.cli(*TWO)
    nothing = "no test was measured: mark tests with @pytest.mark.ttnn_perf, or name others"
    assert (ran.code, ran.text) == (2, "")
    assert ran.errors.splitlines()[-1] == f"ttnn-perf: {nothing}"
    for number in ("1", "x"):
        ran = project.cli("calibrate", f"--sessions={number}")
        assert ran.code == 2
        assert ran.errors.splitlines()[-1].endswith(
            f"argument --sessions: expected a whole number from 2 to 20, found {number!r}"
        )
