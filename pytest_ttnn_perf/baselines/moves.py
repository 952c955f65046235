"""Baselines that get another name: nothing is lost, wherever it is cut short."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf.baselines.paths import key_folder, split_test_id
from pytest_ttnn_perf.baselines.store import BaselineStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import Change
    from pytest_ttnn_perf.model.baseline import TestBaseline
    from pytest_ttnn_perf.model.hardware import Hardware


def move(root: Path, hardware: Hardware, moves: Mapping[str, str]) -> None:
    """Give tests of one key new ids, with their op tables.

    What is new is written before what is old goes: cut short, a baseline is there twice, and doing
    it again ends it. Within one file it is one step.

    Raises:
        UsageError: a new id has a baseline already, and another one; nothing was moved.
        InputError: a file is malformed.
        WriteError: a file cannot be written.
    """
    store = BaselineStore(root)
    with store.locked():
        first: dict[str, Change] = {}
        last: dict[str, Change] = {}
        for before, after in moves.items():
            found = store.find(hardware, before)
            if found is None:
                continue
            check_free(store, hardware, before, after)
            same_file = split_test_id(before)[0] == split_test_id(after)[0]
            (last if same_file else first)[after] = _put(
                _with_table(store, hardware, before, found)
            )
            last[before] = _nothing
        store.apply(hardware, first)
        store.apply(hardware, last)


def check_free(store: BaselineStore, hardware: Hardware, before: str, after: str) -> None:
    """Raise UsageError if a test cannot take an id; a move that was cut short may be ended."""
    found, taken = store.find(hardware, before), store.find(hardware, after)
    if taken is None or found is None or _content(found) == _content(taken):
        return
    message = f"{after} has a baseline of its own on {hardware.key}, accepted {taken.accepted.at}"
    raise UsageError(f"{message}: remove its entry from the file first, or leave both")


def _content(test: TestBaseline) -> TestBaseline:
    return replace(test, ops=None, op_table=None)


def _with_table(
    store: BaselineStore, hardware: Hardware, name: str, test: TestBaseline
) -> TestBaseline:
    """Return a baseline with its op table in hand; one whose table is missing goes without."""
    if test.ops is None:
        return test
    try:
        table = store.ops_of(hardware, name)
    except InputError:
        if os.path.lexists(key_folder(store.root, hardware) / test.ops):
            raise
        table = None
    return replace(test, ops=None, op_table=table)


def _put(test: TestBaseline) -> Change:
    return lambda _: test


def _nothing(_: TestBaseline | None) -> None:
    return None
