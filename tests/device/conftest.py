"""What tests of this folder share. Nothing in the stand-in is a test; child processes find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.device.rig import CONFTEST, MODELS, UPDATE, Rig, play

if TYPE_CHECKING:
    from tests.harness.project import Ran

collect_ignore = ["fake"]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, Ran]:
    """Return the two models with their baselines, and the run that recorded them: to be copied."""
    rig = Rig(tmp_path_factory.mktemp("models")).write(conftest=CONFTEST, test_models=MODELS)
    ran = rig.pytest(play(), *UPDATE)
    assert ran.code == 0, ran.text + ran.errors
    return rig, ran
