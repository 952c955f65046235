"""What pytest is told on the side of another commit: the user's words, as they hold there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Options of pytest whose value may be the name of a file, which then is no test to run.
_WITH_PATH: Final = frozenset({
    "-c", "--config-file", "--rootdir", "--confcutdir", "--ignore", "--deselect", "--basetemp",
    "-k", "-m", "-p", "-o", "-W", "-n", "-r", "--junitxml", "--junit-xml", "--log-file",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moved:
    """Words for the other side. ``narrowed``: some tests that were asked for are not there."""

    words: tuple[str, ...]
    narrowed: bool


@dataclass(frozen=True, slots=True)
class Move:
    """From the project in ``root`` to the one in ``tree``; the user stands in ``here``."""

    root: Path
    tree: Path
    here: Path

    @property
    def there(self) -> Path:
        """Where the user would stand in the other project."""
        return self.tree / self.here.relative_to(self.root)

    def path(self, text: str) -> str:
        """Return a text that begins with a path into the project, as a path into the other."""
        root = str(self.root)
        after = text[len(root) : len(root) + 1]
        inside = text.startswith(root) and after in {"", os.sep, ":"}
        return f"{self.tree}{text[len(root) :]}" if inside else text

    def words(self, words: Sequence[str]) -> Moved:
        """Return pytest's words; a file or test that only this project has is left out.

        pytest would refuse all for the sake of one that is not there. The tests of a file are then
        chosen by their ids.

        Raises:
            UsageError: none of the files that were asked for is there.
        """
        kept, missing, named = [], [], False
        for before, word in zip(("", *words), words, strict=False):
            file, of_test, _ = word.partition("::")
            option = word.startswith("-") or before in _WITH_PATH
            if option or not file or not (self.here / file).exists():
                name, equals, value = word.partition("=")
                kept.append(f"{name}={self.path(value)}" if equals else self.path(word))
            elif not Path(self.path(str(self.here / file))).exists():
                missing.append(word)
            else:
                kept.append(self.path(file) if of_test else self.path(word))
                named = named or bool(of_test)
        is_test = [word for word in kept if (self.here / word).exists()]
        if missing and not is_test:
            message = f"nothing to compare: the commit does not have {', '.join(missing)}"
            raise UsageError(message)
        return Moved(tuple(kept), named or bool(missing))

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment, with modules looked for in the other project."""
        moved = dict(variables)
        places = moved.get("PYTHONPATH", "").split(os.pathsep)
        if places != [""]:
            moved["PYTHONPATH"] = os.pathsep.join(map(self.path, places))
        if "PWD" in moved:
            moved["PWD"] = str(self.there)
        return moved
