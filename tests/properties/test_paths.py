"""Every test file has one safe place for its baselines, on every file system, and no two share it.

Names are Unicode text; what file systems make of it (folding case, composing accents, climbing
``..``, refusing long names) must not matter.
"""

from __future__ import annotations

import itertools
import unicodedata
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pytest_ttnn_perf.core import baseline
from pytest_ttnn_perf.core.baseline import (
    Acceptance,
    TestBaseline,
    key_folder,
    relative_path,
    split_test_id,
)
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.properties.strategies import FEW, MANY

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path("/baselines")
HARDWARE = Hardware("host", "x86_64")
#: Among them what escaping itself produces, and letters that change under folding or composing.
HOSTILE = (
    "a", "A", "/", ".", "..", "%", "%41", "~", "\\", ":", ".py", ".json", " ", "-", "\x7f", "\n",
    "é", "e\u0301", "\u212b", "ß", "ı", "İ", "\u2028", "😀", "x" * 60, "É" * 60,
)  # fmt: skip
NAMES = st.lists(
    st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=3).filter(lambda text: "\0" not in text)
).map("".join)
#: Few enough to try every name of up to four of them; each has met another one in some scheme.
CLASHING = ("a", "A", "/", ".", "%", "~", ".py", ".json", "é", "e\u0301", "%41")


def _of_test_file(name: str) -> PurePosixPath:
    return relative_path(name)


def _of_key(name: str) -> PurePosixPath:
    return PurePosixPath(key_folder(ROOT, Hardware(name, "board")).relative_to(ROOT))


PLACES = pytest.mark.parametrize("place", [_of_test_file, _of_key], ids=["test file", "key"])


def _short_names() -> set[str]:
    products = (itertools.product(CLASHING, repeat=length) for length in range(5))
    return {"".join(pieces) for pieces in itertools.chain.from_iterable(products)}


def _as_file_systems_see(place: PurePosixPath) -> set[str]:
    return {
        unicodedata.normalize(form, str(place)).casefold() for form in ("NFC", "NFD", "NFKC")
    } | {str(place).casefold()}


@PLACES
def test_no_two_short_names_meet(place: Callable[[str], PurePosixPath]) -> None:
    owner: dict[str, str] = {}
    for name in _short_names():
        for seen in _as_file_systems_see(place(name)):
            assert owner.setdefault(seen, name) == name


@PLACES
@MANY
@given(name=NAMES, at=st.integers(0, 200), change=NAMES)
def test_a_name_changed_anywhere_has_another_place(
    place: Callable[[str], PurePosixPath], name: str, at: int, change: str
) -> None:
    changed = name[:at] + change + name[at + len(change) :]
    assume(changed != name)
    assert not _as_file_systems_see(place(changed)) & _as_file_systems_see(place(name))


@PLACES
@MANY
@given(name=NAMES)
@example(name="")
@example(name="../../etc/passwd.py")
@example(name="/etc/passwd")
@example(name="x" * 5000 + ".py")
def test_a_place_is_portable_and_inside_the_folder(
    place: Callable[[str], PurePosixPath], name: str
) -> None:
    found = place(name)
    assert (ROOT / found).resolve().is_relative_to(ROOT)
    for part in found.parts:
        assert part.isascii()
        assert part.isprintable()
        assert not set(part) & set('\\/:*?"<>| ')
        assert part.strip(".") == part
        assert 0 < len(part.encode()) <= 120


def test_no_file_is_also_a_folder_of_another() -> None:
    places = [relative_path(name) for name in _short_names()]
    files = {str(place).casefold() for place in places}
    folders = {str(parent).casefold() for place in places for parent in place.parents}
    assert not files & folders


@MANY
@given(NAMES)
@example("")
@example("folder/")
def test_a_place_that_is_not_shortened_tells_its_test_file(name: str) -> None:
    place = relative_path(name)
    if "~" in str(place):
        assert baseline.test_file_of(place) is None
    else:
        assert baseline.test_file_of(place) == name


@FEW
@given(test_file=NAMES, name=st.text(max_size=5))
def test_a_stored_test_is_found_again_and_listed_under_its_file(
    tmp_path_factory: pytest.TempPathFactory, test_file: str, name: str
) -> None:
    assume("::" not in test_file + ":")
    test, stored = f"{test_file}::{name}", TestBaseline(Acceptance("now"), {})
    assert split_test_id(test) == (test_file, name)
    root = tmp_path_factory.mktemp("baselines")
    BaselineStore(root).amend_keys({HARDWARE: {test: lambda _: stored}})
    assert BaselineStore(root).find(HARDWARE, test) == stored
    (file,) = BaselineStore(root).all_files()
    assert file.test_file == test_file
