/* Calls every function of the C interface, in ways that a program could. Arguments: a language model, and, for the
 * functions of other models, an embedding model, a speech model, a recording. */
#include <akunu.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, akunu_error()); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

struct seen {
    size_t calls, bytes, most;
    akunu_model* cancels;
    char text[4096];
};

static int collect(const char* text, size_t size, void* user) {
    struct seen* seen = user;
    CHECK(text[size] == 0 && strlen(text) == size);
    CHECK(seen->bytes + size < sizeof seen->text);
    memcpy(seen->text + seen->bytes, text, size);
    seen->bytes += size;
    ++seen->calls;
    if (seen->cancels && seen->calls == seen->most) CHECK(akunu_cancel(seen->cancels) == AKUNU_OK);
    return !seen->cancels && seen->most && seen->calls == seen->most;
}

static akunu_result generated(akunu_model* model, const char* options, struct seen* seen) {
    akunu_output_options asked = {.size = sizeof asked, .options = options};
    if (seen) {
        asked.on_text = collect;
        asked.user = seen;
    }
    akunu_result result = {.size = sizeof result};
    CHECK(akunu_generate(model, "Once upon a time", &asked, &result) == AKUNU_OK);
    return result;
}

static void outputs(akunu_model* model) {
    uint32_t ids[64];
    size_t count = 1, all = 64;
    CHECK(akunu_tokenize(model, "Once upon a time", ids, &count) == AKUNU_OK && count > 1);
    CHECK(akunu_tokenize(model, "Once upon a time", ids, &all) == AKUNU_OK && all == count);
    akunu_result text = {.size = sizeof text};
    CHECK(akunu_detokenize(model, ids, count, &text) == AKUNU_OK);
    CHECK(strstr(text.text, "Once upon a time"));
    akunu_result_free(&text);
    CHECK(text.text == NULL);
    akunu_result_free(&text);

    struct seen seen = {0};
    akunu_result whole = generated(model, "{\"temperature\": 0, \"max_tokens\": 20}", &seen);
    CHECK(whole.finish == AKUNU_LENGTH && whole.generated_tokens == 20 && whole.prompt_tokens == count);
    CHECK(seen.bytes == whole.text_size && memcmp(seen.text, whole.text, seen.bytes) == 0);
    CHECK(strstr(whole.json, "\"ids\": [") && strlen(whole.json) == whole.json_size);
    CHECK(whole.tokens_per_second > 0 && whole.seconds_to_first_token > 0);

    struct seen few = {.most = 3};
    akunu_result ended = generated(model, "{\"temperature\": 0, \"max_tokens\": 2000}", &few);
    CHECK(ended.finish == AKUNU_CANCELLED && few.calls == 3 && ended.generated_tokens < 100);
    struct seen cancelled = {.most = 3, .cancels = model};
    akunu_result other = generated(model, "{\"temperature\": 0, \"max_tokens\": 2000}", &cancelled);
    CHECK(other.finish == AKUNU_CANCELLED && strncmp(other.text, whole.text, 4) == 0);
    akunu_result_free(&other);
    akunu_result_free(&ended);

    /* A program that was built when the struct was shorter. */
    akunu_result old = {.size = offsetof(akunu_result, prompt_tokens), .prompt_tokens = 77};
    CHECK(akunu_generate(model, "Once upon a time", NULL, &old) == AKUNU_OK && old.text && old.prompt_tokens == 77);
    akunu_result_free(&old);
    CHECK(old.text == NULL && old.prompt_tokens == 77);
    akunu_result_free(&whole);
}

static void chats(akunu_model* model) {
    struct seen seen = {0};
    akunu_output_options asked = {
        .size = sizeof asked, .options = "{\"temperature\": 0}", .on_text = collect, .user = &seen};
    akunu_result answer = {.size = sizeof answer};
    const char* question = "[{\"role\": \"user\", \"content\": \"What is the capital of France?\"}]";
    CHECK(akunu_chat(model, question, &asked, &answer) == AKUNU_OK);
    CHECK(strstr(answer.text, "Paris") && strstr(seen.text, "Paris") && answer.finish == AKUNU_STOP);
    CHECK(strstr(answer.json, "\"role\": \"assistant\""));
    akunu_result_free(&answer);
    CHECK(akunu_chat(model, "[{\"role\": 3}]", NULL, NULL) == AKUNU_BAD_ARGUMENT);
    CHECK(akunu_chat(model, "[", NULL, NULL) == AKUNU_BAD_ARGUMENT && strstr(akunu_error(), "messages: not JSON"));
}

