"""What a command has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Result:
    """The text to print, and whether it is bad news for the shell.

    ``shifted``: no test is to blame, but the machine is slower as a whole. ``errors`` is what goes
    to stderr. ``then`` is what is done once the text is out, so that a change is read before it is
    made; what it returns is printed after it.
    """

    text: str
    failed: bool = False
    shifted: bool = False
    errors: str = ""
    then: Callable[[], Result] | None = None
