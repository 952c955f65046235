"""Answers that an agent can afford: none is longer than 8 kB, and one that was cut says so."""

from __future__ import annotations

import json
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.text import counted, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: What a message may have, with all that is around the answer.
MOST_BYTES: Final = 8192
#: How much is left of lists, and of texts in characters: the first that fits is taken.
_LEVELS: Final = (
    (MOST_BYTES, MOST_BYTES), (100, 2000), (70, 1400), (50, 1000), (40, 800), (30, 700), (24, 600),
    (18, 500), (14, 450), (11, 400), (9, 350), (7, 300), (5, 200), (4, 160), (3, 120), (2, 80),
    (1, 60),
)  # fmt: skip
#: Of an object, whose members differ, more is left than of a list.
_MEMBERS_PER_ITEM: Final = 4
_MOST_PLACES: Final = 6
_REST: Final = "the command prints all of it"
_MOST_ERROR_BYTES: Final = 6000
_LONGEST_PLACE: Final = 60

Message = dict[str, Any]


def encoded(message: Message) -> bytes:
    """Return a message as its line. All of it is ASCII, so nobody finds another line end in it."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def fits(message: Message) -> bool:
    """Tell whether a message may be sent."""
    return len(encoded(message)) <= MOST_BYTES


class _TooLongError(Exception):
    """What is left cannot fit: nobody needs to look at the rest."""


def bounded(text: str, most_bytes: int) -> str:
    """Return as much of a text as has so many bytes in a message, however it is escaped there.

    At least a hundred: what is left must be worth reading.
    """
    text = _clean(text)
    most = min(len(text), most_bytes)
    while len(json.dumps(json.dumps(shortened(text, most)))) > most_bytes:
        most = most * 3 // 4
    return shortened(text, most)


def fitted(
    around: Callable[[Message], Message], head: Mapping[str, object], answer: object
) -> Message:
    """Return the message ``around`` an answer, of which as much is left as fits.

    ``head`` stands before it, and has the command that prints all of it.
    """
    for items, characters in _LEVELS:
        cut = _Cut(items, characters)
        try:
            left = {**head, "answer": cut.of(answer)}
        except _TooLongError:
            continue
        told = cut.told()
        # Programs get a whole answer as an object too, unless that would cost agents the half.
        shapes = (_as_text({**left, "cut": told}),) if told else (_as_both(left), _as_text(left))
        for message in map(around, shapes):
            if fits(message):
                return message
    return around(_as_text({**head, "answer": None, "cut": ["all of it", _REST]}))


def as_error(text: str) -> Message:
    """Return the result of a tool that failed, with what a person would read."""
    return {
        "content": [{"type": "text", "text": bounded(text, _MOST_ERROR_BYTES)}],
        "isError": True,
    }


def _as_text(document: Message) -> Message:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "isError": False}


def _as_both(document: Message) -> Message:
    return {**_as_text(document), "structuredContent": document}


def _clean(text: str) -> str:
    """Return a text without halves of surrogate pairs, which not every reader of JSON takes."""
    return text.encode("utf-8", "replace").decode()


class _Cut:
    """Leaves at most so much of each list and text of a document, and knows what it cut."""

    def __init__(self, items: int, characters: int) -> None:
        self._items, self._characters = items, characters
        self._members = items * _MEMBERS_PER_ITEM
        self._room = MOST_BYTES
        self._places: dict[str, tuple[int, int]] = {}
        self._texts = 0

    def of(self, value: object, place: str = "") -> Any:
        """Return what is left of a value.

        Raises:
            _TooLongError: it is too much.
        """
        self._take(1)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            shown = list(islice(value.items(), self._members))
            self._note(place, len(shown), len(value))
            self._take(sum(len(key) for key, _ in shown))
            return {
                _clean(key): self.of(member, f"{place}.{key}" if place else key)
                for key, member in shown
            }
        if isinstance(value, list):
            left = value[: self._items]
            self._note(place, len(left), len(value))
            return [self.of(item, f"{place}[]") for item in left]
        # JSON has no word for what is no number, though Python reads and writes one.
        return None if isinstance(value, float) and not isfinite(value) else value

    def told(self) -> list[str]:
        """Say what was cut; nothing if nothing was."""
        places = [
            f"{shortened(_clean(place), _LONGEST_PLACE) or 'the answer'}: {shown} of {count}"
            for place, (shown, count) in self._places.items()
        ]
        more = len(places) - _MOST_PLACES
        told = places[:_MOST_PLACES] + ([f"{more} more places"] if more > 0 else [])
        texts = [f"{counted(self._texts, 'long text')} shortened"] if self._texts else []
        return [*told, *texts, _REST] if told or texts else []

    def _text(self, value: str) -> str:
        self._take(min(len(value), self._characters))
        if len(value) <= self._characters:
            return _clean(value)
        self._texts += 1
        return _clean(value[: self._characters - 1]) + "…"

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise _TooLongError

    def _note(self, place: str, shown: int, count: int) -> None:
        if shown < count:
            self._places.setdefault(place, (shown, count))
