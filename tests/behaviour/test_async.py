"""Async tests: what they await is measured in their own event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, entry_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: What pytest-asyncio and anyio do: run the test in a loop.
CONFTEST = """
    import asyncio
    import pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem):
        names = pyfuncitem._fixtureinfo.argnames
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True
"""
TEST = """
    import asyncio
    import pytest

    class Server:
        def __init__(self):
            self.loops, self.calls, self.now = set(), [], 0

        async def answer(self, *words, by=1):
            self.loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0)
            self.calls.append(words)
            self.now += by
            return len(self.calls)

    @pytest.mark.ttnn_perf(warmup=2, iterations=3)
    async def test_model(ttnn_perf):
        server = Server()
        {body}
        assert server.loops == {{asyncio.get_running_loop()}}
"""
QUIET = ("--ttnn-perf", "--ttnn-perf-missing=ignore")


def write(project: Project, body: str) -> None:
    project.write(conftest=CONFTEST, test_model=TEST.format(body=body))


def test_a_coroutine_is_timed_in_the_loop_of_the_test(project: Project) -> None:
    write(
        project,
        """last = await ttnn_perf.measure_async(server.answer, "hi", by=7, clock=lambda: server.now)
        assert (last, server.calls) == (5, [("hi",)] * 5)
        await ttnn_perf.measure_async(server.answer, setup=lambda: "set up", name="again")
        assert server.calls[5:] == [("set up",)] * 5""",
    )

    assert counts_of(project.pytest(*QUIET)) == "1 passed"
    metrics = entry_of(project)["metrics"]
    assert (metrics["sim_time"]["warmup"], metrics["sim_time"]["samples"]) == ([7, 7], [7, 7, 7])
    assert metrics["again"]["source"] == "wall"
    assert len(metrics["again"]["samples"]) == 3


@pytest.mark.parametrize("arguments", [(), QUIET], ids=["idle", "gated"])
def test_measure_does_not_take_what_must_be_awaited(
    project: Project, arguments: tuple[str, ...]
) -> None:
    write(project, "ttnn_perf.measure(server.answer)")

    ran = project.pytest(*arguments)

    assert counts_of(ran).startswith("1 failed")
    assert "use `await ttnn_perf.measure_async(...)`" in ran.text
