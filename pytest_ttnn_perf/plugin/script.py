"""A script as a test: one that runs it in fresh processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ttnn_perf.core.codec import decode, encode
from pytest_ttnn_perf.core.options import option_of
from pytest_ttnn_perf.measure.profilers import Script, measure_script
from pytest_ttnn_perf.plugin import observer_for
from pytest_ttnn_perf.plugin.settings import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.report.run import RunResult

#: Nothing of a suite of tests has a say in how a script runs.
NO_CONFTEST: Final = "--noconftest"
_ALONE: Final = (NO_CONFTEST, "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:randomly")


def arguments_of(script: Script, root: Path) -> list[str]:
    """Return pytest's arguments for a session of this script alone."""
    own = f"{option_of('script')}={json.dumps(encode(script))}"
    return ["-p", __name__, *_ALONE, "--ttnn-perf-profiler=off", f"--rootdir={root}", own]


def script_of(text: str) -> Script:
    return decode(Script, json.loads(text))


def run_session(argv: Sequence[str]) -> tuple[int, RunResult | None]:
    """Run the gate in this process; return pytest's exit code."""
    last = _Last()
    code = pytest.main([*argv, "-p", "no:terminal", "-s", "--ttnn-perf"], plugins=[last])
    return int(code), last.result


class _Last:
    """Keeps the result of a session."""

    result: RunResult | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        closing = config.pluginmanager.get_plugin("ttnn_perf_closing")
        self.result = closing and closing.result


class ScriptItem(pytest.Item):
    """The test that a script is."""

    script: Script
    fixturenames = (NAME,)

    def runtest(self) -> None:
        measure_script(observer_for(self), self.script)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


def pytest_collection(session: pytest.Session) -> bool:
    """Collect the script, and import nothing."""
    config = session.config
    script = script_of(config.getoption(option_of("script")))
    file, _, name = script.test.partition("::")
    where = {"path": config.rootpath / file, "nodeid": script.test}
    item = ScriptItem.from_parent(session, name=name, **where)
    item.script, session.testscollected = script, 1
    session.items = [item]
    how = {"config": config, "session": session}
    config.hook.pytest_collection_modifyitems(items=session.items, **how)
    config.hook.pytest_collection_finish(session=session)
    return True
