"""Which of several processes of a launcher this is."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.device.chips import Rank, rank_of


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, None),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, Rank(0, 2)),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, Rank(3, 4)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, Rank(1, 2)),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, Rank(1, 2)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, Rank(1, 2)),
        # In an allocation of several, a process that was started by hand is the only one.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
        ({"OMPI_COMM_WORLD_RANK": "first", "OMPI_COMM_WORLD_SIZE": "2"}, None),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, None),
    ],
    ids=str,
)
def test_a_rank_is_one_of_at_least_two(environment: dict[str, str], rank: Rank | None) -> None:
    assert rank_of(environment) == rank
