"""Markdown in which text of others stays text: one row is one line, and nothing becomes markup."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.visible import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

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
