"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akunu.base.whole_file import whole_file


def test_several_write_one_file_and_the_last_to_end_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with whole_file(path) as first:
        with whole_file(path) as second:
            first.write(b"first")
            second.write(b"second")
            assert not path.exists()
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_one_that_is_not_finished_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_to_be(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a"
    with pytest.raises(FileNotFoundError) as raised, whole_file(path):
        pass
    assert raised.value.filename == str(path)


def test_a_name_may_be_as_long_as_any(tmp_path: Path) -> None:
    path = tmp_path / ("ж" * 127)  # 254 bytes of the 255 that file systems take
    with whole_file(path) as file:
        file.write(b"data")
    assert path.read_bytes() == b"data"


def test_what_is_no_file_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        with whole_file(pipe) as file:
            file.write(b"data")
        assert reader.read() == b"data" and pipe.is_fifo()
    with pytest.raises(IsADirectoryError), whole_file(tmp_path):
        pass


def test_permissions_are_those_asked_for(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a", mode=0o600), whole_file(tmp_path / "b"):
        pass
    (tmp_path / "plain").touch()
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "b", "plain")]
    assert modes[0] == 0o600 and modes[1] == modes[2]
