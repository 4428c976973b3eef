"""Golden data: Transformers' Whisper with the weights of `tiny.model`; `python -m speech.golden`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from akunu.speech.config import WhisperConfig
from akunu.speech.tokenizer import WhisperTokenizer

from . import tiny

PATH = Path(__file__).with_name("golden.json")
SEEDS = (0, 1, 2)
TEXT = [*b"and so you say", 256, 260]


def never(tokenizer: WhisperTokenizer) -> list[int]:
    """Control tokens that Akunu does not draw."""
    special = tokenizer.special
    return [
        special.start, special.translate, special.transcribe, special.start_of_lm,
        special.start_of_previous, special.no_speech,
    ]  # fmt: skip


def transformers_model(config: WhisperConfig, tokenizer: WhisperTokenizer, **generation: Any) -> Any:
    """Transformers' model of a shape, which draws by OpenAI's rules and what `generation` says."""
    import transformers

    special = tokenizer.special
    model = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=config.vocab_size,
            num_mel_bins=config.mels,
            d_model=config.width,
            encoder_layers=config.audio_layers,
            encoder_attention_heads=config.audio_heads,
            decoder_layers=config.text_layers,
            decoder_attention_heads=config.text_heads,
            encoder_ffn_dim=4 * config.width,
            decoder_ffn_dim=4 * config.width,
            max_source_positions=config.audio_context,
            max_target_positions=config.text_context,
            pad_token_id=special.end,
            bos_token_id=special.end,
            eos_token_id=special.end,
            decoder_start_token_id=special.start,
            attn_implementation="eager",
        )
    ).eval()
    model.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=special.start,
        eos_token_id=special.end,
        pad_token_id=special.end,
        bos_token_id=special.end,
        no_timestamps_token_id=special.no_timestamps,
        prev_sot_token_id=special.start_of_previous,
        max_initial_timestamp_index=50,
        is_multilingual=True,
        lang_to_id={f"<|{code}|>": i for code, i in special.languages.items()},
        task_to_id={"transcribe": special.transcribe, "translate": special.translate},
        return_timestamps=True,
        max_length=config.text_context,
        **generation,
    )
    return model


def reference(seed: int) -> Any:
    """Transformers' model with our weights."""
    import torch

    tokenizer = tiny.tokenizer()
    model = transformers_model(
        tiny.config(),
        tokenizer,
        suppress_tokens=sorted({*tokenizer.non_speech_tokens, *never(tokenizer)}),
        begin_suppress_tokens=[*tokenizer.encode(" "), tokenizer.special.end],
    )
    state = {
        f"model.{name}": torch.from_numpy(value.astype(np.float32))
        for name, value in tiny.model(seed).weights.items()
    }
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"]
    model.load_state_dict(state)
    return model


def compute(seed: int) -> dict[str, Any]:
    """What Transformers says about one model."""
    import torch

    model = reference(seed)
    tokenizer = tiny.tokenizer()
    features = torch.from_numpy(tiny.mel(seed))[None]
    prompt = tokenizer.start_sequence("en")

    with torch.no_grad():
        states = model.model.encoder(features).last_hidden_state
        tokens = torch.tensor([[*prompt, *TEXT]])
        logits = model(encoder_outputs=(states,), decoder_input_ids=tokens).logits[0].numpy()
        language = model.detect_language(features)
        ids = model.generate(features, language="en", task="transcribe", max_new_tokens=32)[0].tolist()
    ids = ids[len(prompt) :] if ids[: len(prompt)] == list(prompt) else ids
    return {
        "states": [float(x) for x in states[0, ::20, 3]],
        "logits": [float(x) for x in logits[::4, 7]],
        "language": int(language[0]),
        "greedy": [i for i in ids if i != tokenizer.special.end],
    }


def main() -> None:
    PATH.write_text(json.dumps({str(seed): compute(seed) for seed in SEEDS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
