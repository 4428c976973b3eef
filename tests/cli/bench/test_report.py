"""The five formats, against what llama-bench prints for the same figures.

The headings are copies of llama-bench's output (commit 0c1e570); so is the number format of every column.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3

import pytest

from akunu.cli.bench.params import DEFAULTS, BenchParams, list_cases
from akunu.cli.bench.report import FIELDS, FORMATS, build_number, make_printer
from akunu.cli.bench.runner import Result
from akunu.loading.facts import ModelFacts

from .fakes import CPU, GPU

FACTS = ModelFacts("stories15m-q8_0.gguf", "llama 15M Q8_0", 16152192, 15191712)
# fmt: off
MD_HEADER = (
    "| model                          |       size |     params | backend    | threads |            test |"
    "                  t/s |\n"
    "| ------------------------------ | ---------: | ---------: | ---------- | ------: | --------------: |"
    " -------------------: |\n"
)
MD_HEADER_WIDE = (
    "| model                          |       size |     params | backend    | threads | n_batch | n_ubatch |"
    " type_k | type_v |  fa |            test |                  t/s |\n"
    "| ------------------------------ | ---------: | ---------: | ---------- | ------: | ------: | -------: |"
    " -----: | -----: | --: | --------------: | -------------------: |\n"
)
# fmt: on
CSV_HEADER = (
    "build_commit,build_number,cpu_info,gpu_info,backends,model_filename,model_type,model_size,model_n_params,n_batch,"
    "n_ubatch,n_threads,cpu_mask,cpu_strict,poll,type_k,type_v,n_gpu_layers,n_cpu_moe,split_mode,main_gpu,"
    "no_kv_offload,flash_attn,devices,tensor_split,tensor_buft_overrides,load_mode,lazy_mode,embeddings,no_op_offload,"
    "no_host,repack,fit_target,fit_min_ctx,n_prompt,n_gen,n_depth,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts"
)


def printed(name: str, params: BenchParams, *samples: tuple[int, ...], facts=FACTS, device=CPU) -> str:
    out = io.StringIO()
    printer = make_printer(name, out, params, version="0.1.0", backend=device["backend"])
    printer.header()
    for case, ns in zip(list_cases(params), samples, strict=True):
        printer.test(Result(case, facts, device, "Test CPU", "2026-11-21T03:59:05Z", ns))
    printer.footer()
    return out.getvalue()


PARAMS = BenchParams(models=("stories15m-q8_0.gguf",), n_prompt=(8,), n_gen=(2,), n_threads=(2,))


def test_markdown():
    text = printed("md", PARAMS, (2808630, 2748629), (2832734, 2590908))
    assert text == MD_HEADER + (
        "| llama 15M Q8_0                 |  15.40 MiB |    15.19 M | CPU        |"
        "       2 |             pp8 |      2879.45 ± 43.97 |\n"
        "| llama 15M Q8_0                 |  15.40 MiB |    15.19 M | CPU        |"
        "       2 |             tg2 |       738.98 ± 46.60 |\n"
        "\nbuild: akunu-0.1.0 (100)\n"
    )


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_cannot_control_the_terminal(name):
    evil = ModelFacts("x", "llama \x1b]0;owned\x07 \x9b2J Q8_0", 1, 1)
    text = printed(name, PARAMS, (1000,), (1000,), facts=evil)
    assert "owned" in text
    assert not {"\x1b", "\x07", "\x9b"} & set(text)


def test_markdown_shows_what_is_not_at_its_default():
    params = BenchParams(
        n_gen=(0,),
        n_threads=(2,),
        n_batch=(256,),
        n_ubatch=(128,),
        type_k=("q8_0",),
        type_v=("q8_0",),
        flash_attn=(1,),
    )
    text = printed("md", params, (1000,))
    assert text.startswith(MD_HEADER_WIDE)
    assert "|       2 |     256 |      128 |   q8_0 |   q8_0 |   1 |           pp512 |" in text


def test_markdown_on_a_gpu_has_layers_instead_of_threads():
    lines = printed("md", BenchParams(n_gen=(0,)), (10**9,), device=GPU).splitlines()
    assert "| backend    | ngl |            test |" in lines[0]
    assert "| Metal      |  -1 |           pp512 |        512.00 ± 0.00 |" in lines[2]


@pytest.mark.parametrize(
    ("size", "n_params", "expected"),
    [
        (1023 << 20, 999_994_999, "1023.00 MiB |   999.99 M"),
        (1 << 30, 10**9, "  1.00 GiB |     1.00 B"),
        (4_920_000_000, 8_030_261_248, "  4.58 GiB |     8.03 B"),
    ],
)
def test_units_change_at_1_gib_and_1e9_parameters(size, n_params, expected):
    text = printed(
        "md", BenchParams(n_gen=(0,), n_threads=(2,)), (10,), facts=ModelFacts("x", "t", size, n_params)
    )
    assert f"| {expected} |" in text


def test_csv():
    text = printed("csv", PARAMS, (2808630, 2748629), (2832734, 2590908))
    lines = text.splitlines()
    assert lines[0] == CSV_HEADER
    assert lines[1] == (
        '"akunu-0.1.0","100","Test CPU","","CPU","stories15m-q8_0.gguf","llama 15M Q8_0","16152192",'
        '"15191712","2048","512","2","0x0","0","0","f16","f16","-1","0","none","0","0","-1","auto",'
        '"0.00","none","mmap","off","0","0","0","1","0","0","8","0","0","2026-11-21T03:59:05Z",'
        '"2778629","42427","2879.452870","43.966594"'
    )
    assert len(list(csv.DictReader(io.StringIO(text)))) == 2


def test_json():
    text = printed("json", PARAMS, (2808630, 2748629), (2832734, 2590908))
    found = json.loads(text)
    assert list(found[0]) == [*FIELDS, "samples_ns", "samples_ts"]
    assert found[0]["samples_ns"] == [2808630, 2748629]
    assert found[0]["samples_ts"] == [2848.36, 2910.54]  # six digits, as llama-bench
    assert found[0]["avg_ts"] == 2879.45287
    assert found[0]["repack"] is True
    assert found[0]["no_op_offload"] == 0
    assert text.startswith('[\n  {\n    "build_commit": "akunu-0.1.0",\n    "build_number": 100,\n')
    assert text.endswith('    "samples_ts": [ 706.032, 771.93 ]\n  }\n]\n')
    assert "\n  },\n  {\n" in text


def test_jsonl_is_one_object_a_line():
    lines = printed("jsonl", PARAMS, (2808630, 2748629), (2832734, 2590908)).splitlines()
    assert [json.loads(line)["n_gen"] for line in lines] == [0, 2]
    assert lines[0].endswith('"samples_ns": [ 2808630, 2748629 ],"samples_ts": [ 2848.36, 2910.54 ]}')


def test_sql_runs():
    text = printed(
        "sql", PARAMS, (2808630, 2748629), (2832734, 2590908), facts=ModelFacts("it's.gguf", "t", 1, 1)
    )
    database = sqlite3.connect(":memory:")
    database.executescript(text)
    rows = database.execute("SELECT model_filename, n_prompt, n_gen, avg_ts FROM llama_bench").fetchall()
    assert rows == [("it's.gguf", 8, 0, 2879.45287), ("it's.gguf", 0, 2, 738.980924)]
    assert text.startswith(
        "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n  build_number INTEGER,\n"
    )
    assert "  cpu_strict INTEGER,\n" in text
    assert "  stddev_ts REAL\n);\n\nINSERT INTO llama_bench (build_commit, build_number," in text


def test_a_name_with_quotes_stays_one_field():
    facts = ModelFacts('a "b".gguf', "t", 1, 1)
    text = printed("csv", BenchParams(n_gen=(0,)), (10,), facts=facts)
    assert next(csv.DictReader(io.StringIO(text)))["model_filename"] == 'a "b".gguf'
    assert (
        json.loads(printed("json", BenchParams(n_gen=(0,)), (10,), facts=facts))[0]["model_filename"]
        == 'a "b".gguf'
    )


def test_one_sample_has_no_deviation():
    assert "± 0.00" in printed("md", BenchParams(n_gen=(0,)), (10,))


@pytest.mark.parametrize("name", FORMATS)
def test_each_result_is_flushed(name):
    class Out(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    out = Out()
    printer = make_printer(name, out, DEFAULTS, version="0.1.0", backend="CPU")
    printer.header()
    printer.test(Result(list_cases(DEFAULTS)[0], FACTS, CPU, "Test CPU", "now", (10,)))
    assert "pp512" in out.flushed or "512" in out.flushed


@pytest.mark.parametrize(
    ("version", "number"), [("0.1.0", 100), ("1.2.3", 10203), ("0.2.0.dev5", 200), ("2", 20000)]
)
def test_build_number(version, number):
    assert build_number(version) == number
