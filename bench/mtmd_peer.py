"""Encodes an image by llama.cpp's libmtmd when asked to, for bench/images.py. Runs in the Python that has it.

    PYTHON bench/mtmd_peer.py MODEL MMPROJ IMAGE THREADS

Needs the package llama-cpp-py-sync. A line on standard input is an image to encode; a line on standard output
is JSON with the seconds that it took and the rows' number; the first line says that it is ready.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    model, mmproj, image, threads = sys.argv[1:]
    import llama_cpp_py_sync
    from llama_cpp_py_sync import _cffi_bindings, multimodal

    if getattr(_cffi_bindings, "_mtmd_lib", None) is None:  # it may be part of the one library
        library = Path(llama_cpp_py_sync.__file__).parent / "libllama.so"
        _cffi_bindings._mtmd_lib = _cffi_bindings.get_ffi().dlopen(str(library))
    text = llama_cpp_py_sync.Llama(model, n_ctx=256, n_threads=int(threads))
    context = multimodal.MultimodalContext(text, mmproj, use_gpu=False, n_threads=int(threads))
    prompt = context.tokenize_prompt(context.marker, [("image/png", Path(image).read_bytes())])
    chunk = next(each for each in prompt if each.type == "image")
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        if context._lib.mtmd_encode_chunk(context._ctx, chunk._pointer):
            raise SystemExit("mtmd_encode_chunk failed")
        print(json.dumps({"seconds": time.perf_counter() - began, "rows": chunk.n_tokens}), flush=True)


if __name__ == "__main__":
    main()
