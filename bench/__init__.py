"""Benchmarks: `python -m bench.NAME` in the repository's folder."""
