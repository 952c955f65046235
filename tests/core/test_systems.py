"""The names of systems in Tenstorrent's repositories, as hardware keys spell them."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.core.hardware import system_of

WORMHOLE, BLACKHOLE = "wormhole_b0", "blackhole"


@pytest.mark.parametrize(
    ("name", "arch", "board"),
    [
        # model_targets.yaml
        ("wh_n150", WORMHOLE, "n150"),
        ("wh_llmbox", WORMHOLE, "t3k"),
        ("wh_galaxy_perf", WORMHOLE, "galaxy"),
        ("bh_p300", BLACKHOLE, "p300"),
        ("p300x2", BLACKHOLE, "p300_x2"),
        ("bh_quietbox_2", BLACKHOLE, "p300_x2"),
        ("bh_loudbox", BLACKHOLE, "p150_x8"),
        ("bh_galaxy_perf", BLACKHOLE, "blackhole_galaxy"),
        ("blackhole", BLACKHOLE, None),
        ("bh_p150_perf_civ2", BLACKHOLE, "p150"),
        # device names
        ("N150", WORMHOLE, "n150"),
        ("T3K", WORMHOLE, "t3k"),
        ("TG", WORMHOLE, "galaxy"),
        ("P150x4", BLACKHOLE, "p150_x4"),
        ("BHGLX", BLACKHOLE, "blackhole_galaxy"),
        ("blackhole_glx", BLACKHOLE, "blackhole_galaxy"),
        # tt-xla
        ("wormhole", WORMHOLE, None),
        ("wormhole_llmbox", WORMHOLE, "t3k"),
    ],
)
def test_known(name: str, arch: str, board: str | None) -> None:
    assert system_of(name) == (arch, board)


@pytest.mark.parametrize("name", ["", "runner-n150", "ci_n150", "N150x4", "BH_QB", "n150 L", "4U"])
def test_unknown_is_not_guessed(name: str) -> None:
    assert system_of(name) is None


@pytest.mark.parametrize("name", ["bh_llmbox", "blackhole_t3k", "bh_n150", "wh_p150"])
def test_a_board_of_another_architecture_is_not_meant(name: str) -> None:
    assert system_of(name) is None
