"""The compiled engine core: what `cpp/bindings` exports. Thin: checks, converts, releases the GIL.

All errors are the classes of `akunu.base.errors`. Token ids are `uint32`; logits are `float32`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from akunu.files.describe.config import ModelSpec

__version__: str
PAGE: int
"""Positions of a page of the cache."""
DEFAULT_CONTEXT: int
"""Tokens of context when the caller names none and the model was trained for more."""
MAX_THREADS: int
"""Most threads of the CPU."""
MAX_PARALLEL: int
"""Most texts of an engine."""
MAX_CHAIN: int
"""Most tokens of a text in one step."""
MAX_LOGPROBS: int
"""Most tokens whose log-probabilities a step gives for each that is drawn."""
MAX_LOGIT_BIAS: int
BREAKER_SETS: int
BREAKER_TAILS: int
BREAKER_TAIL_IDS: int
"""Most entries of a text's `logit_bias`."""

class TensorEntry:
    """One tensor of a model file; `shape` is outermost first, so a linear layer is (rows, cols).

    `paired`: of Ollama's MXFP4, whose bytes hold neighbours.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    paired: bool
    file: int
    offset: int

class TensorFiles:
    """The tensors of a model's files, memory-mapped."""

    paths: list[str]
    tensors: list[TensorEntry]
    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]: ...
    def drop(self, name: str) -> None:
        """Let a tensor's pages leave memory; reading it again is correct."""

class GgufFile(TensorFiles):
    """A memory-mapped GGUF file, single or split; every length and offset has been checked."""

    def __init__(self, path: str) -> None: ...
    version: int
    metadata: dict[str, object]
    def get(self, key: str, default: object = None) -> Any: ...

class SafetensorsFiles(TensorFiles):
    """The memory-mapped shards of a SafeTensors model; every length and offset has been checked."""

    def __init__(self, paths: list[str], prefixes: list[str] = ...) -> None: ...

class RepackedFiles(TensorFiles):
    """The tensors of other files, with matrices in MLX's layout; see `akunu.files.repacking`.

    `stored`: those files, set by whoever repacks them.
    """

    stored: TensorFiles
    def __init__(self, files: TensorFiles, matrices: Sequence[object], left_out: Sequence[str]) -> None: ...

class JoinedFiles(TensorFiles):
    """The tensors of two models' files: all of the first, and of the second those whose names begin with
    `prefix`, with `added` before them.
    """

    def __init__(
        self, first: TensorFiles, second: TensorFiles, prefix: str = "", added: str = ""
    ) -> None: ...

