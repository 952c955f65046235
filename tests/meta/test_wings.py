"""Every door of the gate leads to a function of a wing."""

from __future__ import annotations

from importlib import import_module

import pytest

from pytest_ttnn_perf.plugin.activation import WINGS

WING_ROOMS = ("analysis", "experiments", "history", "agents", "cli")


@pytest.mark.parametrize("door", WINGS)
def test_a_door_leads_to_a_function_of_a_wing(door: str) -> None:
    module, _, name = WINGS[door].partition(":")
    assert module.split(".")[1] in WING_ROOMS
    assert callable(getattr(import_module(module), name))
