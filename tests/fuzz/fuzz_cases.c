/* SPDX-License-Identifier: MIT
 *
 * The cases of tenon check, with any text: a file is read or refused with a message, and the
 * tensors of its cases can be made in every layout. Read for the operator and the layer type that
 * the text names first.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_cases new/ tests/fuzz/corpus/cases */
#define _GNU_SOURCE 1
#include "tests/fuzz/fuzz.h"

#include "sdk/conform/layers.h"
#include "sdk/conform/reference.h"

#include <sys/mman.h>
#include <unistd.h>

static void make(const conform_tensor *t)
{
    for (int layout = 0; t->there && layout < (int)CONFORM_LAYOUTS; layout++) {
        TN_SCOPE;
        tn_tensor *whole, *x = conform_tensor_make(t, t->dtype, tn_device_find("reference"),
                                                   (conform_layout)layout, &whole);

        fuzz_require(x != NULL || tn_failed());
        if (x != NULL)
            fuzz_require(tn_tensor_numel(x) == t->count);
        tn_error_clear();
    }
}

/* A receiver of cases, which keeps some. */
static bool take(void *user, conform_case *one)
{
    int64_t *taken = user;

    one->keep = (++*taken & 1) != 0;
    for (int64_t i = 0; i < one->n_in; i++)
        make(&one->in[i]);
    for (int64_t i = 0; i < one->n_given; i++)
        fuzz_require(one->given[i].count == 0 || one->given[i].values != NULL);
    return true;
}

static bool take_layer(void *user, conform_layer_case *one)
{
    ++*(int64_t *)user;
    for (int64_t i = 0; i < one->n_in; i++)
        fuzz_require(one->in[i].values != NULL);
    return true;
}

/* Finds the first line that begins with `word`, and copies the rest of it, up to a byte of `end`,
 * to `name`. */
static bool first_name(const char *text, const char *word, const char *end, char name[64])
{
    const char *at = strncmp(text, word + 1, strlen(word + 1)) == 0 ? text - 1 : strstr(text, word);
    size_t length = at != NULL ? strcspn(at + strlen(word), end) : 0;

    snprintf(name, 64, "%.*s", length < 63 ? (int)length : 63, at != NULL ? at + strlen(word) : "");
    return length > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    char *text = fuzz_text(data, size), path[64], name[64], words[400];
    int fd = memfd_create("cases", MFD_CLOEXEC);
    int64_t taken = 0;

    if (!ready)
        fuzz_require(conform_reference(TN_OP_PRIMITIVE) == TN_OK);
    ready = true;
    fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (first_name(text, "\nop ", "\r\n", name)) {
        int64_t count = conform_cases(path, name, take, &taken, words, sizeof words);

        fuzz_require(count >= 0 ? count == taken : words[0] != '\0');
    }
    taken = 0;
    if (first_name(text, "\nlayer ", "(\r\n", name)) {
        int64_t count = conform_layer_cases(path, name, take_layer, &taken, words, sizeof words);

        fuzz_require(count >= 0 ? count == taken : words[0] != '\0');
    }
    tn_error_clear();
    close(fd);
    free(text);
    return 0;
}
