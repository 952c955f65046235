"""The client of the official SDK, as agents use it, against the server as they start it."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[2]
STAND_IN = ("-m", "tests.mcp.stand_in")
#: With a handshake, and without.
ERAS = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@pytest.fixture(scope="module", autouse=True)
def _sdk() -> None:
    try:
        version("mcp")
    except PackageNotFoundError:
        pytest.skip("mcp, the official SDK, is not installed; make test-real installs it")


@asynccontextmanager
async def connected(folder: Path, mode: str, server: tuple[str, ...]) -> AsyncIterator[Any]:
    from mcp import StdioServerParameters
    from mcp.client.client import Client
    from mcp.client.stdio import stdio_client

    environment = {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": ""}
    started = StdioServerParameters(
        command=sys.executable, args=list(server), env=environment, cwd=folder
    )
    async with Client(stdio_client(started), mode=mode) as client:
        yield client


def run(test: Any, *arguments: Any) -> None:
    import anyio

    async def bounded() -> None:
        with anyio.fail_after(300):  # only what hangs takes so long
            await test(*arguments)

    anyio.run(bounded)


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


@ERAS
def test_listing_calls_and_errors(tmp_path: Path, mode: str) -> None:
    async def story() -> None:
        from mcp.shared.exceptions import MCPError

        async with connected(tmp_path, mode, STAND_IN) as client:
            listed = await client.list_tools()
            assert {"status", "doctor", "explain", "compare", "accept"} <= {
                tool.name for tool in listed.tools
            }
            found = await client.call_tool("explain", {"what": "failed"})
            assert json.loads(text_of(found))["answer"] == {"failed": True}
            large = await client.call_tool("explain", {"what": "large"})
            assert len(text_of(large)) < 8192
            assert json.loads(text_of(large))["answer"].startswith('{"verdict":"KEEP"')
            wrong = await client.call_tool("explain", {"what": "wrong"})
            assert wrong.is_error
            assert text_of(wrong) == "ttnn-perf: no rule is called 'wrong'"
            with pytest.raises(MCPError, match="expected a tool of status, doctor"):
                await client.call_tool("rm", {})
            with pytest.raises(MCPError, match="no method"):
                await client.list_resources()

    run(story)


@ERAS
def test_progress_and_cancelling(tmp_path: Path, mode: str) -> None:
    async def story() -> None:
        import anyio

        async with connected(tmp_path, mode, STAND_IN) as client:
            told: list[tuple[float, str | None]] = []

            async def tell(done: float, _: float | None, message: str | None) -> None:
                told.append((done, message))

            await client.call_tool("explain", {"what": "rounds"}, progress_callback=tell)
            assert told == [(1, "round 1"), (2, "round 2")]

            with anyio.CancelScope() as scope:

                async def stop(*_: object) -> None:
                    scope.cancel()

                await client.call_tool("explain", {"what": "long"}, progress_callback=stop)
            assert scope.cancelled_caught
            # Answered once the cancelled one has ended: calls are run one after another.
            await client.call_tool("explain", {"what": "x"})
            assert (tmp_path / "kept").read_text() == "round 1"

    run(story)
