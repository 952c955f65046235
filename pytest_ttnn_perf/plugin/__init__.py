"""The pytest edge. Without ``--ttnn-perf`` it declares options and a fixture, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.plugin.options import TURN_ON, declare_options, gate_is_wanted

if TYPE_CHECKING:
    from pytest_ttnn_perf.observe.observer import Observer

MARKER_HELP = (
    "ttnn_perf(warmup=, iterations=, pcc=, batch=, tolerance=, max_regression=, target=, waive=): "
    "measure this test and gate it with --ttnn-perf"
)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    from pytest_ttnn_perf.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    declare_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Take up work before conftest files load: their hooks then see reports we have judged."""
    if gate_is_wanted(early_config):
        from pytest_ttnn_perf.plugin.activation import activate

        activate(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse to be on and absent."""
    config.addinivalue_line("markers", MARKER_HELP)
    asked = next((name for name in TURN_ON if getattr(config.option, name)), None)
    if asked is not None and not _is_active(config):
        option = f"--{asked.replace('_', '-')}"
        message = f"{option}: a conftest loaded the plugin too late, or the option stands after --"
        raise pytest.UsageError(message + "; -p pytest_ttnn_perf.plugin loads it in time")


def _is_active(config: pytest.Config) -> bool:
    roles = ("ttnn_perf_worker", "ttnn_perf_orchestrator")
    return any(config.pluginmanager.has_plugin(role) for role in roles)


@pytest.fixture
def ttnn_perf(request: pytest.FixtureRequest) -> Observer:
    """Measure a model, check its accuracy, record any metric."""
    from pytest_ttnn_perf.plugin.fixture import observer_for

    return observer_for(request.node)
