/* The C interface of Akunu. docs/c-api.md explains it; `akunu config --cflags --libs` says how to build with it.
 *
 * Texts are UTF-8 and end with a zero byte. Every function may be called from any thread. Those that take long (load,
 * generate, chat, embed, transcribe) may run beside each other, also on one model, which then shares its steps. */
#ifndef AKUNU_H
#define AKUNU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define AKUNU_API __attribute__((visibility("default")))
#else
#define AKUNU_API
#endif

/* The version of this interface. It grows where a program built with this header would not run with the library. */
#define AKUNU_ABI 1

/* What a function returns. akunu_error() says in a sentence what went wrong. */
typedef enum akunu_status {
    AKUNU_OK = 0,
    AKUNU_ERROR = 1,          /* something else */
    AKUNU_BAD_ARGUMENT = 2,   /* an argument or option is unknown or out of range */
    AKUNU_BAD_MODEL = 3,      /* the file does not exist, cannot be fetched, or is damaged */
    AKUNU_UNSUPPORTED = 4,    /* Akunu does not run this model, or the model cannot do this */
    AKUNU_CONTEXT_LENGTH = 5, /* the prompt is longer than the context */
    AKUNU_BUSY = 6,           /* there was no room in time */
    AKUNU_NO_MEMORY = 7,
    AKUNU_NO_PYTHON = 8 /* the interpreter, or the package, does not start */
} akunu_status;

typedef struct akunu_model akunu_model;

/* Called with pieces of an output while it is written, in the thread that asked for it. `text` has `size` bytes and a
 * zero byte behind them, and is valid during the call. Return 0 to go on, anything else to end the output there.
 * It may call any function but akunu_close of its model. */
typedef int (*akunu_callback)(const char* text, size_t size, void* user);

/* How to load a model. Zero everything, then set `size` and what is wanted. */
typedef struct akunu_load_options {
    size_t size;         /* sizeof(akunu_load_options) */
    const char* device;  /* as `akunu devices` lists them; NULL: "auto" */
    uint32_t context;    /* tokens of prompt and output together; 0: the default */
    uint32_t threads;    /* CPU threads; 0: one for each core */
    const char* options; /* a JSON object with more arguments of akunu.load, such as {"kv_dtype": "q8_0"}, or NULL */
} akunu_load_options;

/* What to do with an output. Zero everything, then set `size` and what is wanted. */
typedef struct akunu_output_options {
    size_t size;         /* sizeof(akunu_output_options) */
    const char* options; /* a JSON object with arguments of Model.generate (chat, transcribe, embed), such as
                            {"max_tokens": 100, "temperature": 0}, or NULL */
    akunu_callback on_text;
    void* user; /* given to on_text */
} akunu_output_options;

typedef enum akunu_finish {
    AKUNU_STOP = 0,      /* the model ended, or wrote a stop text */
    AKUNU_LENGTH = 1,    /* max_tokens or the context is reached */
    AKUNU_CANCELLED = 2, /* by akunu_cancel or the callback */
} akunu_finish;

/* An output. Zero everything and set `size` before a call; akunu_result_free releases what the call put there. */
typedef struct akunu_result {
    size_t size; /* sizeof(akunu_result) */
    char* text;  /* all of it */
    size_t text_size;
    char* json; /* everything else: ids, log-probabilities, the message of a chat, segments of a transcript */
    size_t json_size;
    uint32_t prompt_tokens, cached_tokens, generated_tokens;
    akunu_finish finish;
    double seconds_to_first_token, tokens_per_second;
} akunu_result;

/* The library's AKUNU_ABI; programs that find the library at run time compare it with theirs. */
AKUNU_API uint32_t akunu_abi(void);

/* The version of the package, such as "0.1.0"; an empty text where it does not start. */
AKUNU_API const char* akunu_version(void);

/* What the last failed call of this thread complained about. Valid until this thread's next failed call. */
AKUNU_API const char* akunu_error(void);

/* Load a model: a GGUF file, a folder, a short name such as "qwen3:4b", USER/REPO on the Hugging Face Hub, "ember".
 * `options` may be NULL. The first call starts the interpreter. */
AKUNU_API akunu_status akunu_load(const char* model, const akunu_load_options* options, akunu_model** out);

/* Release a model. No other call may be using it. NULL is allowed. */
AKUNU_API void akunu_close(akunu_model* model);

/* End all outputs of a model, from any thread; they end at their next token with AKUNU_CANCELLED. */
AKUNU_API akunu_status akunu_cancel(akunu_model* model);

/* The token ids of a text. `count` is the room in `ids` before the call and the number of ids afterwards: if that is
 * more than there was room for, call again. `ids` may be NULL where there is no room. */
AKUNU_API akunu_status akunu_tokenize(akunu_model* model, const char* text, uint32_t* ids, size_t* count);

/* The text of token ids: result->text. */
AKUNU_API akunu_status akunu_detokenize(akunu_model* model, const uint32_t* ids, size_t count, akunu_result* result);

/* Continue a prompt, without a chat template. `options` and `result` may be NULL. */
AKUNU_API akunu_status akunu_generate(akunu_model* model, const char* prompt, const akunu_output_options* options,
                                      akunu_result* result);

/* Answer a chat. `messages` is a JSON array in OpenAI's form: [{"role": "user", "content": "Hello!"}]. The callback
 * gets the content; reasoning and calls of tools are in the "message" of result->json. */
AKUNU_API akunu_status akunu_chat(akunu_model* model, const char* messages, const akunu_output_options* options,
                                  akunu_result* result);

/* The vectors of `count` texts, of an embedding model, one behind the other. `dimensions` gets the length of each, and
 * `vectors` memory with count * dimensions floats, which akunu_free releases. The callback is not used. */
AKUNU_API akunu_status akunu_embed(akunu_model* model, const char* const* texts, size_t count,
                                   const akunu_output_options* options, float** vectors, size_t* dimensions);

/* Write down speech: `count` samples of one channel, 16,000 in a second. The callback gets a segment at a time. */
AKUNU_API akunu_status akunu_transcribe(akunu_model* model, const float* samples, size_t count,
                                        const akunu_output_options* options, akunu_result* result);

/* The same for a recording in a file. */
AKUNU_API akunu_status akunu_transcribe_file(akunu_model* model, const char* path, const akunu_output_options* options,
                                             akunu_result* result);

/* Release what a call put into a result, which may be used again then. */
AKUNU_API void akunu_result_free(akunu_result* result);

/* Release memory that a function allocated. NULL is allowed. */
AKUNU_API void akunu_free(void* memory);

#ifdef __cplusplus
}
#endif

#endif
