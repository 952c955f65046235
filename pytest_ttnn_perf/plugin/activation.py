"""Taking up work: one process plays both roles."""

from __future__ import annotations

import os

import pytest

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.model.rerun import Rerun
from pytest_ttnn_perf.plugin.orchestrator import Orchestrator
from pytest_ttnn_perf.plugin.settings import settings_of
from pytest_ttnn_perf.plugin.worker import Worker
from pytest_ttnn_perf.workflow.run import GateRun


def activate(config: pytest.Config) -> None:
    """Register both roles for a gated run.

    Raises:
        pytest.UsageError: the options cannot be meant, or results could not be written.
    """
    settings = settings_of(config)
    options = config.known_args_namespace
    # Of pytest-xdist and pytest-forked: what other processes observe would not reach this one.
    if any(getattr(options, name, None) for name in ("numprocesses", "tx", "forked")):
        message = "--ttnn-perf measures in one process: run it without -n, --tx or --forked"
        raise pytest.UsageError(message)
    gate = GateRun(settings, config.rootpath, config.invocation_params.dir, rerun=_rerun(config))
    try:
        gate.check()
    except TtnnPerfError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(Worker(settings), "ttnn_perf_worker")
    config.pluginmanager.register(Orchestrator(gate), "ttnn_perf_orchestrator")


def _rerun(config: pytest.Config) -> Rerun:
    """Return how this user runs a test again: ids start at rootdir, commands where they stand."""
    folder = os.path.relpath(config.rootpath, config.invocation_params.dir)
    baselines = config.known_args_namespace.ttnn_perf_baselines
    options = () if baselines is None else ("--ttnn-perf-baselines", baselines)
    return Rerun("" if folder == "." else folder, options)
