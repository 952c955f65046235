"""The identity of a test: its id without expected values.

pytest knows a test by its node id, which holds the values of all its parameters. A baseline must
outlive a new expected value, so parameters of some names are left out, and so is the counter of
pytest-repeat, whose repeats are samples of one test. Which part of an id a
parameter has written is never guessed: each part is made again as pytest makes it, and where the
result is not what the id says, the id stays whole.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ttnn_perf.plugin.settings import is_measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.settings import Settings

    #: The name of a parameter, its part of the id, and pytest's own of its value, if that is known.
    Argument = tuple[str, str, str | None]

#: The parameter of pytest-repeat, by which one test is several items.
_REPEAT: Final = "__pytest_repeat_step_number"
#: What ``pytest.param`` makes.
_PARAMETER_SET: Final = type(pytest.param())


def identities_of(items: Iterable[pytest.Item], settings: Settings) -> dict[str, str]:
    """Return identities by node id, where they differ from it."""
    found = {item.nodeid: identity_of(item, settings.identity_ignores) for item in items}
    return {test: identity for test, identity in found.items() if identity != test}


def refuse_twins(items: Iterable[pytest.Item], settings: Settings) -> None:
    known: dict[str, pytest.Item] = {}
    ignored = settings.identity_ignores
    for item in items:
        if not is_measured(item, settings):
            continue
        identity = identity_of(item, ignored)
        twin = known.setdefault(identity, item)
        if twin.nodeid != item.nodeid and _but_repeats(twin) != _but_repeats(item):
            ours, theirs = _left_out(twin, ignored), _left_out(item, ignored)
            names = [name for name in ours if ours[name] != theirs.get(name)] or ours
            message = (
                f"{twin.nodeid} and {item.nodeid} would share the baseline {identity}: "
                f"identity_ignores leaves out {', '.join(names)}, and nothing else tells them "
                "apart; give them ids, as in pytest.param(..., id=...), or take the name out of "
                "identity_ignores"
            )
            raise pytest.UsageError(message)


def _but_repeats(item: pytest.Item) -> object:
    """Return the parameters of a repeated test; else its id."""
    parameters = _parameters(item)
    if parameters.pop(_REPEAT, None) is None:
        return item.nodeid
    return [(name, id(value)) for name, value in parameters.items()]


def identity_of(item: pytest.Item, ignored: tuple[str, ...]) -> str:
    node_id, left_out = item.nodeid, _left_out(item, ignored)
    if not left_out:
        return node_id
    callspec = item.callspec  # type: ignore[attr-defined]
    start = node_id.rfind(f"[{callspec.id}]")
    end = start + len(callspec.id) + 2
    # Behind it there may be the group that pytest-xdist adds; anything else is a name of its own.
    if start < 0 or node_id[end : end + 1] not in {"", "@"}:
        return node_id
    kept: list[str] = []
    is_shorter = False
    for own_id, arguments in _parts(item, callspec):
        if [name for name, *_ in arguments] == [_REPEAT]:
            is_shorter = True
        elif own_id == "-".join(shown for _, shown, _ in arguments):
            left = [argument for argument in arguments if argument[0] not in left_out]
            kept += map(_unnamed, left)
            is_shorter = is_shorter or len(left) < len(arguments)
        else:  # written by the author
            kept.append(own_id)
    if not is_shorter:
        return node_id
    joined = "-".join(kept)
    return node_id[:start] + (f"[{joined}]" if joined else "")


def _left_out(item: pytest.Item, ignored: tuple[str, ...]) -> dict[str, object]:
    """Return the parameters that are expected numbers, or None for unknown."""
    return {
        name: value
        for name, value in _parameters(item).items()
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
        if name == _REPEAT or _is_ignored(name, ignored)
    }


def _parameters(item: pytest.Item) -> dict[str, object]:
    return dict(getattr(getattr(item, "callspec", None), "params", {}))


@lru_cache(maxsize=4096)
def _is_ignored(name: str, ignored: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in ignored)


def _unnamed(argument: Argument) -> str:
    """Return a part of an id without a name before it.

    The conftest of tt-metal's ttnn tests puts it there, in all tests of a session that it is in.
    """
    name, shown, plain = argument
    return plain if plain is not None and shown.startswith(f"{name}=") else shown


def _parts(item: pytest.Item, callspec: Any) -> Iterator[tuple[str, list[Argument]]]:
    """Yield the part of each ``parametrize``; one part where they are unknown."""
    groups = list(_groups(item, tuple(callspec.indices)))
    ids: Sequence[str] = getattr(callspec, "_idlist", ())
    if len(groups) != len(ids):
        ids, groups = [callspec.id], [[argument for group in groups for argument in group]]
    yield from zip(ids, groups, strict=True)


def _groups(item: pytest.Item, names: Iterable[str]) -> Iterator[list[Argument]]:
    marks: dict[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {}
    for mark in item.iter_markers("parametrize"):
        given = {**dict(zip(("argnames", "argvalues"), mark.args, strict=False)), **mark.kwargs}
        listed = given.get("argnames", ())
        listed = listed.split(",") if isinstance(listed, str) else listed
        group = tuple(stripped for name in listed if (stripped := name.strip()))
        marks.update(dict.fromkeys(group, (group, given)))
    done: set[str] = set()
    for name in names:
        if name not in done:
            group, known = marks.get(name, ((name,), {}))
            done.update(group)
            yield _arguments(item, group, known)


def _arguments(
    item: pytest.Item, names: tuple[str, ...], given: Mapping[str, Any]
) -> list[Argument]:
    parameters, make_id, hook = _parameters(item), given.get("ids"), item.config.hook
    values = [parameters.get(name) for name in names]
    index = _index_of(values, given.get("argvalues"))
    found: list[Argument] = []
    for name, value in zip(names, values, strict=True):
        own = make_id(value) if callable(make_id) else None
        if own is None:
            own = hook.pytest_make_parametrize_id(config=item.config, val=value, argname=name)
        plain = _plain_id(name, value, index)
        found.append((name, (plain or "") if own is None else _escaped(str(own)), plain))
    return found


def _index_of(values: Sequence[object], rows: object) -> int | None:
    """Return the place of a row with these very values."""
    for index, row in enumerate(rows if isinstance(rows, (list, tuple)) else ()):
        if isinstance(row, _PARAMETER_SET):
            found = row.values
        else:
            several = len(values) > 1 and isinstance(row, (list, tuple))
            found = row if several else (row,)
        if list(map(id, found)) == list(map(id, values)):
            return index
    return None


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
