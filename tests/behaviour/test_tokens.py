"""``tokens`` and ``record_tokens``: what a language model is measured by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of, failure_of, record_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: A clock that goes on by what each call takes: 40 ms for a prompt, 5 ms for a step, and at first
#: ten times as much.
MODEL = """
    import pytest

    class Model:
        now = 0.0
        def clock(self): return self.now
        def prefill(self, slow=1): self.now += 40e6 * slow
        def step(self, slow=1): self.now += 5e6 * slow

    @pytest.mark.ttnn_perf({marker})
    def test_model(ttnn_perf):
        model = Model()
        for turn in range(3):
            slow = 10 if turn == 0 else 1
            with ttnn_perf.tokens(
                mode="token_out", users=32, prompt_tokens=128, warmup={warmup}, clock=model.clock
            ) as tokens:
                model.prefill(slow)
                tokens.first()
                for number in range({steps}):
                    model.step(slow if number == 0 else 1)
                    tokens.step()
        ttnn_perf.check_accuracy(top1=0.9, at_least=0.8)
"""


def write(
    project: Project, *, marker: str = "", warmup: str = "turn == 0", steps: int = 20
) -> None:
    project.write(test_model=MODEL.format(marker=marker, warmup=warmup, steps=steps))


def recorded(project: Project) -> dict[str, Any]:
    """Record a baseline of the model, and return what its test measured."""
    assert counts_of(project.pytest("--ttnn-perf-update=new")) == "1 passed"
    test = record_of(project)["tests"]["test_model.py::test_model"]
    assert isinstance(test, dict)
    return test


def test_rates_and_times_leave_compiling_apart(project: Project) -> None:
    write(project)
    metrics = recorded(project)["metrics"]
    (test,) = project.stored().values()
    gated = {"token_out_time_to_first_token", "token_out_tokens_per_second_per_user", "top1"}
    assert set(test["metrics"]) == gated
    assert test["configuration"] == {"token_out_users": 32, "token_out_prompt_tokens": 128}
    assert metrics["token_out_time_to_first_token"]["samples"] == [40e6, 40e6]
    assert metrics["token_out_compile_first_token_time"]["samples"] == [400e6]
    assert metrics["token_out_compile_step_time"]["samples"] == [50e6]
    assert metrics["token_out_tokens_per_second_per_user"]["samples"] == [200, 200]
    assert metrics["token_out_tokens_per_second"]["samples"] == [6400, 6400]
    assert metrics["token_out_inter_token_time"]["samples"] == [5e6] * 40
    # A percentile that steps do not tell is not measured.
    assert metrics["token_out_inter_token_p90"]["samples"] == [5e6]
    assert "token_out_inter_token_p95" not in metrics
    assert metrics["token_out_inter_token_p99"]["samples"] == []
    assert metrics["token_out_inter_token_p99"]["note"] == (
        "p99 needs at least 299 steps, and there are 40: p90 is the highest that they show"
    )


def test_without_a_warmup_the_first_step_compiles_and_the_first_token_is_doubtful(
    project: Project,
) -> None:
    write(project, warmup="False")
    metrics = recorded(project)["metrics"]
    assert metrics["token_out_time_to_first_token"]["samples"] == [400e6, 40e6, 40e6]
    assert metrics["token_out_time_to_first_token"]["note"] == (
        "no generation was marked warmup=True: the first may have compiled"
    )
    assert metrics["token_out_compile_step_time"]["samples"] == [50e6]
    assert len(metrics["token_out_inter_token_time"]["samples"]) == 59


MISTAKES = {
    'tokens(mode="x")': "mode is one of teacher_forced, token_out, serving, found 'x'",
    'tokens(mode="serving", users=0)': "users: expected a whole number of at least 1",
    'tokens(mode="serving")': "nothing was marked: call first() and step() as tokens come",
    'record_tokens(mode="serving", step_s=[0.1, -1])': "expected seconds above 0, found -1",
    'record_tokens(mode="serving", step_s=[1, 1], first_token_s=[], prompt_tokens=8)': (
        "first_token_s: expected one number, found 0"
    ),
    'record_tokens(mode="serving", step_s=[1, 1], first_token_s=1)': (
        "the time to a first token depends on its prompt: say prompt_tokens="
    ),
}


@pytest.mark.parametrize("option", ["--ttnn-perf", "-v"])
def test_mistakes_are_named(project: Project, option: str) -> None:
    calls = (f"ttnn_perf.{call}" for call in MISTAKES)
    bodies = (f"with {call}: pass" if ".tokens" in call else call for call in calls)
    tests = [f"def test_{at}(ttnn_perf):\n    {body}\n" for at, body in enumerate(bodies)]
    project.write(test_model="\n".join(tests))
    ran = project.pytest(option)
    assert counts_of(ran) == f"{len(MISTAKES)} failed"
    for at, message in enumerate(MISTAKES.values()):
        assert message in failure_of(ran, f"test_{at}")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("step_s=[0.1]", "none of 1 step is left after compiling (compile_steps=)"),
        ("step_s=[0.1, 0.2], compile_steps=2, first_token_s=1, prompt_tokens=8",
         "none of 2 steps is left after compiling (compile_steps=)"),
        ("step_s=[0.1, 0.2], warmup=True",
         "every generation is marked warmup=True, and none counts"),
    ],
)  # fmt: skip
def test_tokens_of_which_none_counts_are_no_pass(project: Project, call: str, why: str) -> None:
    project.write(
        test_model=f"""
            def test_model(ttnn_perf):
                ttnn_perf.record_tokens(mode="token_out", {call})
        """
    )
    ran = project.pytest("--ttnn-perf-update=new")
    assert counts_of(ran) == "1 failed"
    assert f"NO_DATA: token_out_tokens_per_second_per_user has no samples: {why}" in ran.text
