"""What bench/many.py reads of llama.cpp's batched-bench."""

from __future__ import annotations

import pytest

from akunu.base.errors import AkunuError

OUTPUT = """
main: n_kv_max = 2048, n_batch = 2048, n_ubatch = 512, flash_attn = -1

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|    32 |     48 |    4 |    320 |    0.512 |   250.00 |    3.692 |    52.01 |    4.204 |    76.12 |

llama_perf_context_print:        load time =     123.45 ms
"""


def test_the_rate_of_a_number_of_streams_is_read() -> None:
    from bench.many import table_rate

    assert table_rate(OUTPUT, 4) == 52.01
    with pytest.raises(AkunuError, match="no row of 8 streams"):
        table_rate(OUTPUT, 8)
