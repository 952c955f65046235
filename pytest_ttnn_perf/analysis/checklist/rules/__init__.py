"""One rule per file, named by its code; and what they need, to be known without importing them."""

from __future__ import annotations

from typing import Final

from pytest_ttnn_perf.records.finding import Input

#: The modules of rules by what they need, as their decorators say: a rule is imported for a test
#: that has one of these inputs. Most need what only a test on a device has.
BY_NEEDS: Final[dict[tuple[Input, ...], tuple[str, ...]]] = {
    (Input.TEST, Input.KERNELS): ("ttp001_profiler_data_dropped",),
    (Input.OPS,): (
        "ttp002_incomplete_trace_replay",
        "ttp007_host_fallback",
        "ttp008_durations_alike",
        "ttp009_no_processor_times",
        "ttp010_ops_without_time",
        "ttp011_devices_differ",
        "ttp012_stale_shapes",
        "ttp103_fidelity_above_need",
        "ttp104_activations_not_bfloat8",
        "ttp305_unused_cores",
        "ttp306_core_skew",
        "ttp307_data_movement",
        "ttp308_search_on_few_cores",
        "ttp311_matmul_not_dram_sharded",
        "ttp312_small_matmul_blocks",
        "ttp313_matmul_without_program_config",
        "ttp314_low_matmul_efficiency",
        "ttp315_unexplained_time",
        "ttp401_host_bound",
        "ttp403_dynamic_shapes",
        "ttp607_low_conv_efficiency",
        "ttp608_sliced_convolutions",
        "ttp703_collective_share",
        "ttp704_device_imbalance",
    ),
    (Input.TEST,): (
        "ttp003_cold_samples",
        "ttp404_device_behind_e2e",
        "ttp502_low_io_overlap",
        "ttp503_transfer_bound",
        "ttp901_pcc_below_limit",
        "ttp902_pcc_not_checked",
        "ttp903_non_finite_output",
        "ttp904_pcc_dropped",
        "ttp905_target_missed",
        "ttp906_pcc_limit_lowered",
        "ttp907_pcc_error_grew",
    ),
    (): (
        "ttp004_conflicting_environment",
        "ttp006_busy_host",
    ),
    (Input.KERNELS,): (
        "ttp005_many_kernel_invocations",
        "ttp801_grid_underused",
        "ttp803_small_transfers",
        "ttp804_bound",
        "ttp805_barrier_per_transfer",
        "ttp806_low_dram_bandwidth",
        "ttp807_uneven_cores",
        "ttp808_threads_take_turns",
    ),
    (Input.REPORT, Input.OPS): ("ttp101_weights_not_bfloat8",),
    (Input.OPS, Input.REPORT): (
        "ttp102_float32_tensors",
        "ttp201_row_major_compute",
        "ttp202_tile_padding",
        "ttp203_layout_conversions",
        "ttp301_interleaved_activations",
        "ttp302_resharding",
        "ttp303_hot_data_in_dram",
        "ttp601_conv_sharding_changes",
        "ttp602_act_block_h_below_max",
        "ttp603_act_double_buffer_off",
        "ttp604_weights_double_buffer_off",
        "ttp605_batchnorm_not_folded",
        "ttp606_conv_sharding_unsuited",
    ),
    (Input.DEVICE,): (
        "ttp105_bfp8_without_bfloat16_cast",
        "ttp405_trace_region_missing",
        "ttp406_program_cache_off",
        "ttp407_optimization_level_zero",
        "ttp501_one_command_queue",
        "ttp701_batch_not_divisible",
        "ttp702_weights_not_replicated",
    ),
    (Input.REPORT,): (
        "ttp016_operation_failed",
        "ttp304_low_l1_headroom",
        "ttp504_padded_host_transfer",
        "ttp505_output_on_compute_queue",
    ),
    (Input.OPS, Input.TEST): ("ttp402_trace_not_used",),
}
