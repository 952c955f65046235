"""Markdown in which text of others stays text: one row is one line, and nothing becomes markup."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


#: The longest id that is shown whole in a table or a heading; commands are never cut.
LONGEST_ID: Final = 120
#: Marks that Markdown may take for its own. An underscore inside a word is none.
_MARKS: Final = re.compile(r"[\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])")
#: A person who would be called, or an issue that would be linked.
_REFERENCE: Final = re.compile(r"([@#])(?=\w)")
_UNSAFE: Final = re.compile(r"[^\w .\-=,/]|_")


def prose(text: str) -> str:
    r"""Return text of others in a sentence or a cell.

    >>> prose("<b>|*a* wall_time")
    '&lt;b&gt;&#124;\\*a\\* wall_time'
    """
    marked = _MARKS.sub(lambda found: "\\" + found[0], visible(text))
    safe = escape(marked, quote=False)
    return _REFERENCE.sub(r"\1<!-- -->", safe).replace("|", "&#124;")


def code(text: str, *, most: int = LONGEST_ID) -> str:
    r"""Return text of others as it is, in the type of a program, also in a cell.

    What could end a code span or a cell is spelt in HTML, which every renderer understands alike.

    >>> code("test_model[8]"), code("a|b")
    ('`test_model[8]`', '<code>a&#124;b</code>')
    """
    shown = shortened(visible(text), most)
    if not shown.strip() or shown == "-":
        return "-"
    if "`" not in shown and "|" not in shown:
        return f"`{shown}`"
    return f"<code>{_UNSAFE.sub(lambda found: f'&#{ord(found[0])};', shown)}</code>"


def spans(text: str) -> str:
    r"""Return a sentence in which what stands in backticks is a program's own words.

    >>> spans("Call `check_pcc(a, b)` *once*.")
    'Call `check_pcc(a, b)` \\*once\\*.'
    """
    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # one of them has no partner
        return prose(text)
    longest = max(map(len, parts))
    return "".join(
        code(part, most=longest) if index % 2 else prose(part) for index, part in enumerate(parts)
    )


def summary(text: str) -> str:
    """Return the line that stands for what is folded away."""
    return f"<details><summary>{escape(visible(text))}</summary>\n\n"


#: Ends what is folded away.
FOLDED: Final = "\n</details>\n"


def row(cells: Sequence[str]) -> str:
    """Return a row of a table; its cells are safe."""
    return f"| {' | '.join(cells)} |\n"


def heading_rows(titles: Sequence[str], *, right: frozenset[int] = frozenset()) -> str:
    """Return the first two rows of a table; the columns in ``right`` are aligned so."""
    rules = ("---:" if index in right else "---" for index in range(len(titles)))
    return row(titles) + f"|{'|'.join(rules)}|\n"


def fence(commands: Sequence[str]) -> tuple[str, str]:
    """Return what opens and closes a block of commands, longer than anything in them."""
    longest = max((len(run) for text in commands for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}sh\n", f"{ticks}\n"


def fenced(commands: Sequence[str]) -> str:
    """Return commands in a block that can be copied."""
    opening, closing = fence(commands)
    return opening + "".join(f"{visible(command)}\n" for command in commands) + closing


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


def fit_to_size(
    sections: Iterable[Section], closing: str, *, most_bytes: int, whole: str | None
) -> str:
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
