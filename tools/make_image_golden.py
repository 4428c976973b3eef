"""Make tests/data/golden/images.npz: what Transformers' image processors make of `tests/api/vision/cases.py`.

Usage: PYTHONPATH=tests:. python -m tools.make_image_golden

Needs torch, torchvision, Transformers and Pillow. Of each image it keeps the sizes, some values, and the text
that stands for it in a prompt.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from api.vision.cases import CASES, GOLDEN, Case, picture, samples


def processor(case: Case) -> Any:
    """Transformers' processor, by Pillow where it has one."""
    settings = dict(case.processor)
    if case.family.startswith("qwen"):
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

        if case.tokens is not None:
            most = case.tokens * (case.patch_size * case.merge_size) ** 2
            settings["size"] = {**settings["size"], "longest_edge": most}
            settings["size"]["shortest_edge"] = min(most, settings["size"]["shortest_edge"])
        return Qwen2VLImageProcessorPil(patch_size=case.patch_size, merge_size=case.merge_size, **settings)
    if case.family == "gemma3":
        from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

        return Gemma3ImageProcessorPil(size={"height": 896, "width": 896}, **settings)
    if case.family == "gemma4":
        from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil

        return Gemma4ImageProcessorPil(max_soft_tokens=case.tokens or 280)
    if case.family == "gemma4_unified":
        from transformers.models.gemma4_unified.image_processing_gemma4_unified import (
            Gemma4UnifiedImageProcessor,
        )

        return Gemma4UnifiedImageProcessor(max_soft_tokens=case.tokens or 280)
    if case.family == "idefics3":
        from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

        return Idefics3ImageProcessorPil(**settings)
    if case.family == "lfm2_vl":
        from transformers.models.lfm2_vl.image_processing_lfm2_vl import Lfm2VlImageProcessor

        return Lfm2VlImageProcessor(**settings)
    from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil

    side = case.patch_size * case.merge_size
    settings["size"] = {"longest_edge": case.image_size}
    return PixtralImageProcessorPil(**settings, patch_size={"height": side, "width": side})


def text(case: Case, made: Any, found: Any) -> str:
    """What stands for the image in a prompt."""
    if case.family.startswith("qwen"):
        from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor

        me = SimpleNamespace(image_processor=made, image_token="<|image_pad|>")
        return str(Qwen3VLProcessor.replace_image_token(me, found, 0))
    if case.family == "gemma3":
        from transformers.models.gemma3.processing_gemma3 import Gemma3Processor

        whole = "\n\n<start_of_image>" + "<image_soft_token>" * 256 + "<end_of_image>\n\n"
        return str(Gemma3Processor.replace_image_token(SimpleNamespace(full_image_sequence=whole), found, 0))
    if case.family.startswith("gemma4"):
        from transformers.models.gemma4.processing_gemma4 import Gemma4Processor

        me = SimpleNamespace(boi_token="<|image>", image_token="<|image|>", eoi_token="<image|>")
        return str(Gemma4Processor.replace_image_token(me, found, 0))
    if case.family == "idefics3":
        from transformers.models.idefics3.processing_idefics3 import Idefics3Processor

        me = SimpleNamespace(
            fake_image_token="<fake_token_around_image>",
            global_image_tag="<global-img>",
            image_token="<image>",
            image_seq_len=(case.image_size // case.patch_size // case.merge_size) ** 2,
        )
        return str(Idefics3Processor.replace_image_token(me, found, 0))
    if case.family == "lfm2_vl":
        from transformers.models.lfm2_vl.processing_lfm2_vl import Lfm2VlProcessor

        me = SimpleNamespace(
            image_processor=made,
            image_token="<image>",
            image_start_token="<|image_start|>",
            image_end_token="<|image_end|>",
            image_thumbnail_token="<|img_thumbnail|>",
        )
        for name in (
            "_get_image_num_tokens",
            "_compute_tokens_per_tile",
            "_compute_tokens_for_image",
            "_build_image_tokens",
        ):
            setattr(me, name, getattr(Lfm2VlProcessor, name).__get__(me))
        return str(Lfm2VlProcessor.replace_image_token(me, found, 0, use_image_special_tokens=True))
    from transformers.models.pixtral.processing_pixtral import PixtralProcessor

    me = SimpleNamespace(
        patch_size=case.patch_size,
        spatial_merge_size=case.merge_size,
        image_token="[IMG]",
        image_break_token="[IMG_BREAK]",
        image_end_token="[IMG_END]",
    )
    return str(PixtralProcessor.replace_image_token(me, found, 0))


def main() -> None:
    """Write the file."""
    kept: dict[str, Any] = {}
    for case in CASES:
        made = processor(case)
        more = {"return_row_col_info": True} if case.family in ("idefics3", "lfm2_vl") else {}
        for size in case.sizes:
            found = made([picture(size)], return_tensors="np", **more)
            pixels = np.asarray(found["pixel_values"])
            name = f"{case.name}/{size[0]}x{size[1]}"
            if case.layout == "image":
                pixels = pixels.reshape(-1, *pixels.shape[-3:])
            elif case.layout == "rows" and case.family.startswith("gemma4"):
                positions = np.asarray(found["image_position_ids"])[0]
                pixels = pixels[0][positions[:, 0] >= 0]
                kept[f"{name}/positions"] = positions[positions[:, 0] >= 0].max(0) + 1
            elif case.layout == "rows":
                mask = np.asarray(found["pixel_attention_mask"]).astype(bool)
                pixels = np.concatenate([each[inside] for each, inside in zip(pixels, mask, strict=True)])
                kept[f"{name}/shapes"] = np.asarray(found["spatial_shapes"])
            else:
                kept[f"{name}/grid"] = np.asarray(found["image_grid_thw"])
            kept[f"{name}/shape"] = np.array(pixels.shape)
            kept[f"{name}/samples"] = samples(pixels)
            kept[f"{name}/text"] = np.array(text(case, made, found).encode())
            print(name, pixels.shape)
    np.savez_compressed(GOLDEN, **kept)
    print(GOLDEN, GOLDEN.stat().st_size)


if __name__ == "__main__":
    main()
