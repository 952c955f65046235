"""Reports that fit: GitHub takes no comment and no summary beyond a certain size."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What a comment on a pull request may have, and what a step's summary may have.
COMMENT_BYTES: Final = 65_536
SUMMARY_BYTES: Final = 1_048_576
#: Room that is kept for saying what was left out.
_NOTE_BYTES: Final = 300


class Section(NamedTuple):
    """A part of a report: ``items`` may be left out from the end, the rest goes with them."""

    head: str
    items: tuple[str, ...] = ()
    tail: str = ""
    noun: str = "line"

    @property
    def text(self) -> str:
        """All of it."""
        return self.head + "".join(self.items) + self.tail


def fitted(sections: Iterable[Section], closing: str, *, most_bytes: int, whole: str | None) -> str:
    """Return the sections, as many of their items as there is room for, and what closes them.

    What comes first is cut last. ``whole`` is where all of it can be read.
    """
    where = f"; the whole is in {whole}" if whole else ""
    room = most_bytes - _size(closing) - _NOTE_BYTES - _size(where)
    parts: list[str] = []
    omitted = 0
    for section in sections:
        # A note of its own may follow each section that is cut, and one that counts the others.
        kept = _cut(section, room - _NOTE_BYTES - _size(where))
        if kept is None or (section.items and not kept.items):
            omitted += max(1, len(section.items))
            continue
        left = len(section.items) - len(kept.items)
        note = f"\n*{left:,} of {len(section.items):,} {section.noun}s left out{where}.*\n"
        parts.append(kept.text + (note if left else ""))
        room -= _size(parts[-1])
    if omitted:
        parts.append(f"\n*{omitted:,} more lines left out{where}.*\n")
    text = re.sub(r"\n{3,}", "\n\n", "".join(parts) + closing)
    return text if _size(text) <= most_bytes else ""


def _cut(section: Section, room: int) -> Section | None:
    """Return a section with the items that fit; None if not even its frame does."""
    used = _size(section.head) + _size(section.tail)
    if used > room:
        return None
    kept = 0
    for item in section.items:
        used += _size(item)
        if used > room:
            break
        kept += 1
    return section._replace(items=section.items[:kept])


def _size(text: str) -> int:
    return len(text.encode("utf-8", errors="replace"))
