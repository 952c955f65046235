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
from pathlib import Path
from typing import Any

#: Debian keeps the programs of the server out of PATH.
DEBIAN = Path("/usr/lib/postgresql")
USER, PASSWORD = "ci", "s3cret/of:ci@"
#: A server that does not answer by then never will.
START_S = 120


def programs() -> Path | None:
    """Return the folder of the server's programs; None where there are none."""
    found = shutil.which("initdb")
    folders = [*sorted(DEBIAN.glob("*/bin")), *([Path(found).resolve().parent] if found else ())]
    whole = [each for each in folders if (each / "initdb").exists() and (each / "psql").exists()]
    return whole[-1] if whole else None


class Server:
    """A server with a folder of its own; it refuses to run as root."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ttnn-perf-pg-"))
        self.process: subprocess.Popen[bytes] | None = None
        self.user: dict[str, Any] = {}
        (self.folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            self.user = {"user": "postgres", "group": "postgres", "extra_groups": []}
            owner = pwd.getpwnam("postgres")
            for path in (self.folder, self.folder / "password"):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        # A password that is really asked for.
        words = ["--pgdata", "data", "--username", USER, "--pwfile", "password", "--no-sync"]
        self._run("initdb", *words, "--auth", "scram-sha-256", "--encoding", "UTF8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:{1}".format(*probe.getsockname())

    def url(self, database: str) -> str:
        """Return the URL of a database, with the password in it."""
        secret = PASSWORD.replace("/", "%2F").replace(":", "%3A").replace("@", "%40")
        return f"postgresql+psycopg://{USER}:{secret}@{self.address}/{database}"

    def start(self) -> Server:
        """Start the server, and wait until it answers."""
        host, port = self.address.split(":")
        words = ["-D", "data", "-p", port, "-k", str(self.folder), "-h", host]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [f"{programs()}/postgres", *words],
                cwd=self.folder, stdout=log, stderr=log, start_new_session=True, **self.user,
            )  # fmt: skip
        ready = [f"{programs()}/pg_isready", "-q", "-h", host, "-p", port]
        latest = time.monotonic() + START_S
        while subprocess.run(ready, check=False).returncode != 0:
            alive = self.process.poll() is None and time.monotonic() < latest
            assert alive, (self.folder / "log").read_text()
            time.sleep(0.05)
        return self

    def kill(self) -> None:
        """Kill the server and all of its processes at once."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def psql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as anybody would, and return what it prints."""
        host, port = self.address.split(":")
        words = ["-h", host, "-p", port, "-U", USER, "-d", database, "-At", "-q", "-c", statement]
        return self._run("psql", *words)

    def _run(self, program: str, *words: str) -> str:
        environment = {**os.environ, "PGPASSWORD": PASSWORD}
        command = [f"{programs()}/{program}", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=True,
            **self.user,
        )  # fmt: skip
        return str(done.stdout).strip()


if __name__ == "__main__":
    sys.exit(0 if programs() else 1)
