"""What every test of this folder may use. Examples and doctests do without."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

# A run in this process forgets what it imported: what is loaded here is not loaded anew each time.
import filelock  # noqa: F401
import hypothesis
import pytest

import pytest_ttnn_perf
from pytest_ttnn_perf.core import wings
from tests.device.rig import CONFTEST, MODELS, UPDATE, Rig, play
from tests.harness.baselines import Desk
from tests.harness.histories import Histories
from tests.harness.project import PLUGINS, Project, Ran

if TYPE_CHECKING:
    from collections.abc import Generator

for module in pkgutil.walk_packages(pytest_ttnn_perf.__path__, "pytest_ttnn_perf."):
    importlib.import_module(module.name)

# Units are called without a run that would register them.
wings.register("pytest_ttnn_perf.plugin.activation:WINGS")

# The same examples each time, or a change would be refused by chance for what it has not changed.
# New ones are looked for with --hypothesis-profile=search. A machine may stall for longer than any
# deadline.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, max_examples=30)
hypothesis.settings.register_profile("search", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("same")

# What a run says must not depend on who runs these tests: their CI system, the repository whose
# hook they run in, their taste in colours, their plugins.
for name in [*os.environ]:
    if re.match(r"(CI|CI_.*|GITHUB_.*|GITLAB_.*|GIT_(?!CONFIG).*)$", name) or name in {
        "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    }:  # fmt: skip
        del os.environ[name]
os.environ.pop("PYTHONUNBUFFERED", None)  # which hides what is printed too late
os.environ["COLUMNS"] = "80"  # as wide as without a terminal

# Nor on what else this machine does.
os.environ["TTNN_PERF_HOST"] = str(Path(__file__).parent / "harness" / "idle_host")

# A shell starts what it runs in the background deaf to Ctrl-C, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test that is skipped fail in an environment that has the real parts."""
    report = yield
    if report.skipped and os.environ.get("TTNN_PERF_TEST_REAL") == "required":
        report.outcome = "failed"
    return report


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return an empty project of a user's, in which the gate can be run."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("PY_COLORS", raising=False)  # which pytester sets
    # A file that is written twice within a second must not be taken for what it was before.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    # Plugins that only cost time: each inner run would load hypothesis anew.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark")
    return Project(pytester)


@pytest.fixture
def histories(project: Project, monkeypatch: pytest.MonkeyPatch) -> Histories:
    """Return what a project keeps of its runs: nothing yet."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("TTNN_PERF_HISTORY", raising=False)
    return Histories(project.path)


@pytest.fixture
def time_flies(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time fly for runs whose worker hangs: one that does calls ``time_flies.hang()``."""
    del project  # which sets the options of its runs first
    monkeypatch.syspath_prepend(PLUGINS)
    monkeypatch.setenv("PYTHONPATH", str(PLUGINS), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p time_flies", prepend=" ")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return an empty folder in which baselines can be lived with."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, Ran]:
    """Return the two models with their baselines, and the run that recorded them: to be copied."""
    rig = Rig(tmp_path_factory.mktemp("models")).write(conftest=CONFTEST, test_models=MODELS)
    ran = rig.pytest(play(), *UPDATE)
    assert ran.code == 0, ran.text + ran.errors
    return rig, ran
