"""Where a model runs: "auto" is the first device that takes it, and says why it is not the first of all."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

import akunu
from akunu import _core
from akunu.base.errors import DeviceError, InvalidArgumentError, UnsupportedError
from akunu.loading.placement import on_first, present


def takes(*good: str) -> Callable[[str], str]:
    def load(device: str) -> str:
        if device not in good:
            raise {"gpu": DeviceError("no room"), "cpu": UnsupportedError("no kernel")}[device]
        return device

    return load


def test_the_first_that_takes_the_model_has_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert on_first(["gpu", "cpu"], takes("gpu", "cpu")) == "gpu"
        assert on_first(["cpu"], takes("cpu")) == "cpu"
    with pytest.warns(RuntimeWarning, match="^the model runs on cpu, not on gpu: no room$"):
        assert on_first(["gpu", "cpu"], takes("cpu")) == "cpu"


def test_the_last_one_s_error_is_the_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnsupportedError, match="no kernel"):
            on_first(["gpu", "cpu"], takes())
        with pytest.raises(DeviceError, match="no room"):
            on_first(["gpu"], takes("cpu"))


def test_another_error_is_no_reason_to_go_on() -> None:
    def load(_device: str) -> None:
        raise InvalidArgumentError("context")

    with pytest.raises(InvalidArgumentError, match="context"):
        on_first(["gpu", "cpu"], load)


def test_auto_is_what_is_here_up_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    here = [{"id": name} for name in ("gpu", "cpu", "emulator")]
    monkeypatch.setattr(_core, "devices", lambda: here)
    assert present("auto") == ["gpu", "cpu"] and present("emulator") == ["emulator"]
    with pytest.raises(InvalidArgumentError, match=r"device: no 'abacus' here; there is .*cpu"):
        present("abacus")


@pytest.mark.parametrize("device", [None, 0, b"cpu", ["cpu"]])
def test_what_is_no_text_names_no_device(device: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"device: found .*, expected 'auto' or one of .*cpu"):
        akunu.load("ember", device=device)