static void errors(akunu_model* model) {
    akunu_model* none = (akunu_model*)&none;
    akunu_load_options options = {.size = sizeof options, .options = "{\"nonsense\": 1}"};
    CHECK(akunu_load("no-such.gguf", NULL, &none) == AKUNU_BAD_MODEL && none == NULL);
    CHECK(strstr(akunu_error(), "no-such.gguf"));
    CHECK(akunu_load("ember", &options, &none) == AKUNU_BAD_ARGUMENT && strstr(akunu_error(), "nonsense"));
    akunu_load_options unsized_options = {.device = "cpu"};
    CHECK(akunu_load("ember", &unsized_options, &none) == AKUNU_BAD_ARGUMENT && none == NULL);
    options.options = NULL;
    options.device = "toaster";
    CHECK(akunu_load("ember", &options, &none) == AKUNU_BAD_ARGUMENT);
    CHECK(akunu_load(NULL, NULL, &none) == AKUNU_BAD_ARGUMENT);
    akunu_output_options asked = {.size = sizeof asked, .options = "{\"temperature\": -1}"};
    CHECK(akunu_generate(model, "x", &asked, NULL) == AKUNU_BAD_ARGUMENT && strstr(akunu_error(), "temperature"));
    akunu_result unsized = {.text_size = 7};
    CHECK(akunu_generate(model, "x", NULL, &unsized) == AKUNU_BAD_ARGUMENT &&
          strstr(akunu_error(), "result.size: found 0"));
    CHECK(unsized.text == NULL && unsized.text_size == 7);
    akunu_output_options forgotten = {.options = "{\"max_tokens\": 1}"};
    CHECK(akunu_generate(model, "x", &forgotten, NULL) == AKUNU_BAD_ARGUMENT);
    CHECK(strstr(akunu_error(), "options.size: found 0"));
    asked.options = "[]";
    CHECK(akunu_generate(model, "x", &asked, NULL) == AKUNU_BAD_ARGUMENT);
    CHECK(akunu_generate(model, "\xff", NULL, NULL) == AKUNU_BAD_ARGUMENT);
    const char* text = "a text";
    float* vectors;
    size_t dimensions;
    CHECK(akunu_embed(model, &text, 1, NULL, &vectors, &dimensions) == AKUNU_UNSUPPORTED && vectors == NULL);
    const char* holes[] = {"a text", NULL};
    CHECK(akunu_embed(model, holes, 2, NULL, &vectors, &dimensions) == AKUNU_BAD_ARGUMENT);
    CHECK(strstr(akunu_error(), "text 1 of 2 is NULL"));
    char* book = calloc(1, 200001);
    for (size_t i = 0; i < 200000; i += 2) memcpy(book + i, "a ", 2);
    CHECK(akunu_generate(model, book, NULL, NULL) == AKUNU_CONTEXT_LENGTH);
    free(book);
    akunu_close(NULL);
    akunu_free(NULL);
    akunu_result_free(NULL);
}

static void* in_a_thread(void* model) {
    akunu_result* result = calloc(1, sizeof *result);
    *result = generated(model, "{\"temperature\": 0, \"max_tokens\": 30}", NULL);
    CHECK(akunu_load("no-such.gguf", NULL, (akunu_model**)&model) == AKUNU_BAD_MODEL); /* an error of this thread */
    return result;
}

static void threads(akunu_model* model) {
    pthread_t ids[4];
    akunu_result* results[4];
    for (int i = 0; i < 4; ++i) CHECK(pthread_create(&ids[i], NULL, in_a_thread, model) == 0);
    for (int i = 0; i < 4; ++i) CHECK(pthread_join(ids[i], (void**)&results[i]) == 0);
    for (int i = 0; i < 4; ++i) {
        CHECK(strcmp(results[i]->text, results[0]->text) == 0 && results[i]->text_size > 20);
        if (i) akunu_result_free(results[i]), free(results[i]);
    }
    akunu_result_free(results[0]);
    free(results[0]);
}

static void vectors_of(const char* name) {
    akunu_model* model;
    CHECK(akunu_load(name, NULL, &model) == AKUNU_OK);
    const char* inputs[] = {"a cat", "a cat", "the sea"};
    float* vectors;
    size_t dimensions;
    CHECK(akunu_embed(model, inputs, 3, NULL, &vectors, &dimensions) == AKUNU_OK && dimensions > 1);
    double same = 0, other = 0;
    for (size_t i = 0; i < dimensions; ++i) {
        same += (double)vectors[i] * vectors[dimensions + i];
        other += (double)vectors[i] * vectors[2 * dimensions + i];
    }
    CHECK(same > 0.999 && same < 1.001 && other < same);
    akunu_free(vectors);
    CHECK(akunu_generate(model, "x", NULL, NULL) == AKUNU_UNSUPPORTED);
    akunu_close(model);
}

static void speech(const char* name, const char* recording) {
    akunu_model* model;
    CHECK(akunu_load(name, NULL, &model) == AKUNU_OK);
    struct seen seen = {0};
    akunu_output_options asked = {
        .size = sizeof asked, .options = "{\"language\": \"en\"}", .on_text = collect, .user = &seen};
    akunu_result heard = {.size = sizeof heard}, silence = {.size = sizeof silence};
    CHECK(akunu_transcribe_file(model, recording, &asked, &heard) == AKUNU_OK);
    CHECK(heard.text_size > 20 && seen.calls > 0 && strstr(heard.json, "\"segments\": ["));
    CHECK(akunu_transcribe_file(model, "/no/such/file.wav", NULL, NULL) != AKUNU_OK);
    float* samples = calloc(16000, sizeof *samples);
    CHECK(akunu_transcribe(model, samples, 16000, NULL, &silence) == AKUNU_OK && silence.text_size == 0);
    free(samples);
    printf("%s\n", heard.text);
    akunu_result_free(&heard);
    akunu_result_free(&silence);
    akunu_close(model);
}

int main(int argc, char** argv) {
    if (argc != 2 && argc != 5) return 2;
    CHECK(akunu_abi() == AKUNU_ABI && strlen(akunu_version()) >= 5);
    akunu_load_options options = {.size = sizeof options, .device = "cpu", .context = 1024, .threads = 2};
    options.options = "{\"kv_dtype\": \"f32\"}";
    akunu_model* model;
    CHECK(akunu_load(argv[1], &options, &model) == AKUNU_OK);
    outputs(model);
    chats(model);
    errors(model);
    threads(model);
    akunu_close(model);
    if (argc == 5) {
        vectors_of(argv[2]);
        speech(argv[3], argv[4]);
    }
    printf("done\n");
    return 0;
}
