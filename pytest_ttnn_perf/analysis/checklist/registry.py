"""Every rule there is, in the order of their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.rules.ttp001_profiler_data_dropped import (
    ProfilerDataDropped,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp002_incomplete_trace_replay import (
    IncompleteTraceReplay,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp003_cold_samples import ColdSamples
from pytest_ttnn_perf.analysis.checklist.rules.ttp004_conflicting_environment import (
    ConflictingEnvironment,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp005_many_kernel_invocations import (
    ManyKernelInvocations,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp006_busy_host import BusyHost
from pytest_ttnn_perf.analysis.checklist.rules.ttp007_host_fallback import HostFallback
from pytest_ttnn_perf.analysis.checklist.rules.ttp101_weights_not_bfloat8 import WeightsNotBfloat8
from pytest_ttnn_perf.analysis.checklist.rules.ttp102_float32_tensors import Float32Tensors
from pytest_ttnn_perf.analysis.checklist.rules.ttp103_fidelity_above_need import FidelityAboveNeed
from pytest_ttnn_perf.analysis.checklist.rules.ttp104_activations_above_bfloat16 import (
    ActivationsAboveBfloat16,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp105_bfp8_without_bfloat16_cast import (
    Bfp8WithoutBfloat16Cast,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp201_row_major_compute import RowMajorCompute
from pytest_ttnn_perf.analysis.checklist.rules.ttp202_tile_padding import TilePadding
from pytest_ttnn_perf.analysis.checklist.rules.ttp203_layout_conversions import LayoutConversions
from pytest_ttnn_perf.analysis.checklist.rules.ttp301_interleaved_activations import (
    InterleavedActivations,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp302_resharding import Resharding
from pytest_ttnn_perf.analysis.checklist.rules.ttp303_hot_data_in_dram import HotDataInDram
from pytest_ttnn_perf.analysis.checklist.rules.ttp304_low_l1_headroom import LowL1Headroom
from pytest_ttnn_perf.analysis.checklist.rules.ttp305_unused_cores import UnusedCores
from pytest_ttnn_perf.analysis.checklist.rules.ttp306_core_skew import CoreSkew
from pytest_ttnn_perf.analysis.checklist.rules.ttp311_matmul_not_dram_sharded import (
    MatmulNotDramSharded,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp312_small_matmul_blocks import SmallMatmulBlocks
from pytest_ttnn_perf.analysis.checklist.rules.ttp313_matmul_without_program_config import (
    MatmulWithoutProgramConfig,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp314_low_matmul_efficiency import (
    LowMatmulEfficiency,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp401_host_bound import HostBound
from pytest_ttnn_perf.analysis.checklist.rules.ttp402_trace_not_used import TraceNotUsed
from pytest_ttnn_perf.analysis.checklist.rules.ttp403_dynamic_shapes import DynamicShapes
from pytest_ttnn_perf.analysis.checklist.rules.ttp404_device_behind_e2e import DeviceBehindE2e
from pytest_ttnn_perf.analysis.checklist.rules.ttp405_trace_region_missing import TraceRegionMissing
from pytest_ttnn_perf.analysis.checklist.rules.ttp406_program_cache_off import ProgramCacheOff
from pytest_ttnn_perf.analysis.checklist.rules.ttp407_optimization_level_zero import (
    OptimizationLevelZero,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp501_one_command_queue import OneCommandQueue
from pytest_ttnn_perf.analysis.checklist.rules.ttp502_low_io_overlap import LowIoOverlap
from pytest_ttnn_perf.analysis.checklist.rules.ttp503_transfer_bound import TransferBound
from pytest_ttnn_perf.analysis.checklist.rules.ttp504_padded_host_transfer import PaddedHostTransfer
from pytest_ttnn_perf.analysis.checklist.rules.ttp505_output_on_compute_queue import (
    OutputOnComputeQueue,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp601_conv_sharding_changes import (
    ConvShardingChanges,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp602_act_block_h_below_max import ActBlockHBelowMax
from pytest_ttnn_perf.analysis.checklist.rules.ttp603_act_double_buffer_off import (
    ActDoubleBufferOff,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp604_weights_double_buffer_off import (
    WeightsDoubleBufferOff,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp605_batchnorm_not_folded import BatchnormNotFolded
from pytest_ttnn_perf.analysis.checklist.rules.ttp606_conv_sharding_unsuited import (
    ConvShardingUnsuited,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp607_low_conv_efficiency import LowConvEfficiency
from pytest_ttnn_perf.analysis.checklist.rules.ttp701_batch_not_divisible import BatchNotDivisible
from pytest_ttnn_perf.analysis.checklist.rules.ttp702_weights_not_replicated import (
    WeightsNotReplicated,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp703_collective_share import CollectiveShare
from pytest_ttnn_perf.analysis.checklist.rules.ttp704_device_imbalance import DeviceImbalance
from pytest_ttnn_perf.analysis.checklist.rules.ttp801_grid_underused import GridUnderused
from pytest_ttnn_perf.analysis.checklist.rules.ttp803_small_transfers import SmallTransfers
from pytest_ttnn_perf.analysis.checklist.rules.ttp804_bound import Bound
from pytest_ttnn_perf.analysis.checklist.rules.ttp805_barrier_per_transfer import BarrierPerTransfer
from pytest_ttnn_perf.analysis.checklist.rules.ttp901_pcc_below_limit import PccBelowLimit
from pytest_ttnn_perf.analysis.checklist.rules.ttp902_pcc_not_checked import PccNotChecked
from pytest_ttnn_perf.analysis.checklist.rules.ttp903_non_finite_output import NonFiniteOutput
from pytest_ttnn_perf.analysis.checklist.rules.ttp904_pcc_dropped import PccDropped
from pytest_ttnn_perf.analysis.checklist.rules.ttp905_target_missed import TargetMissed
from pytest_ttnn_perf.analysis.checklist.rules.ttp906_pcc_limit_lowered import PccLimitLowered

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Rule


RULES: Final[tuple[type[Rule], ...]] = (
    ProfilerDataDropped,
    IncompleteTraceReplay,
    ColdSamples,
    ConflictingEnvironment,
    ManyKernelInvocations,
    BusyHost,
    HostFallback,
    WeightsNotBfloat8,
    Float32Tensors,
    FidelityAboveNeed,
    ActivationsAboveBfloat16,
    Bfp8WithoutBfloat16Cast,
    RowMajorCompute,
    TilePadding,
    LayoutConversions,
    InterleavedActivations,
    Resharding,
    HotDataInDram,
    LowL1Headroom,
    UnusedCores,
    CoreSkew,
    MatmulNotDramSharded,
    SmallMatmulBlocks,
    MatmulWithoutProgramConfig,
    LowMatmulEfficiency,
    HostBound,
    TraceNotUsed,
    DynamicShapes,
    DeviceBehindE2e,
    TraceRegionMissing,
    ProgramCacheOff,
    OptimizationLevelZero,
    OneCommandQueue,
    LowIoOverlap,
    TransferBound,
    PaddedHostTransfer,
    OutputOnComputeQueue,
    ConvShardingChanges,
    ActBlockHBelowMax,
    ActDoubleBufferOff,
    WeightsDoubleBufferOff,
    BatchnormNotFolded,
    ConvShardingUnsuited,
    LowConvEfficiency,
    BatchNotDivisible,
    WeightsNotReplicated,
    CollectiveShare,
    DeviceImbalance,
    GridUnderused,
    SmallTransfers,
    Bound,
    BarrierPerTransfer,
    PccBelowLimit,
    PccNotChecked,
    NonFiniteOutput,
    PccDropped,
    TargetMissed,
    PccLimitLowered,
)
