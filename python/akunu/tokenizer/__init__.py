"""Text to token ids and back, from the ``tokenizer.ggml.*`` metadata of a GGUF file.

``vocabulary`` reads and checks the metadata; ``special`` finds added tokens in a text; one module per
model (``spm``, ``bytelevel``, ``wordpiece``, ``unigram``) encodes what lies between them; ``detokenizer``
turns ids into text as they come; ``core`` puts them together. ``tokenizers`` is imported only when a model
that needs it is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from akunu.tokenizer.core import Segment, Tokenizer
    from akunu.tokenizer.detokenizer import StreamingDetokenizer
    from akunu.tokenizer.lengths import check_fits
    from akunu.tokenizer.vocabulary import TokenType

__all__ = ["Segment", "StreamingDetokenizer", "TokenType", "Tokenizer", "check_fits"]

_HOME: Final = {
    "Segment": "akunu.tokenizer.core",
    "StreamingDetokenizer": "akunu.tokenizer.detokenizer",
    "TokenType": "akunu.tokenizer.vocabulary",
    "Tokenizer": "akunu.tokenizer.core",
    "check_fits": "akunu.tokenizer.lengths",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
