from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.measure.pcc import Agreement, compare

SAME = Agreement(1.0, max_abs_error=0.0, relative_l2=0.0)
STEPS = np.arange(24.0).reshape(2, 3, 4)


class StandIn:
    """As much of a torch tensor as is used, of a type numpy lacks; runs where torch is missing."""

    dtype = "torch.bfloat16"

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape = array.shape

    def detach(self) -> StandIn:
        return self

    cpu = resolve_neg = detach

    def is_complex(self) -> bool:
        return False

    def is_contiguous(self) -> bool:
        return bool(self._array.flags.c_contiguous)

    def dim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> StandIn:
        return StandIn(self._array[index])

    def reshape(self, *shape: int) -> StandIn:
        return StandIn(self._array.reshape(*shape))

    def numpy(self) -> Any:
        if self._array.dtype == np.float64:
            return self._array
        message = "Got unsupported ScalarType BFloat16"
        raise TypeError(message)

    def double(self) -> StandIn:
        return StandIn(self._array.astype(np.float64))


class OnDevice:
    """A ttnn tensor: only its copy on the host becomes a torch tensor."""

    def __init__(self, tensor: object, *, devices: int = 1) -> None:
        self._tensor = tensor
        self._devices = devices

    def cpu(self) -> OnHost:
        return OnHost(self._tensor, devices=self._devices)

    def to_torch(self) -> object:
        message = "Tensor must be on host"
        raise RuntimeError(message)


class OnHost(OnDevice):
    def to_torch(self) -> object:
        if self._devices == 1:
            return self._tensor
        message = "TT_FATAL: 2 buffers, expected 1\nbacktrace: ..."
        raise RuntimeError(message)


class TestNumpy:
    @pytest.mark.parametrize(
        "dtype", ["?", "i1", "u2", "i4", "u8", "f2", ">f4", "f8", "longdouble"]
    )
    def test_any_type_of_number(self, dtype: str) -> None:
        values = (STEPS % 5 > 1).astype(dtype)
        assert compare(values, values.astype(np.float32)) == SAME

    @pytest.mark.parametrize("chunk", [1, 5, 12, 1000])
    @pytest.mark.parametrize(
        "view",
        [
            lambda a: a.T,
            lambda a: a[:, ::2],
            lambda a: a[::-1, :, ::-1],
            lambda a: np.broadcast_to(a[:, :1], a.shape),
            np.asfortranarray,
        ],
        ids=["transposed", "sliced", "reversed", "broadcast", "fortran"],
    )
    def test_non_contiguous(self, view: Any, chunk: int) -> None:
        values = view(STEPS)
        reordered = np.ascontiguousarray(values)
        assert compare(values, reordered, chunk=chunk) == SAME
        assert compare(reordered, values, chunk=chunk) == SAME

    @pytest.mark.parametrize("dtype", ["O", "U8", "S8", "V8", "M8[s]", "m8[s]"])
    def test_elements_that_are_not_numbers_are_refused(self, dtype: str) -> None:
        values: Any = np.zeros(3, dtype)
        with pytest.raises(
            UsageError, match=r"^actual must hold numbers, not elements of dtype"
        ) as e:
            compare(STEPS, values)
        assert str(e.value).endswith(str(values.dtype))


class TestStandIns:
    @pytest.mark.parametrize("chunk", [1, 5, 1000])
    @pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1)], ids=["contiguous", "permuted"])
    def test_a_type_numpy_lacks_is_converted_by_block(
        self, axes: tuple[int, ...], chunk: int
    ) -> None:
        values = STEPS.astype(np.float32).transpose(axes)
        assert compare(StandIn(values), values, chunk=chunk) == SAME

    def test_a_ttnn_tensor_comes_to_the_host_first(self) -> None:
        assert compare(OnDevice(StandIn(STEPS)), STEPS) == SAME

    def test_a_ttnn_tensor_on_several_devices_is_refused(self) -> None:
        with pytest.raises(UsageError) as error:
            compare(STEPS, OnDevice(StandIn(STEPS), devices=2))
        assert str(error.value).startswith("actual: ")
        assert str(error.value).endswith(
            "OnDevice cannot become a torch tensor (TT_FATAL: 2 buffers, expected 1); if it lies "
            "on several devices, pass ttnn.to_torch(tensor, mesh_composer=...)"
        )


class TestTorch:
    @pytest.fixture
    def torch(self) -> Any:
        return pytest.importorskip("torch", reason="torch is not installed")

    @pytest.mark.parametrize(
        "dtype",
        ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "int8", "int64", "bool"],
    )
    @pytest.mark.parametrize("chunk", [5, 1000])
    def test_any_type_of_number(self, torch: Any, dtype: str, chunk: int) -> None:
        tensor = torch.arange(24).reshape(2, 3, 4).remainder(7).to(getattr(torch, dtype))
        assert compare(tensor, tensor.double().numpy(), chunk=chunk) == SAME
        view = tensor.permute(2, 0, 1)[::2]
        assert not view.is_contiguous()
        assert compare(view, view.double().numpy().copy(), chunk=chunk) == SAME
