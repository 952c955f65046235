"""A private server of PostgreSQL on loopback; run as a program, says whether there can be one."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Debian keeps the programs of the server out of PATH.
DEBIAN = Path("/usr/lib/postgresql")
NEEDED = ("initdb", "postgres", "pg_isready", "psql")
USER, PASSWORD = "ci", "s3cret/of:ci@"
#: A server that does not answer by then never will.
START_S = 120


def programs() -> Path | None:
    """Return the folder of the server's programs; None where there are none."""
    found = shutil.which("initdb")
    folders = [*sorted(DEBIAN.glob("*/bin")), *([Path(found).resolve().parent] if found else ())]
    whole = [f for f in folders if all((f / name).exists() for name in NEEDED)]
    return whole[-1] if whole else None


@dataclass
class Server:
    """A server with a folder of its own; it refuses to run as root."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="ttnn-perf-pg-")))
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def url(self, database: str) -> str:
        """Return the URL of a database, with the password in it."""
        secret = PASSWORD.replace("/", "%2F").replace(":", "%3A").replace("@", "%40")
        return f"postgresql+psycopg://{USER}:{secret}@{self.address}/{database}"

    def initialise(self) -> Server:
        """Make the files of the server, with a password that is really asked for."""
        (self.folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (self.folder, self.folder / "password"):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        words = ["--pgdata", "data", "--username", USER, "--pwfile", "password", "--no-sync"]
        command = [self._program("initdb"), *words, "--auth", "scram-sha-256", "--encoding", "UTF8"]
        subprocess.run(command, cwd=self.folder, capture_output=True, check=True, **self._user())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        return self

    def start(self) -> Server:
        """Start the server, and wait until it answers."""
        words = ["-D", "data", "-p", str(self.port), "-k", str(self.folder), "-h", "127.0.0.1"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._program("postgres"), *words],
                cwd=self.folder, stdout=log, stderr=log, start_new_session=True, **self._user(),
            )  # fmt: skip
        ready = [self._program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        latest = time.monotonic() + START_S
        while subprocess.run(ready, check=False).returncode != 0:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < latest, (self.folder / "log").read_text()
            time.sleep(0.05)
        return self

    def kill(self) -> None:
        """Kill the server and all of its processes at once."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def remove(self) -> None:
        """Leave nothing of it."""
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def psql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as anybody would, and return what it prints."""
        words = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database, "-At", "-q"]
        environment = {**os.environ, "PGPASSWORD": PASSWORD}
        done = subprocess.run(
            [self._program("psql"), *words, "-c", statement],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    @staticmethod
    def _program(name: str) -> str:
        folder = programs()
        assert folder is not None
        return str(folder / name)

    @staticmethod
    def _user() -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        return {"user": "postgres", "group": "postgres", "extra_groups": []}


if __name__ == "__main__":
    sys.exit(0 if programs() else 1)
