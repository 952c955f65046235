"""Which state of the project is kept, and the records of the steps that led to it.

What is committed is kept. So is what a step said KEEP of, until something else is committed: a user
may commit each kept step, or none of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.files import read_json, write_text
from pytest_ttnn_perf.processes.git import Repository
from pytest_ttnn_perf.processes.snapshots import States
from pytest_ttnn_perf.records.step import decode_step, encode_step
from pytest_ttnn_perf.run.record import ignore_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.processes.snapshots import State
    from pytest_ttnn_perf.records.step import Step

_FOLDER = "steps"


@dataclass(frozen=True, slots=True)
class Base:
    """What a step is compared with: a state, in words which one it is, and why no other."""

    name: str
    state: State
    words: str
    note: str | None = None


def read_steps(artifacts: Path) -> list[Step]:
    """Return the recorded steps, oldest first.

    Raises:
        InputError: a record cannot be read.
    """
    files = sorted((artifacts / _FOLDER).glob("*.json"))
    return [read_json(file, decode_step) for file in files]


def write_step(artifacts: Path, step: Step) -> Path:
    """Write a step record; return where.

    Raises:
        WriteError: it cannot be written.
    """
    ignore_folder(artifacts)
    file = artifacts / _FOLDER / f"{step.id}.json"
    write_text(file, text_of_step(step))
    return file


def text_of_step(step: Step) -> str:
    """Return a step record as it is written."""
    return json.dumps(encode_step(step), indent=1) + "\n"


def base_of(
    repository: Repository, states: States, now: State, steps: Sequence[Step], asked: str | None
) -> Base:
    """Return what the working tree is compared with.

    Raises:
        UsageError: nothing has changed since, or there is no such commit.
    """
    head = repository.commit("HEAD")
    if asked is not None:
        commit = repository.commit(asked)
        words = f"{commit.short} {commit.subject}".strip()
        return _other_than(now, Base(asked, states.of(commit.id), words))
    committed = states.of(head.id)
    gone = gone_steps(states, now, steps)
    kept = _last_kept(states, [step for step in steps if step.id not in gone])
    is_committed = committed.tree == now.tree
    if kept is not None and (is_committed or kept.head == head.id):
        state, words = states.of(kept.state), f"kept step {kept.message!r}"
        return _other_than(now, Base("kept", state, words))
    if not is_committed:
        words = f"{head.short} {head.subject}".strip()
        last = next((step.message for step in reversed(steps) if step.id in gone), None)
        note = f"kept step {last!r} is not in this tree" if last is not None else None
        return Base("HEAD", committed, words, note)
    fork = states.merge_base()
    if fork is None:
        message = (
            "nothing to try: the working tree is as committed, and no step was kept before; "
            "change the model, or name what to compare with: --base REF"
        )
        raise UsageError(message)
    commit = repository.commit(fork)
    words = f"{commit.short} {commit.subject}, where the branch begins"
    return _other_than(now, Base("merge base", states.of(fork), words))


def steps_of_branch(folder: Path, steps: Sequence[Step]) -> tuple[list[Step], frozenset[str]]:
    """Return the steps that began at what is checked out, or at something that it follows.

    With them the ids of those that were kept, and discarded since.

    Raises:
        UsageError: the folder is in no repository.
        InputError: git cannot read the working tree.
    """
    if not steps:
        return [], frozenset()
    states = States(Repository.around(folder).root)
    heads = {head: states.descends_from(head) for head in {step.head for step in steps}}
    found = [step for step in steps if heads[step.head]]
    try:
        now = states.now()
    except UsageError:  # untracked files are too large to look at: what is kept counts as kept
        return found, frozenset()
    return found, gone_steps(states, now, found)


def gone_steps(states: States, now: State, steps: Sequence[Step]) -> frozenset[str]:
    """Return the ids of the kept steps that what followed them has nothing of.

    Somebody discarded them, or they are on another branch: the next kept step began without them,
    or the working tree is without them.
    """
    gone = []
    for step in reversed(steps):
        if step.is_kept and states.descends_from(step.head) and states.has(step.state):
            if _is_undone(states, step, now):
                gone.append(step.id)
            else:
                now = states.of(step.base)
    return frozenset(gone)


def _is_undone(states: States, step: Step, now: State) -> bool:
    """Tell whether files that a step changed are as they had been committed before.

    They may have been edited since: then they have none of the lines that are new since that
    commit, and all that are gone since. A later step may have gone on from it in the same lines:
    then those that are gone are not back.
    """
    if now.tree == step.state_tree:
        return False
    committed, after = states.of(step.head), states.of(step.state)
    for file in states.changed_files(states.of(step.base), after):
        found = states.id_of(now, file.path)
        if found == states.id_of(committed, file.path) != file.after:
            continue
        then, later, lines = (
            set(states.text(state, file.path).splitlines()) for state in (committed, after, now)
        )
        added, removed = later - then, then - later
        if found == file.after or not (added or removed) or added & lines or removed - lines:
            return False
    return True


def _last_kept(states: States, steps: Sequence[Step]) -> Step | None:
    """Return the last step of this history that was kept, and whose state git still has.

    Raises:
        UsageError: its record is not as it was written.
    """
    for step in reversed(steps):
        if step.is_kept and states.descends_from(step.head) and states.has(step.state):
            sealed = states.sealed(step.id)
            if sealed is not None and decode_step(json.loads(sealed)) != step:
                message = (
                    f"the record of step {step.message!r} ({step.id}) was edited since it was "
                    "written, so it is not known what was kept; name what to compare with: "
                    "--base HEAD"
                )
                raise UsageError(message)
            return step
    return None


def _other_than(now: State, base: Base) -> Base:
    if base.state.tree == now.tree:
        message = f"nothing to try: the working tree is the same as {base.words}"
        raise UsageError(message)
    return base
