"""The kernel test table: every op, on every device and instruction set present, against NumPy in float64.

`cases.py` is the table and `builders.py` says what a row of it means. `test_kernels.py` checks the results,
`perf.py` times them. docs/adding-a-kernel.md is the guide.
"""
