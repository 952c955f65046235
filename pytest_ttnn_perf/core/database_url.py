"""The URL of a history database, whose password is never shown."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from pytest_ttnn_perf.core.errors import UsageError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

#: The variable that gives the URL where nobody should read it.
VARIABLE: Final = "TTNN_PERF_HISTORY"
#: What installs all that a database needs.
INSTALL: Final = "pip install 'pytest-ttnn-perf[history]'"
SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql+psycopg"
_SCHEMES: Final = {SQLITE: SQLITE, POSTGRESQL: POSTGRESQL, "postgresql": POSTGRESQL}
_EXPECTED: Final = (
    "expected sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, found"
)
#: Parameters of libpq that are passwords too, or lead to other servers than the one that is shown.
_SECRET: Final = frozenset({"password", "sslpassword", "user", "host", "hostaddr", "service"})


class DatabaseUrl(Struct, frozen=True):
    """The place of a database; ``str()`` and ``repr()`` leave out the password.

    ``file`` is that of SQLite. The others are of PostgreSQL; ``options`` are parameters of its
    connection, such as sslmode.
    """

    scheme: str
    file: Path | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        if self.file is not None:
            file, here = self.file, Path.cwd()
            return f"{self.scheme}:///{file.relative_to(here) if here in file.parents else file}"
        secret = "" if self.password is None else ":***"
        user = "" if self.user is None else f"{self.user}{secret}@"
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{user}{host}{port}/{self.database}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def without_secrets(self, text: str) -> str:
        """Return a message about this database with the password blotted out."""
        return text.replace(self.password, "***") if self.password else text


def database_url(text: str, folder: Path) -> DatabaseUrl:
    """Read a URL, which no message repeats; files start at ``folder``.

    Raises:
        UsageError: it is not one of a database that can keep a history.

    >>> str(database_url("postgresql://ci:s3cret@db.example.org/perf", Path("/")))
    'postgresql+psycopg://ci:***@db.example.org/perf'
    """
    try:
        parts = urlsplit(text)
        scheme, port = _SCHEMES.get(parts.scheme), parts.port
    except ValueError:  # a bracket or a port that is none: its text may be part of a password
        message = (
            f"{_EXPECTED} a URL whose host or port cannot be read: in a password, write / ? # @ : "
            "and % as %2F %3F %23 %40 %3A and %25"
        )
        raise UsageError(message) from None
    is_url = text.partition("://")[0].strip().lower() == parts.scheme
    if scheme is None or not is_url:
        known = is_url and parts.scheme.isidentifier()
        found = f"a URL that begins with {parts.scheme}://" if known else "no URL of a database"
        message = f"{_EXPECTED} {found}"
        raise UsageError(message)
    if scheme == SQLITE:
        return DatabaseUrl(scheme, file=_file(text, folder))
    return _server(scheme, parts, port)


def _file(text: str, folder: Path) -> Path:
    head, found, path = text.partition(":///")
    # Characters of a file's name stay as they are; what follows a ? is meant for drivers.
    if head != SQLITE or not found or not path or "?" in path or path == ":memory:":
        message = (
            "expected the file of an SQLite database, as in sqlite:///perf.db or "
            "sqlite:////srv/perf.db, found a URL without one, or with parameters"
        )
        raise UsageError(message)
    return folder / Path(path).expanduser()


def _server(scheme: str, parts: SplitResult, port: int | None) -> DatabaseUrl:
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database or parts.fragment:
        message = (
            f"{_EXPECTED} a URL without a database, or with a / or # too many: in a password, "
            "write these as %2F and %23"
        )
        raise UsageError(message)
    options = tuple(parse_qsl(parts.query, keep_blank_values=True))
    hidden = sorted({name for name, _ in options} & _SECRET)
    if hidden:
        message = f"{hidden[0]} is a parameter of the history URL: expected it before the database"
        raise UsageError(message)
    return DatabaseUrl(
        scheme,
        host=unquote(parts.hostname) if parts.hostname else None,
        port=port,
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        database=database,
        options=options,
    )


def check_installed(url: DatabaseUrl) -> None:
    """Check, without importing anything, that the needs of a database are installed.

    Raises:
        UsageError: it is not, or is too old, or the folder of an SQLite file is missing.
    """
    needed = ("sqlalchemy",) if url.file is not None else ("sqlalchemy", "psycopg")
    for module in needed:
        if find_spec(module) is None:
            message = f"a history database needs {module}, which is not installed: {INSTALL}"
            raise UsageError(message)
    from importlib.metadata import version

    found = version("sqlalchemy")
    if int(found.partition(".")[0]) < 2:
        message = f"a history database needs sqlalchemy 2, found {found}: {INSTALL}"
        raise UsageError(message)
    if url.file is not None and not url.file.parent.is_dir():
        message = f"{url}: expected the folder {url.file.parent}, found none: make it first"
        raise UsageError(message)
    if url.file is not None and url.file.is_dir():
        message = f"{url}: expected the file of a database, found a folder"
        raise UsageError(message)
