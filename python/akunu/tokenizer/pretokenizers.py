"""Patterns by which families of byte-level vocabularies cut a text before merging: ``tokenizer.ggml.pre``.

The patterns are facts about published models: each is what the model's own ``tokenizer.json`` (or tiktoken
file) states. The names, and which of them share a pattern, are llama.cpp's (``src/llama-vocab.cpp``); where
it had to adapt a pattern to C++'s regular expressions, the original stands here. Syntax is Oniguruma's, as in
the `tokenizers` library. A list of patterns applies in order: each one cuts what those before it have left.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from akunu.base.errors import UnsupportedError

__all__ = ["PRE_TOKENIZERS", "PreTokenizer", "pre_tokenizer"]


@dataclass(frozen=True)
class PreTokenizer:
    """One way to cut a text.

    Attributes
    ----------
    patterns : tuple of str
        Regular expressions; a match is a piece, and so is what lies between two matches.
    ignore_merges : bool
        A piece that is a token as a whole is that token, whether or not merges lead to it.
    add_bos : bool
        Whether text begins with BOS where the file does not say.
    """

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False


# GPT-2's pattern, and that of cl100k with its many descendants.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _cl100k(
    digits: str, contraction: str = _CONTRACTION + "|", symbols: str = _SYMBOLS, blanks: str = _BLANKS
) -> str:
    return f"{contraction}{_WORD}|{digits}|{symbols}|{blanks}"


_LLAMA3 = _cl100k(r"\p{N}{1,3}")
_QWEN2 = _cl100k(r"\p{N}")

# o200k: a word may change case once, from upper to lower.
_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SYMBOLS_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"


def _o200k(
    digits: str, contraction: str = _CONTRACTION + "?", but: str = "", symbols: str = _SYMBOLS_SLASH
) -> str:
    lead = r"[^\r\n\p{L}\p{N}]?"
    upper, lower = f"[{_UPPER}{but}]", f"[{_LOWER}{but}]"
    word = f"{lead}{upper}*{lower}+{contraction}|{lead}{upper}+{lower}*{contraction}"
    return f"{word}|{digits}|{symbols}|{_BLANKS}"


_NOT_HAN = r"&&[^\p{Han}]"

# DeepSeek. The letters are those with a case, listed; the third class is CJK and its neighbours.
_CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
_PUNCTUATION = "!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002"
_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_CJK_KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_ASCII_SYMBOL = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""


def _deepseek3(lines: str = r"[\r\n]*|\s*[\r\n]+") -> str:
    return (
        rf"{_ASCII_SYMBOL}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
        rf"| ?[\p{{P}}\p{{S}}]+{lines}|\s+(?!\S)|\s+"
    )


# BLOOM and its kin: everything between these is a word.
_BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

_AFMOE_SCRIPTS = (
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e00-\u0e7f"
    "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
)
_YOUTU_SCRIPTS = (
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f"
    "\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
)
_JAIS2_BLANKS = (
    r"\s*[\r\n]+|"
    + "".join(rf"\s{{{n}}}(?!\S)|" for n in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2"))
    + r"\s{1}"
)

_TABLE: dict[PreTokenizer, str] = {
    PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")): "default",
    PreTokenizer((_GPT2,)): (
        "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 mellum modern-bert "
        "jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe"
    ),
    PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True): (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano"
    ),
    PreTokenizer((_LLAMA3,)): "dbrx smaug-bpe glm4 chatglm-bpe",
    PreTokenizer((_QWEN2,)): (
        "qwen2 stablelm2 hunyuan megrez solar-open deepseek-r1-qwen kormo f2llmv2 grok-2"
    ),
    PreTokenizer(
        (_CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + _BLANKS,)
    ): "qwen35",
    PreTokenizer((_cl100k(r"\p{N}", contraction=""),)): "ufakzeka",
    PreTokenizer((_cl100k(r"\p{N}", symbols=r" ?[^\s\p{L}\p{N}\r\n]+"),)): "seed-coder",
    PreTokenizer((r"\p{N}{1,3}", _cl100k(r"\p{N}+")), ignore_merges=True): "minicpm5",
    PreTokenizer((r"[^\n]+|[\n]+", _QWEN2)): "laguna",
    PreTokenizer((_cl100k(r"\p{N}{1,3}", blanks=_JAIS2_BLANKS),)): "jais-2",
    PreTokenizer(
        (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
            r"|\s+(?!\S)|\s+",
        )
    ): "bailingmoe bailingmoe2 llada-moe",
    PreTokenizer(
        (
            _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        )
    ): "exaone-moe",
    PreTokenizer((r"\p{N}", _GPT2)): (
        "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2"
    ),
    PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")): "falcon",
    PreTokenizer(
        ("[\r\n]", rf"\s?[{_CASED}]+", rf"\s?[{_PUNCTUATION}]+", r"\s+$", _CJK, r"\p{N}+")
    ): "deepseek-llm",
    PreTokenizer(("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")): "deepseek-coder",
    PreTokenizer((r"\p{N}{1,3}", _CJK_KANA, _deepseek3())): "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
    PreTokenizer((r"\p{N}{1,3}", _CJK_KANA, _deepseek3(r"|[\r\n]"), r"\p{N}")): "spark2_5",
    PreTokenizer(
        # Digits in threes counted from the right: 1|234|567.
        (r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", _AFMOE_SCRIPTS, _deepseek3())
    ): "afmoe",
    PreTokenizer((_BLOOM,)): "bloom poro-chat gpt3-finnish",
    PreTokenizer((_BLOOM, r"\p{N}")): "viking",
    PreTokenizer((_o200k(r"\p{N}", contraction=""),), ignore_merges=True, add_bos=True): "tekken",
    PreTokenizer((_o200k(r"\p{N}{1,3}"),)): "gpt-4o llama4 kanana2 talkie minimax-m2",
    PreTokenizer((_o200k(r"\p{N}{1,3}"),), ignore_merges=True): "granite-embed-multi-97m",
    PreTokenizer(
        (r"\d{1,3}(?=(?:\d{3})*\b)", _o200k(r"\p{N}{1,3}", symbols=r" ?[^\s\p{L}\p{N}]+[\r\n/]*"))
    ): ("tiny_aya cohere2moe"),
    PreTokenizer((r"[\p{Han}]+|" + _o200k(r"\p{N}{1,3}", but=_NOT_HAN, symbols=_SYMBOLS),)): "kimi-k2",
    PreTokenizer((_YOUTU_SCRIPTS, _o200k(r"\p{N}")), ignore_merges=True): "youtu",
    PreTokenizer((r"\p{N}+", r"(?=(\d{3})+(?!\d))")): "superbpe",
    PreTokenizer(
        (
            "<sentinel:[0-9]+>",
            "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            r"([\t\n]|    |  )",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            _GPT2,
        ),
        add_bos=True,
    ): "chameleon",
}

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    name: pre for pre, names in _TABLE.items() for name in names.split()
}
"""Every value of ``tokenizer.ggml.pre`` that Akunu has."""


def pre_tokenizer(name: str | None) -> PreTokenizer:
    """The way to cut text that a file's ``tokenizer.ggml.pre`` names.

    Raises
    ------
    UnsupportedError
        The name is not in the table. Guessing would give wrong ids without a sign of it.
    """
    if name is None:
        warnings.warn(
            "tokenizer.ggml.pre is missing: text is cut by the pattern 'default', which may not be this "
            "model's; convert the model again for exact results",
            stacklevel=2,
        )
        name = "default"
    try:
        return PRE_TOKENIZERS[name]
    except KeyError:
        raise UnsupportedError(
            f"tokenizer.ggml.pre is {name!r}, a pre-tokenizer that Akunu does not have; it has "
            + ", ".join(sorted(PRE_TOKENIZERS))
        ) from None
