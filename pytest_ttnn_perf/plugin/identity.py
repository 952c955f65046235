"""The identity of a test: its id without expected values.

pytest knows a test by its node id, which holds the values of all its parameters. A baseline must
outlive a new expected value, so parameters of some names are left out. Which part of an id a
parameter has written is never guessed: each part is made again as pytest makes it, and where the
result is not what the id says, the id stays whole.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from pytest_ttnn_perf.plugin.settings import is_measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.settings import Settings


#: So many characters make a number in an id that somebody wrote by hand unmistakable.
_TELLING: Final = 3
#: What ``pytest.param`` makes.
_PARAMETER_SET: Final = type(pytest.param())


def identities_of(items: Iterable[pytest.Item], settings: Settings) -> dict[str, str]:
    """Return identities by node id, where they differ from it."""
    found = {}
    for item in items:
        identity = identity_of(item, settings.identity_ignores)
        if identity != item.nodeid:
            found[item.nodeid] = identity
    return found


def refuse_twins(items: Iterable[pytest.Item], settings: Settings) -> None:
    known: dict[str, pytest.Item] = {}
    ignored = settings.identity_ignores
    for item in items:
        if not is_measured(item, settings):
            continue
        identity = identity_of(item, ignored)
        twin = known.setdefault(identity, item)
        if twin.nodeid != item.nodeid:
            names = ", ".join(_differing(twin, item, ignored))
            message = (
                f"{twin.nodeid} and {item.nodeid} would share the baseline {identity}: "
                f"identity_ignores leaves out {names}, and nothing else tells them apart; give "
                "them ids, as in pytest.param(..., id=...), or take the name out of "
                "identity_ignores"
            )
            raise pytest.UsageError(message)


def _differing(first: pytest.Item, second: pytest.Item, ignored: tuple[str, ...]) -> list[str]:
    ours, theirs = _parameters(first), _parameters(second)
    left_out = [name for name in ours if _is_ignored(name, ignored)]
    return [n for n in left_out if _differ_in_ids(n, ours[n], theirs.get(n))] or left_out


def _differ_in_ids(name: str, first: object, second: object) -> bool:
    """Return whether ids differ for two values; objects have the row's number."""
    shown = _plain_id(name, first, None)
    return shown is None or shown != _plain_id(name, second, None)


def identity_of(item: pytest.Item, ignored: tuple[str, ...]) -> str:
    node_id, parameters = item.nodeid, _parameters(item)
    left_out = frozenset(n for n, v in parameters.items() if _is_left_out(n, v, ignored))
    if not left_out:
        return node_id
    callspec = item.callspec  # type: ignore[attr-defined]
    start = node_id.rfind(f"[{callspec.id}]")
    end = start + len(callspec.id) + 2
    # Behind it there may be the group that pytest-xdist adds; anything else is a name of its own.
    if start < 0 or node_id[end : end + 1] not in {"", "@"}:
        return node_id
    parts = list(_parts(item, callspec))
    without = [part.without(left_out) for part in parts]
    if without == [part.id for part in parts]:
        return node_id
    kept = [part.without(left_out, named=False) for part in parts]
    joined = "-".join(text for text in kept if text is not None)
    return node_id[:start] + (f"[{joined}]" if joined else "")


def _parameters(item: pytest.Item) -> dict[str, object]:
    return dict(getattr(getattr(item, "callspec", None), "params", {}))


@lru_cache(maxsize=4096)
def _is_ignored(name: str, ignored: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in ignored)


def _is_left_out(name: str, value: object, ignored: tuple[str, ...]) -> bool:
    """Return whether a parameter is an expected number, or None for unknown."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (is_number or value is None) and _is_ignored(name, ignored)


class _Argument(NamedTuple):
    """One parameter; ``shown`` is its part of the id, ``plain`` pytest's own."""

    name: str
    value: object
    shown: str
    plain: str | None


