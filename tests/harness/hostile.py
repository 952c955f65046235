"""A checkout that someone else has written: a bare repository among its files, with programs.

Git takes a folder with HEAD, objects and refs for a repository, and believes the settings in it.
All of them are ordinary files that a pull request can bring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.git import git_in

if TYPE_CHECKING:
    from pathlib import Path

_SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aGVsbG8=\n -----END PGP SIGNATURE-----\n"
_WHO = "Mallory <mallory@example.org> 1763380800 +0000"
#: Those of the commands that we use.
_HOOKS = (
    "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman",
)  # fmt: skip
#: What git itself leaves in a new repository and needs to see in one; folders cannot be committed
#: when they are empty.
_KEPT = ("objects/info/kept", "refs/tags/kept")


def plant(folder: Path, *, marker: Path, files: tuple[str, ...] = ("test_m.json",)) -> None:
    """Make a folder a repository whose settings name a program that leaves ``marker``.

    Its one commit has ``files`` and claims to be signed: whoever asks for signatures has the
    program run. Its working tree is the folder itself, and a file in its index has changed, so
    whoever asks for the state of that has it run too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    git_in(folder, "init", "--quiet", "--bare", ".")
    blob = git_in(folder, "hash-object", "-w", "--stdin", text="{}").strip()
    listed = "".join(f"100644 blob {blob}\t{name}\n" for name in files)
    tree = git_in(folder, "mktree", text=listed).strip()
    text = f"tree {tree}\nauthor {_WHO}\ncommitter {_WHO}\n{_SIGNATURE}\nOf another\n"
    commit = git_in(folder, "hash-object", "-t", "commit", "-w", "--stdin", text=text).strip()
    git_in(folder, "update-ref", "HEAD", commit)
    git_in(folder, "read-tree", commit)
    for kept in _KEPT:
        (folder / kept).parent.mkdir(parents=True, exist_ok=True)
        (folder / kept).touch()
    program = folder / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{marker}'\nexit 1\n")
    program.chmod(0o755)
    hooks = folder / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in _HOOKS:
        (hooks / name).write_text(program.read_text())
        (hooks / name).chmod(0o755)
    (folder / "config").write_text(_settings(folder, program))
    (folder / "attributes").write_text("* diff=theirs filter=theirs merge=theirs\n")
    # What git reads in a checkout itself, in folders above and below too.
    (folder / ".gitattributes").write_text("* diff=theirs filter=theirs merge=theirs\n")
    (folder / ".gitmodules").write_text(
        f'[submodule "theirs"]\n    path = theirs\n    url = {folder}\n    update = !{program}\n'
    )
    (folder / ".gitconfig").write_text((folder / "config").read_text())


def _settings(folder: Path, program: Path) -> str:
    """Return settings that name a program wherever one can be named."""
    return f"""
[core]
    repositoryformatversion = 0
    bare = false
    worktree = {folder}
    fsmonitor = {program}
    hooksPath = {folder / "hooks"}
    pager = {program}
    sshCommand = {program}
    attributesFile = {folder / "attributes"}
[log]
    showSignature = true
[gpg]
    program = {program}
[diff]
    external = {program}
[diff "theirs"]
    command = {program}
    textconv = {program}
[filter "theirs"]
    clean = {program}
    smudge = {program}
    process = {program}
    required = true
[merge "theirs"]
    driver = {program}
[alias]
    log = !{program}
    status = !{program}
    cat-file = !{program}
    worktree = !{program}
    diff = !{program}
[credential]
    helper = {program}
[pager]
    log = {program}
    show = {program}
    status = {program}
    diff = {program}
"""
