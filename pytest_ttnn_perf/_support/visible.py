"""Text of others, made harmless where it is shown: ids of tests may hold anything."""

from __future__ import annotations

from typing import Any, Final

_CUT: Final = "..."


def text_of(value: object) -> str:
    """Return the text of anything that users' code made, also where its class cannot give one.

    >>> text_of(ValueError("too large"))
    'too large'
    """
    try:
        return str(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (a text is asked for: nothing else may come of it)
        kind, why = type(value).__name__, type(error).__name__
        return f"<{kind} whose text cannot be made: {why}>"


def plain(value: Any) -> Any:
    """Return a string or number as one of Python's own: derived classes show what they like."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__pos__(value)
    return float.__pos__(value) if isinstance(value, float) else value


def visible(text: str) -> str:
    r"""Return one line in which everything can be seen: what cannot be printed is spelt out.

    Line breaks, colours of a terminal, marks that turn the direction of writing, half a surrogate
    pair: none of them does anything any more.

    >>> visible("one\ntwo\x1b[31m")
    'one\\ntwo\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _spelt(c) for c in text)


def visible_lines(text: str) -> str:
    """Return the same, with its lines kept."""
    return "\n".join(visible(line) for line in text.split("\n"))


def shortened(text: str, most: int) -> str:
    """Return at most so many characters: beginning and end tell more than the middle.

    >>> shortened("test_model[a-very-long-parameter]", 21)
    'test_mode...arameter]'
    """
    if len(text) <= most:
        return text
    end = (most - len(_CUT)) // 2
    return text[: most - len(_CUT) - end] + _CUT + text[len(text) - end :]


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
