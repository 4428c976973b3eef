"""Models written in other types. `akunu.convert` is the entrance; docs/convert.md is the guide."""

from akunu.conversion.to_gguf import convert

__all__ = ["convert"]
