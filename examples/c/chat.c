/* Asks a model a question and prints the answer while it is written.
 *
 *     cc chat.c $(akunu config --cflags --libs) -o chat
 *     ./chat ember "What is the capital of France?"
 */
#include <akunu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print(const char* text, size_t size, void* user) {
    (void)user;
    fwrite(text, 1, size, stdout);
    fflush(stdout);
    return 0; /* go on */
}

/* A text as a JSON string; the caller frees it. */
static char* quoted(const char* text) {
    char *json = malloc(6 * strlen(text) + 3), *at = json;
    if (!json) exit(1);
    *at++ = '"';
    for (; *text; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == '"' || c == '\\') {
            at += sprintf(at, "\\u%04x", c);
        } else {
            *at++ = (char)c;
        }
    }
    *at++ = '"';
    *at = 0;
    return json;
}

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL QUESTION\n", argv[0]);
        return 2;
    }
    akunu_model* model = NULL;
    if (akunu_load(argv[1], NULL, &model) != AKUNU_OK) {
        fprintf(stderr, "%s\n", akunu_error());
        return 1;
    }
    char* question = quoted(argv[2]);
    char* messages = malloc(strlen(question) + 64);
    if (!messages) return 1;
    sprintf(messages, "[{\"role\": \"user\", \"content\": %s}]", question);

    akunu_output_options options = {.size = sizeof options};
    options.options = "{\"temperature\": 0}";
    options.on_text = print;
    akunu_result result = {.size = sizeof result};
    const akunu_status status = akunu_chat(model, messages, &options, &result);
    if (status == AKUNU_OK) {
        printf("\n");
        fprintf(stderr, "[%u tokens, %.0f a second]\n", result.generated_tokens, result.tokens_per_second);
    } else {
        fprintf(stderr, "%s\n", akunu_error());
    }
    akunu_result_free(&result);
    akunu_close(model);
    free(messages);
    free(question);
    return status == AKUNU_OK ? 0 : 1;
}
