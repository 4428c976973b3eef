"""ONNX files with the inputs of Silero's models, small enough to be written by hand.

A frame's probability is that of its mean power: there is no state, but it goes through.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

FLOAT, INT64 = 1, 7


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_field(1, _field(1 if isinstance(n, int) else 2, n)) for n in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, dims)))


def _node(op: str, inputs: Sequence[str], output: str) -> bytes:
    return _field(1, b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, op))


def _number(name: str, value: float) -> bytes:
    return _field(5, _field(2, FLOAT) + _field(8, name) + _field(9, struct.pack("<f", value)))


def silero_like(inputs: Sequence[tuple[str, int, Sequence[int | str]]], states: Sequence[str]) -> bytes:
    """A model with these inputs: name, type, shape. Each of `states` comes out as it went in."""
    graph = _node("Mul", ["input", "input"], "power")
    graph += _node("ReduceMean", ["power"], "mean")  # of all frames, which come one by one
    graph += _node("Mul", ["mean", "many"], "scaled") + _node("Sub", ["scaled", "five"], "shifted")
    graph += _node("Sigmoid", ["shifted"], "output")
    graph += b"".join(_node("Identity", [name], f"{name}N") for name in states)
    graph += _field(2, "silero") + _number("many", 3000.0) + _number("five", 5.0)
    graph += b"".join(_field(11, _value(*each)) for each in inputs)
    graph += _field(12, _value("output", FLOAT, [1, 1]))
    shapes = {name: shape for name, _, shape in inputs}
    graph += b"".join(_field(12, _value(f"{name}N", FLOAT, shapes[name])) for name in states)
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))