class _Part(NamedTuple):
    """The part of an id that one ``parametrize`` has written."""

    id: str
    arguments: tuple[_Argument, ...]

    @property
    def is_split(self) -> bool:
        return self.id == "-".join(argument.shown for argument in self.arguments)

    def without(self, left_out: frozenset[str], *, named: bool = True) -> str | None:
        """Return this part without some parameters; None if nothing is left.

        Not ``named``: without the names that a conftest may have put before the values, as that
        of tt-metal's ttnn tests does to all tests of a session that it is part of.
        """
        if not self.is_split:
            return self._by_text(left_out)
        kept = [argument for argument in self.arguments if argument.name not in left_out]
        texts = [argument.shown if named else _unnamed(argument) for argument in kept]
        return "-".join(texts) if kept else None

    def _by_text(self, left_out: frozenset[str]) -> str:
        """Take out a number that the author wrote, where it is unmistakable."""
        words = self.id.split("-")
        for name, value, _, plain in self.arguments:
            if name not in left_out or value is None or plain is None or len(plain) < _TELLING:
                continue
            alike = sum(plain == other.plain for other in self.arguments)
            if words.count(plain) == 1 and alike == 1 and len(words) > 1:
                words.remove(plain)
        return "-".join(words)


def _unnamed(argument: _Argument) -> str:
    name, _, shown, plain = argument
    return plain if plain is not None and shown.startswith(f"{name}=") else shown


def _parts(item: pytest.Item, callspec: Any) -> Iterator[_Part]:
    """Yield the part of each ``parametrize``; one part where they are unknown."""
    groups = list(_groups(item, tuple(callspec.indices)))
    ids: Sequence[str] = getattr(callspec, "_idlist", ())
    if len(groups) != len(ids):
        ids = [callspec.id]
        groups = [tuple(argument for group in groups for argument in group)]
    yield from map(_Part, ids, groups)


def _groups(item: pytest.Item, names: Iterable[str]) -> Iterator[tuple[_Argument, ...]]:
    marked = {name: mark for mark in _marks(item) for name in mark.names}
    done: set[str] = set()
    for name in names:
        if name not in done:
            mark = marked.get(name, _Mark((name,)))
            done.update(mark.names)
            yield tuple(_arguments(item, mark))


class _Mark(NamedTuple):
    """A ``parametrize``: its names, its rows, and what makes ids of values."""

    names: tuple[str, ...]
    rows: Sequence[Any] = ()
    make_id: Callable[[Any], object] | None = None

    def index_of(self, values: Sequence[object]) -> int | None:
        for index, row in enumerate(self.rows):
            if isinstance(row, _PARAMETER_SET):
                found = row.values
            else:
                several = len(self.names) > 1 and isinstance(row, (list, tuple))
                found = row if several else (row,)
            if len(found) == len(values) and all(map(_is_same, found, values)):
                return index
        return None


def _is_same(first: object, second: object) -> bool:
    return first is second


def _marks(item: pytest.Item) -> Iterator[_Mark]:
    for mark in item.iter_markers("parametrize"):
        positional = zip(("argnames", "argvalues"), mark.args, strict=False)
        given = {**dict(positional), **mark.kwargs}
        names, rows, ids = given.get("argnames", ()), given.get("argvalues"), given.get("ids")
        listed = names.split(",") if isinstance(names, str) else names
        yield _Mark(
            tuple(stripped for name in listed if (stripped := name.strip())),
            rows if isinstance(rows, (list, tuple)) else (),
            ids if callable(ids) else None,
        )


def _arguments(item: pytest.Item, mark: _Mark) -> Iterator[_Argument]:
    parameters = _parameters(item)
    values = [parameters.get(name) for name in mark.names]
    index = mark.index_of(values)
    hook = item.config.hook.pytest_make_parametrize_id
    for name, value in zip(mark.names, values, strict=True):
        own = mark.make_id(value) if mark.make_id else None
        told = hook(config=item.config, val=value, argname=name) if own is None else own
        plain = _plain_id(name, value, index)
        shown = (plain or "") if told is None else _escaped(str(told))
        yield _Argument(name, value, shown, plain)


def _plain_id(name: str, value: object, index: int | None) -> str | None:
    """Return pytest's id of an unnamed value; None where it depends."""
    if isinstance(value, str):
        return _escaped(value)
    if value is None or isinstance(value, (bool, int, float, complex, Enum)):
        return str(value)
    called = getattr(value, "__name__", None)
    if isinstance(called, str):
        return called
    return None if index is None else f"{name}{index}"


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")
