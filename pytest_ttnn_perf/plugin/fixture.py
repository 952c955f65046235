"""The observer behind the ``ttnn_perf`` fixture."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.observe.instruments import Instruments
from pytest_ttnn_perf.observe.observer import FunctionalObserver, Observer, Turn
from pytest_ttnn_perf.plugin.settings import settings_of, test_settings

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.settings import Settings


OBSERVER = pytest.StashKey[Observer]()
#: Where several processes measure at once: the turn that each timed section waits for.
TURN = pytest.StashKey[Turn]()
#: What the tests of this process are measured with.
INSTRUMENTS = pytest.StashKey[Instruments]()


def observer_for(item: pytest.Item) -> Observer:
    """Return the observer of a test, made when it is first asked for."""
    if OBSERVER not in item.stash:
        settings = settings_of(item.config)
        item.stash[OBSERVER] = new_observer(item, settings)
    return item.stash[OBSERVER]


def new_observer(item: pytest.Item, settings: Settings) -> Observer:
    """Return an observer that measures under the gate and only checks without it."""
    kind = Observer if settings.enabled else FunctionalObserver
    observer = kind(item.nodeid, test_settings(item, settings), settings)
    observer.turn = item.config.stash.get(TURN, nullcontext())
    observer.instruments = item.config.stash.get(INSTRUMENTS, observer.instruments)
    return observer
