"""A session in workers is an ordinary one to a project's conftest, plugins and folders."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.golden.sessions import GATED, both, junit, run_both

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

CONFTEST = """
    import pytest

    SEEN = []

    def pytest_addoption(parser):
        parser.addoption("--board", default="n150")

    def pytest_report_header(config):
        return "board " + config.getoption("--board")

    def pytest_collection_modifyitems(config, items):
        items.reverse()
        slow = [item for item in items if "slow" in item.name]
        items[:] = [item for item in items if item not in slow]
        config.hook.pytest_deselected(items=slow)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        report = (yield).get_result()
        report.user_properties.append(("made", call.when))
        report.board = item.config.getoption("--board")

    def pytest_runtest_logstart(nodeid, location):
        SEEN.append(f"start {nodeid} {location}")

    def pytest_runtest_logreport(report):
        SEEN.append(f"{report.when} {report.nodeid} {report.outcome} {report.user_properties}")
        assert report.board in ("n150", "p150")

    def pytest_runtest_logfinish(nodeid, location):
        SEEN.append(f"finish {nodeid} {location}")

    def pytest_report_teststatus(report):
        if report.when == "call" and report.passed:
            return "passed", "+", "FINE"

    def pytest_sessionfinish(session, exitstatus):
        SEEN.append(f"{exitstatus!r} {session.testscollected} {session.testsfailed}")

    def pytest_terminal_summary(terminalreporter, exitstatus):
        terminalreporter.section("seen by the conftest")
        terminalreporter.write_line("\\n".join(SEEN))
        stats = terminalreporter.stats
        terminalreporter.write_line(str({name: len(stats[name]) for name in sorted(stats)}))

    @pytest.fixture(scope="session", autouse=True)
    def device(request):
        print("device opens:", request.config.getoption("--board"))
        yield
        print("device closes")

    @pytest.fixture(scope="module")
    def weights():
        print("weights load")
        yield
        print("weights go")

    @pytest.fixture(scope="class")
    def trace():
        print("trace begins")
        yield
        print("trace ends")
"""
TESTS = """
    import sys

    class TestTraced:
        def test_first(self, trace, weights): print("first")
        def test_second(self, trace, weights): print("second", file=sys.stderr)

    def test_alone(weights, tmp_path): print("alone in", tmp_path.name)
    def test_failing(weights): assert not "a model"
    def test_slow(): pass
"""


def test_hooks_and_fixtures_of_a_conftest(project: Project) -> None:
    project.write(conftest=CONFTEST, test_a=TESTS, test_b=TESTS)

    run_both(project, "--board", "p150", "-rA", process=True).assert_equal()


PLACES = """
    import logging
    import os
    import sys

    def test_place(request, tmp_path):
        config = request.config
        print(request.node.nodeid, __name__, os.getcwd(), config.invocation_params.dir)
        print(config.rootpath, config.args, config.inipath, bool(config.option.xmlpath))
        print([path for path in sys.path if not path or path.startswith(str(config.rootpath))])
        print(__debug__, sys.warnoptions)
        logging.warning("logged")

    def test_model(ttnn_perf):
        ttnn_perf.record("latency", 10, unit="ms")
"""
#: As tt-metal configures pytest.
INI = """
[pytest]
addopts = {mode} -vvs -rA --durations=25 --junitxml=generated/reports/tests.xml -p boards --tray=2
"""
PLUGIN = """
    def pytest_addoption(parser):
        parser.addoption("--tray")

    def pytest_report_header(config):
        return "tray " + config.getoption("--tray")
"""


@pytest.fixture
def nested(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with folders, options in its configuration, and a plugin of its own."""
    monkeypatch.setenv("PYTHONPATH", str(project.path / "plugins"))
    for folder in ("plugins", "models/resnet"):
        (project.path / folder).mkdir(parents=True)
    project.write(
        **{
            "plugins/boards": PLUGIN,
            "models/test_a": PLACES,
            "models/resnet/test_b": PLACES,
            "conftest": "def pytest_configure(config): assert config.option.xmlpath",
        }
    )
    (project.path / "pytest.ini").write_text(INI.format(mode="--import-mode=importlib"))
    return project


def run_in(project: Project, folder: str, command: list[str]) -> None:
    """Run a command in a folder of the project, plainly and gated; each leaves its JUnit report."""
    reports: list[str] = []

    def once(options: tuple[str, ...]) -> Ran:
        ran = project.run("env", "-C", str(project.path / folder), *command, *options)
        reports.append(junit(project, f"{folder}/generated/reports/tests.xml"))
        return ran

    sessions = both(project, once)
    sessions.assert_equal()
    assert reports[1].splitlines() == reports[0].splitlines()
    assert sessions.gated.code == 0


MODULE = [sys.executable, "-m", "pytest"]


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("models/resnet", [*MODULE, "..", "--rootdir=../..", "--basetemp=base"]),
        pytest.param(
            ".",
            [*MODULE[:1], "-W", "error", "-O", *MODULE[1:], "models/test_a.py"],
            marks=pytest.mark.long,
        ),
    ],
    ids=["outwards", "flags"],
)
def test_place_and_command_are_kept(nested: Project, folder: str, command: list[str]) -> None:
    run_in(nested, folder, command)


def test_workers_leave_the_files_of_the_session_alone(nested: Project) -> None:
    before = nested.files()

    ran = nested.pytest_process(
        *GATED, "--ttnn-perf-confirm=1", "--ttnn-perf-update=new", "--log-file=tests.log"
    )

    assert ran.code == 0
    made = {file for file in nested.files() - before if not file.startswith((".ttnn", "base"))}
    assert made == {"generated/reports/tests.xml", "tests.log"}
    # Of the first worker alone, which ran all tests.
    assert (nested.path / "tests.log").read_text().count("logged") == 2