class Encoder:
    """A loaded model that makes a vector of each text. Calls must not overlap, but for `cancel`."""

    def __init__(
        self,
        file: TensorFiles,
        spec: object,
        *,
        device: str = "cpu",
        context: int = 0,
        threads: int = 0,
        check_weights: bool = True,
        quantize: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """`quantize` is an `Engine`'s."""

    context: int
    width: int
    """Elements of a vector."""
    parallel: int
    pages: dict[str, int]
    """An engine's: it runs no texts side by side, and keeps none."""
    device: str
    threads: int
    isa: str
    memory: Memory
    memory_left: int | None
    def encode(
        self,
        texts: Sequence[tuple[npt.NDArray[np.uint32], int]],
        progress: Callable[[int], None] | None = None,
    ) -> npt.NDArray[np.float32]:
        """float32 [texts, width]. A text is its ids, and where rows of a second kind begin (0: none)."""
    def plan(self, rows: int, texts: int = 1) -> list[CommandInfo]:
        """The dispatch table, with costs for so many texts of `rows` tokens each."""
    def profile(self, rows: int, texts: int = 1, repeats: int = 16) -> list[CommandInfo]:
        """Run that table and time every command."""

    def cancel(self) -> None: ...
    def close(self) -> None: ...

class EncodedRows:
    """Rows that an encoder made, for the places of tokens: a copy of float32 [rows, width]."""

    def __init__(self, values: npt.NDArray[np.float32]) -> None: ...
    def __len__(self) -> int: ...
    width: int
    nbytes: int
    def numpy(self) -> npt.NDArray[np.float32]:
        """A copy [rows, width]."""

def cut_patches(
    picture: npt.NDArray[np.uint8],
    values: npt.NDArray[np.float32],
    side: int,
    merge: int,
    frames: int,
    out: npt.NDArray[np.float32],
) -> None:
    """Write the patches of a picture [height, width, 3] to `out`, which has as many floats as they have.

    `values` [3, 256] are what a byte of each channel stands for. A patch is [channel, frame, y, x], of `side`
    pixels on a side; `merge` patches on a side, which become one row, stand together, row-major.
    """

class ImageEncoder:
    """A loaded model that makes rows of an image's patches. Calls must not overlap, but for `cancel`."""

    def __init__(
        self,
        file: TensorFiles | None,
        spec: object,
        *,
        device: str = "cpu",
        threads: int = 0,
        check_weights: bool = True,
        synthetic: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """`synthetic` is an `Engine`'s."""

    width: int
    """Floats of a row."""
    device: str
    threads: int
    isa: str
    memory: Memory
    memory_left: int | None
    def encode(
        self,
        pixels: npt.NDArray[np.float32],
        added: npt.NDArray[np.float32] | None = None,
        positions: npt.NDArray[np.uint32] | None = None,
        windows: Sequence[int] = (),
        added_id: int = 0,
    ) -> EncodedRows:
        """The rows of an image.

        `pixels` are [patches, values], `added` [patches, dim] the vectors of their positions, where the model
        has such, and `positions` [patches, 3] by what they turn, where its rotary sets have axes.
        `windows` are the numbers of patches of each window, which stand together, where blocks see windows
        alone. Where `added_id` is not 0, `added` is equal for all images of this number: those of the image
        before are not copied to the device again.
        """
    def plan(self, rows: int) -> list[CommandInfo]:
        """The dispatch table, with costs for an image of so many patches."""
    def profile(self, rows: int, repeats: int = 16) -> list[CommandInfo]:
        """Run that table and time every command."""

    def cancel(self) -> None: ...
    def close(self) -> None: ...

class Speech:
    """An encoder of sound and a decoder of text on one device. Calls must not overlap, but for `cancel`.

    A sound is what the decoder keeps of an encoder's output, a slot a text that is decoded from one.
    """

    def __init__(
        self,
        files: TensorFiles | None,
        sound: object,
        text: object,
        *,
        device: str = "cpu",
        threads: int = 0,
        kv_dtype: str = "f16",
        parallel: int = 8,
        sounds: int = 1,
        check_weights: bool = True,
        synthetic: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """`sound` and `text` are `akunu.speech.tensors.Stack`; the others as of `Engine`.

        `parallel` and `sounds`: most slots and sounds at a time.
        """
    parallel: int
    threads: int
    device: str
    isa: str
    memory: Memory
    def encode(self, mel: npt.NDArray[np.float32]) -> int:
        """A sound from normalised log-mel frames, float32 [mels, 2 positions]."""
    def states(self) -> npt.NDArray[np.float32]:
        """The encoder's output for the last sound, float32 [positions, width]."""
    def close_sound(self, sound: int) -> None:
        """The sound's place is free when no slot is decoded from it."""
    def begin(self, sound: int, ids: Sequence[int]) -> int:
        """A slot with these tokens, none of which is run yet."""
    def fork(self, slot: int) -> int:
        """A slot with the same tokens and rules."""
    def close_slot(self, slot: int) -> None: ...
    def extend(self, slot: int, ids: Sequence[int]) -> int:
        """Append tokens, which are to be run; the position of the last one."""
    def set_rules(
        self,
        slot: int,
        prompt: int,
        end: int,
        timestamp_begin: int,
        max_initial: int,
        never: npt.NDArray[np.uint32],
        not_first: npt.NDArray[np.uint32],
    ) -> None:
        """What `rank` and `draw` heed, `akunu.speech.rules.RuleTable`, behind the first `prompt` tokens."""
    def logits(self, asked: Sequence[tuple[int, Sequence[int]]]) -> npt.NDArray[np.float32]:
        """Run what is to be run of these slots; logits [positions, vocab] after those named with each."""
    def rank(self, slots: Sequence[int], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The most probable tokens after each slot's text and their log p [slots, count], under its rules."""
    def generate(
        self, sequences: Sequence[tuple[int, int]], temperature: float, limit: int, end: int
    ) -> list[tuple[list[int], float]]:
        """What each (slot, seed) draws under its rules, up to `limit` tokens or `end`, and log p of that."""
    def attend(
        self, sound: int, ids: Sequence[int]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Weights of aligned heads, layer by layer [heads, tokens, positions]; logits [tokens, vocab]."""
    def plan(self, phase: str = "encode", rows: int = 1, position: int = 0) -> list[CommandInfo]:
        """The dispatch table of "encode", a sound, or a phase of `Engine.plan` of texts of a sound."""
    def profile(
        self, phase: str = "encode", rows: int = 1, position: int = 0, repeats: int = 16
    ) -> list[CommandInfo]:
        """Run that table on silence and time every command; a place for a sound must be free."""
    def cancel(self) -> None: ...
    def close(self) -> None: ...

class WhisperFile(TensorFiles):
    """A memory-mapped model file of whisper.cpp; every length and offset has been checked."""

    def __init__(self, path: str) -> None: ...
    sizes: dict[str, int]
    """n_vocab, n_audio_ctx, n_audio_state, ..., n_mels, ftype."""
    tokens: list[bytes]
    """Without special tokens."""

class DeviceInfo(TypedDict):
    """One usable device."""

    id: str
    """What `device=` takes: "cpu", "metal", …"""
    name: str
    """Marketing name of the chip."""
    backend: str
    """Column "backend" of akunu-bench: "CPU", "Metal", …"""
    isa: str
    """Instruction set chosen at run time ("avx512_amx", "avx2", "neon_i8mm", "generic", …)."""
    threads: int
    """Threads that a model on this device gets by default."""
    memory: int
    """Bytes of memory the device may use."""
    prompt_rows: int
    """Of a prompt's step, at most, where nobody says otherwise."""
    nodes: dict[int, int]
    """Of a CPU whose memory has nodes: the cores of each."""

class OpenAhead:
    """Opens a GPU's driver and context in a thread of its own, for a device that is made before `close`."""

    def __init__(self) -> None: ...
    def close(self) -> None: ...

def devices() -> list[DeviceInfo]:
    """The devices that models can run on here."""

def missing_devices() -> dict[str, str]:
    """Backends of this build that find no device here, and why."""

def dtypes() -> list[dict[str, Any]]:
    """The table of tensor element types, a dict for each.

    `name`, `id` (GGUF's; ours begin at 0x1000), `block_elems`, `block_bytes`, `is_weight`, `planes` (bytes of
    the codes, scales and biases of a planar type, else zeros), `scale_type`, and `float_codes`: whether its
    products are those of floats, not of 8-bit integers.
    """

def dequantize(dtype: str, data: npt.NDArray[np.uint8], n: int) -> npt.NDArray[np.float32]: ...
def quantize(
    dtype: str,
    data: npt.NDArray[Any],
    columns: int,
    *,
    source: str = "f32",
    scales: npt.NDArray[np.uint8] | None = None,
    biases: npt.NDArray[np.uint8] | None = None,
    importance: npt.NDArray[np.float32] | None = None,
    threads: int = 0,
    tensor: str = "",
    first_row: int = 0,
) -> npt.NDArray[np.uint8]:
    """Rows of `columns` elements of type `source` as rows of another type, uint8 [rows, row bytes].

    Of a planar type `data` are the codes, and `scales` and `biases` its other planes.
    `importance` is what a squared error counts in each column. `tensor` and `first_row` are for messages.
    """

class Chunk:
    """What a step produced for one text."""

    ids: list[int]
    """New token ids, in order. An end-of-generation id, when it was sampled, is the last one."""
    length: int
    """Tokens of the text that the cache holds now."""
    ended: bool
    """True when the last id is an end-of-generation id."""
    logprobs: list[float]
    """log p of each id under the model's raw distribution; empty unless asked for."""
    top_logprobs: list[list[tuple[int, float]]]
    """Per id, the most likely (id, log p), best first; empty unless asked for."""
    drafts: int
    """Drafts that each step of `Engine.draft_and_verify` verified; 0: it was no such chain."""
    of_steps: list[int]
    """How many of the ids each of these steps gave."""

class Lookup:
    """A text, and where its tokens stood before: drafts are looked up in it, and for it."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens."""
    def propose(self, others: Sequence[Lookup], own: int) -> tuple[int, list[int]]:
        """Look in this text and, where fewer than `own` tokens agree there, in others.

        Returns
        -------
        agree : int
            Tokens that the longest match has; 0 where there is none.
        tokens : list of int
            What followed it, at most 16; a text that repeats itself up to its end goes on so.
        """

class CommandInfo(TypedDict):
    """One command of a dispatch table, for `inspect --plan` and `profile`."""

    label: str
    """For example "layers.3.attn_q"; "" for none."""
    op: str
    kernel: str
    """The function that runs it; of several, the last."""
    dispatches: int
    """How often the device is asked to run something."""
    dtype: str
    layer: int
    """-1 outside the layers."""
    shape: str
    bytes: float
    """Bytes that must move at these rows and this position."""
    minimum: float
    """Of those, weights and the KV cache, which no other kernel could do without."""
    flops: float
    whole: bool
    """Float weights are multiplied as 16-bit integers."""
    barrier: bool
    seconds: float
    """Median measured time; 0 in a plan."""

class WindowPages(TypedDict):
    """Pages of layers that see only so many positions: a text holds those that its next tokens see."""

    positions: int
    pages: int
    held: int
    pinned: int
    cached: int
    most_held: int
    """By one text."""
    page_bytes: int

class Pages(TypedDict):
    """The KV cache: pages of 32 positions each."""

    pages: int
    held: int
    """By texts that are open, and those that are pinned."""
    pinned: int
    cached: int
    """Held by none, kept for texts that begin like an earlier one."""
    page_bytes: int
    """Of all layers, those with a window too, which have fewer pages."""
    windows: list[WindowPages]
    checkpoints: int
    """Copies of texts' states, at pages' ends, where the model keeps a state."""
    state_bytes: int
    """Of one; 0: the model keeps none."""

class Memory(TypedDict):
    """Bytes by purpose. `weights_mapped` are used straight from the file's mapping."""

    weights: int
    weights_mapped: int
    kv_cache: int
    scratch: int
    activations: int
    activations_apart: int

AdapterTensors = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float]
"""A [rank, columns], B [rows, rank], and a scale of B·A."""

class PagedExperts(TypedDict):
    """Counts the experts that stay in their file: bytes of all and of those held, and uses since the load.

    `hits` and `misses` are experts that a layer used and found in memory, or not; `seconds` are those in
    which `read_bytes` were read and packed by a thread, on average.
    """

    bytes: int
    held_bytes: int
    hits: int
    misses: int
    read_bytes: int
    seconds: float

class Engine:
    """A loaded model: weights, KV cache, scratch and dispatch tables on one device.

    It holds up to `parallel` texts, each in a slot. Calls on one engine must not overlap (a second one
    raises), except `cancel` and `stop_after_step`. Methods without a slot share one, for tools that run one
    text after the other.
    A thread that is in one when the interpreter exits leaves the engine, but does not return.
    """

    def __init__(
        self,
        file: TensorFiles | None,
        spec: ModelSpec,
        *,
        device: str = "auto",
        context: int = 0,
        threads: int = 0,
        kv_dtype: str = "f16",
        chunk: int | None = None,
        parallel: int = 8,
        kv_memory: int = 0,
        memory: int = 0,
        activations_apart: bool = False,
        check_weights: bool = True,
        synthetic: Mapping[str, str] | None = None,
        quantize: Mapping[str, str] | None = None,
        progress: Callable[..., None] | None = None,
    ) -> None:
        """`progress(done_bytes, total_bytes)` may raise to abandon the load. It is also called as
        `progress(total_bytes, total_bytes, what)`, while a device does what it does once for all loads.

        `chunk`: rows of a step at most; None: the device's `prompt_rows`. `kv_memory`: bytes of all pages and
        states; 0: a context for each of `parallel` texts, or half of the device's memory. `memory`: bytes
        of the model in all, 0: as the device has; experts without room stay in their file.
        `activations_apart`: no two activations share memory, for `run_prefix`. `check_weights`: float weights
        that are NaN or infinite are an error.

        `quantize` maps canonical tensor names to the dtypes that they get as they are loaded.
        With `file=None`, `synthetic` maps each canonical tensor name to a dtype, and the weights are random.
        """
    context: int
    """Most tokens of a text."""
    vocab: int
    """Logits of a row."""
    parallel: int
    """Texts at a time."""
    threads: int
    device: str
    isa: str
    kv_dtype: str
    chunk: int
    max_rows: int
    """Most rows of a step."""
    whole_images: bool
    """Rows of an image see all of it in some layer: no step may end within one."""
    max_logits: int
    """Rows of a step that draw, or verify a draft, at most."""
    memory: Memory
    paged_experts: PagedExperts
    memory_left: int | None
    """Bytes that are free of a memory of the device's own; None where it shares the machine's."""
    pages: Pages

    def open(self) -> int | None:
        """A slot for a text; None when all are taken."""
    def close_slot(self, slot: int) -> None:
        """End a text. Its pages stay to be found by others that begin like it, as long as there is room."""
    def length(self, slot: int) -> int:
        """Tokens of a slot's sequence that the cache holds."""
    def tokens(self, slot: int) -> npt.NDArray[np.uint32]:
        """Their ids (a copy)."""
    def reserve(self, slot: int, rows: int, steps: int = 1, drafts: int = 0) -> bool:
        """Room for what a part of steps writes, each with so many drafts; False when no page is left."""
    common_tokens: int
    def draft(
        self, sequences: Sequence[tuple[int, int]], common: bool = False
    ) -> tuple[list[list[int]], BaseException | None]:
        """Drafts of the model's own head, where it has one.

        For each (slot, tokens) whose last token was drawn by the last step: so many, or fewer where a text
        ends, was in no such step, or was not reserved for them. And what the handler of a signal raised.
        With `common` only ids below `common_tokens` are drafted, which takes less time; 0: there is no such
        choice.
        """

    def draft_and_verify(
        self, sequences: Sequence[tuple[int, int]], drafts: int, steps: int, common: bool = False
    ) -> tuple[list[Chunk], BaseException | None]:
        """Sample tokens in up to `steps` steps, before each of which the head writes so many drafts for all.

        For each (slot, limit) whose last token is to be run, and which was reserved for those steps: what
        `step` would give, up to `limit` tokens (0: no limit). Where the head has no state of some sequence to
        go on from, it is one step without drafts.
        """

    def step(
        self,
        parts: Sequence[tuple[int, int, bool, int, Sequence[int]]],
        steps: int = 1,
        masks: Callable[[], object] | None = None,
    ) -> tuple[list[Chunk], BaseException | None]:
        """Run parts of texts together, each reserved before, at most one of a slot.

        A part is (slot, rows, draws, limit, drafts): the next `rows` tokens that are not in the cache;
        whether the token after them is drawn; how many tokens to draw at most (0: no limit); and a guess of
        those after the last row, which is verified. With `steps` above 1, every part has one row and draws in
        each step. `masks` calls `set_mask` for the parts whose next tokens are restricted; it is called while
        the tokens before are run. Where it raises, nothing is drawn.
        Returns what each gave, and what a signal's handler, or `masks`, raised meanwhile.
        """
    def set_mask(self, slot: int, masks: npt.NDArray[np.uint32]) -> None:
        """Within a step's `masks`: the tokens that may be drawn, [words] or [1 + drafts, words].

        Token t is bit t % 32 of word t // 32.
        """
    def read_page(
        self,
        ids: npt.NDArray[np.uint32],
        root: int = 0,
        contents: npt.NDArray[np.uint64] | None = None,
        parts: Sequence[int] | None = None,
    ) -> list[npt.NDArray[np.uint8] | None] | None:
        """What is kept of the last 32 of `ids`, which some text begins with; None: not in the cache.

        It has a part for layers that see all positions, one for each window, and one for the state there, if
        the model keeps one. None: a part that the cache lacks, or that is not among those wanted.
        `root` and `contents` as in `begin`, here and below.
        """
    part_bytes: list[int]
    """Of each part."""
    def restore_page(self, slot: int, page: Sequence[npt.NDArray[np.uint8] | None]) -> bool:
        """Take what `read_page` gave as the next page of a text; False when no page is left."""
    def finish_restoring(self, slot: int) -> int:
        """After the last of such pages: how many tokens the cache holds from where the text can go on."""
    def pin(
        self, ids: npt.NDArray[np.uint32], root: int = 0, contents: npt.NDArray[np.uint64] | None = None
    ) -> bool:
        """Keep the pages of `ids`, whole ones, until `unpin`; False where the cache does not hold all."""
    def unpin(
        self, ids: npt.NDArray[np.uint32], root: int = 0, contents: npt.NDArray[np.uint64] | None = None
    ) -> None: ...
    def forget(self) -> None:
        """Drop all pages that no open text holds."""
    def discard_unused(self) -> None:
        """Give the memory of pages that hold nothing back to the system."""
    def stop_after_step(self) -> None:
        """End a chain after the token that it is at (thread-safe)."""
    def begin(
        self,
        ids: Sequence[int] | npt.NDArray[np.uint32],
        *,
        slot: int,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        typical_p: float = 1.0,
        repeat_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        penalty_window: int = 64,
        top_n_sigma: float = 0.0,
        xtc_probability: float = 0.0,
        xtc_threshold: float = 0.1,
        min_keep: int = 0,
        dry_multiplier: float = 0.0,
        dry_base: float = 1.75,
        dry_allowed_length: int = 2,
        dry_penalty_last_n: int = -1,
        dry_breakers: npt.NDArray[np.uint32] | None = None,
        logit_bias: Mapping[int, float] | None = None,
        seed: int = 0,
        logprobs: int = -1,
        end_ids: Sequence[int] = (),
        reuse: bool = True,
        root: int = 0,
        contents: npt.NDArray[np.uint64] | None = None,
        inputs: Sequence[tuple[int, EncodedRows, int, int]] = (),
        positions: npt.NDArray[np.uint32] | None = None,
        adapter: int | None = None,
        adapter_scale: float = 1.0,
    ) -> int:
        """Start a generation; returns how many prompt tokens the cache already holds, of any earlier text.

        Pages are shared among texts of one `root` only, and where `contents` are equal too: hashes, one for
        each position from the first on, of what stands there in the token's place; 0, or none, where the
        token does. `inputs` are what an encoder made of it, in order: the first position, rows, which of
        them is the first, and how many there are.
        `positions` [m, 3], of a model whose rotary sets have axes, are by what the first m positions turn;
        behind them each is one more than the greatest.
        `logprobs`: -1 none, 0 the chosen token's, n > 0 also the n most likely (n <= 20).
        Raises ContextLengthError when the prompt does not fit, InvalidArgumentError for bad values.
        """
    linears: dict[str, tuple[int, int]]
    """Rows and columns of the matrices that adapters may add to, by canonical names."""
    def add_adapter(self, tensors: Mapping[str, AdapterTensors]) -> int:
        """Load an adapter, by the names of `linears`; its number is what `begin` names it by."""
    def remove_adapter(self, number: int) -> None:
        """Free an adapter, which no open slot may have."""
    def extend(self, slot: int, ids: Sequence[int]) -> None:
        """Append tokens that are known without being drawn: rows of the next steps."""
    def cancel(self) -> None:
        """Stop the call that runs, as soon as possible (thread-safe).

        Where none runs, or it was told at its very end and ran whole, the next step stops instead.
        """
    def truncate(self, n: int, slot: int) -> int:
        """Keep only the first `n` tokens of a sequence; returns how many of them the cache holds.

        Fewer than `n` where the model keeps a state, of which there is a checkpoint before only.
        """
    def logits(
        self,
        ids: Sequence[int] | npt.NDArray[np.uint32],
        adapter: int | None = None,
        adapter_scale: float = 1.0,
    ) -> npt.NDArray[np.float32]:
        """Logits [len(ids), vocab] of a fresh run, in a slot of its own."""
    def nll(
        self,
        ids: Sequence[int] | npt.NDArray[np.uint32],
        first: int = 1,
        adapter: int | None = None,
        adapter_scale: float = 1.0,
    ) -> npt.NDArray[np.float32]:
        """-log p(ids[i] | ids[:i]) for i in first..len(ids)-1, without keeping the logits."""
    def input_squares(
        self,
        sequences: Sequence[npt.NDArray[np.uint32]],
        progress: Callable[[int], None] | None = None,
        adapter: int | None = None,
        adapter_scale: float = 1.0,
    ) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]]:
        """Per matmul of the layers, by its label, the sums over all tokens of its input's squares, [columns].

        Those of experts are of the tokens that chose each, [experts, columns], with how many these are. Each
        text is run on its own; `progress(done)` counts them. Not on Apple GPUs.
        """
    def plan(self, phase: str = "decode", rows: int = 1, position: int = 0) -> list[CommandInfo]:
        """The dispatch table of "decode", "batch" or "prefill", with costs at these rows and position."""
    def profile(
        self, phase: str = "decode", rows: int = 1, position: int = 0, repeats: int = 16
    ) -> list[CommandInfo]:
        """Run that table and time every command."""
    def run_prefix(self, slot: int, commands: int) -> dict[str, npt.NDArray[np.uint8]]:
        """Run the first commands of the step that would run what is left of a text, and draw a token.

        Gives the buffers that the last of them wrote, by their names in the op's row, the cache apart. The
        engine must have been opened with `activations_apart`.
        """
    def close(self) -> None:
        """Free the memory; a second time does nothing. Raises while another thread's call runs."""

class Peaks(TypedDict):
    """What this machine's CPU reaches now, with the given threads."""

    read_bytes_per_second: float
    f32_flops: float
    int8_ops: float

def measure_peaks(threads: int = 0, seconds: float = 0.3) -> Peaks: ...
def signal_polls() -> int:
    """How often long calls have asked Python, on its main thread, whether a signal came."""

def cpu_instruction_sets() -> list[tuple[str, bool]]:
    """The kernel sets of this build, best first, and whether this processor runs them."""

class AppleChip(TypedDict):
    """A row of the table of Apple's chips."""

    name: str
    family: int
    """7 means the GPU family Apple7."""
    gpu_cores: int
    bytes_per_second: float
    """Bandwidth of the memory."""
    flops: float
    """Per second, half precision, the whole GPU."""

def apple_chips() -> list[AppleChip]:
    """Every chip that plans can be made for, with its most GPU cores."""

def find_apple_chip(name: str) -> AppleChip:
    """A chip by name, as "M4 Max", or "M4 Max 32" with its GPU cores.

    Raises InvalidArgumentError when it is not known. `Engine` takes device "plan:M4 Max": it only plans.
    """

class NvidiaChip(TypedDict):
    """A row of the table of NVIDIA's GPUs."""

    name: str
    arch: str
    """"sm_90"."""
    device: str
    """As the driver calls it."""
    multiprocessors: int
    bytes_per_second: float
    """Bandwidth of the memory."""
    flops: float
    """Per second, half precision, of the tensor cores."""

def nvidia_chips() -> list[NvidiaChip]:
    """Every GPU that plans can be made for; `Engine` takes device "plan:H100": it only plans."""

class LabWeight:
    """A weight on a lab's device."""

    dtype: str
    rows: int
    cols: int
    packed: bool
    """In the device's own layout; otherwise as in the file."""
    whole: bool
    """Packed as the device has floats of whole texts."""

class Lab:
    """Runs single commands of a device on arrays, for tests/kernels. Not part of the package's API.

    A buffer is a contiguous, writeable array, a `LabWeight`, or None; `params` are the bytes of the op's
    structure (`lab_structs`). What only a device can read (packed activations, KV cache, partial results of
    attention) is an array of bytes that its own ops fill. Calls of several threads wait for one another.
    """

    def __init__(self, device: str = "cpu", *, threads: int = 0, isa: str = "") -> None: ...
    name: str
    isa: str
    threads: int
    split_attention: bool
    mixed_qkv: list[tuple[str, str]]
    """Types of q and k, and another of v, that one norm_qkv takes."""
    def matmul_input(self, dtype: str) -> str:
        """The activation format, "f32", "q8" or "f16", that a matmul with weights of this type reads."""
    def activation_bytes(self, format: str, rows: int, dim: int) -> int: ...
    def kv_page_bytes(self, dtype: str, n_kv_heads: int, head_dim: int) -> int:
        """Bytes of a layer's keys and values of 32 positions."""
    def attention_partial_bytes(self, n_heads: int, head_dim: int, context: int) -> int: ...
    def supports_kv(self, dtype: str) -> bool: ...
    def weight(
        self,
        dtype: str,
        data: npt.NDArray[np.uint8],
        rows: int,
        cols: int,
        *,
        prepare: bool = True,
        whole: bool = False,
        experts: int = 0,
        copies: int = 1,
    ) -> LabWeight:
        """A weight from the bytes of a file, in the device's own layout if `prepare`.

        `whole`: for rows of whole texts alone, which no other step computes again. `experts`: so many
        weights of that shape, one after the other.
        """
    def run(
        self,
        op: str,
        buffers: Sequence[npt.NDArray[Any] | LabWeight | None],
        params: bytes,
        *,
        kv_dtype: str = "f16",
    ) -> None:
        """Run one command; the arrays then hold what it left in its buffers.

        Raises DeviceError when it wrote outside of a buffer.
        """
    def time(
        self,
        op: str,
        buffers: Sequence[npt.NDArray[Any] | LabWeight | None],
        params: bytes,
        *,
        kv_dtype: str = "f16",
        repeats: int = 8,
        copies: int = 1,
    ) -> list[float]:
        """Seconds of each of repeats x copies runs, on `copies` copies of the buffers in turn."""

def lab_structs() -> dict[str, np.dtype[np.void]]:
    """The parameter structure of every op, and SamplerState, LogprobRecord and Control."""

class ApplePass(TypedDict):
    """One dispatch of a command on an Apple GPU."""

    function: str
    constants: dict[int, int]
    """Function constants by index."""
    groups: tuple[int, int, int]
    """Threadgroups; a count of 0: there is no dispatch."""
    threads: int
    """Of a threadgroup."""

def lab_apple_passes(
    chip: str,
    op: str,
    params: bytes,
    *,
    weight: str = "f32",
    last_weight: str = "",
    kv_dtype: str = "f16",
    without: Sequence[int] = (),
    keys: int = 0,
) -> list[ApplePass]:
    """What a command becomes on a chip, with all of its buffers but those at `without`.

    `keys`: those that some row sees, where they are not among the parameters.
    """

def lab_q8_planes(raw: npt.NDArray[np.uint8], rows: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    """The planes q, d, s and s16 of the CPU's int8 activations, each [rows, ...]."""

class LogMelStream:
    """log10 of the mel power of samples that come in pieces, 100 frames a second at 16 kHz."""

    def __init__(self, mels: int = 80) -> None: ...
    @property
    def mels(self) -> int: ...
    def feed(self, samples: npt.ArrayLike, end: bool = False) -> npt.NDArray[np.float32]:
        """The frames [mels, frames] that `samples` [n] complete; with `end`, all that are left.

        Together they are the frames of all samples at once, bit for bit, n / 160 of them.
        """

def bytes_of(texts: list[str], alphabet: str) -> list[bytes | None]:
    """The bytes that each text stands for in an alphabet of 256 characters, one for each byte.

    None where a text has another character.
    """

class ByteMerges:
    """Byte-level BPE: bytes are joined to tokens, by the rank of what is joined. Calls may overlap.

    Other threads run while the tables of a vocabulary are made.
    """

    def __init__(
        self, tokens: list[str], merges: list[str], left_out: list[int], alphabet: str, whole_first: bool
    ) -> None:
        """Take tokens and merges, "LEFT RIGHT" by rank, in the alphabet of `bytes_of`.

        Parameters
        ----------
        left_out
            Ids of tokens that no text becomes; nor does it become one that has another character. A merge
            counts if both sides and what they give are tokens of the others.
        whole_first
            A piece that is a token is that token, whether or not merges lead to it.
        """
    def encode(self, pieces: Iterable[str]) -> list[int]:
        """Ids of the pieces of a text, one piece after the other. Bytes without a token are left out."""
