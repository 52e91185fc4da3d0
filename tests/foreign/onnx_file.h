/* SPDX-License-Identifier: MIT
 *
 * Small files of ONNX, made field by field. */
#ifndef TN_TESTS_FOREIGN_ONNX_FILE_H
#define TN_TESTS_FOREIGN_ONNX_FILE_H

#include "tests/libcheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>
#include <unistd.h>

struct bytes {
    unsigned char at[1 << 16];
    size_t count;
};

static void put_number(struct bytes *b, uint64_t n)
{
    for (; n > 127; n >>= 7)
        b->at[b->count++] = (unsigned char)(n | 128);
    b->at[b->count++] = (unsigned char)n;
}

static void put_int(struct bytes *b, uint32_t field, uint64_t n)
{
    put_number(b, field << 3);
    put_number(b, n);
}

static void put_bytes(struct bytes *b, uint32_t field, const void *from, size_t count)
{
    put_number(b, field << 3 | 2);
    put_number(b, count);
    memcpy(b->at + b->count, from, count);
    b->count += count;
}

static void put_text(struct bytes *b, uint32_t field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

/* A field that is a message, which is emptied. */
static void put(struct bytes *b, uint32_t field, struct bytes *message)
{
    put_bytes(b, field, message->at, message->count);
    message->count = 0;
}

/* Adds a node with one input and one output; `attribute` may be NULL. */
static void put_node(struct bytes *graph, const char *type, const char *domain, const char *in,
                     const char *out, struct bytes *attribute)
{
    static struct bytes node;

    node.count = 0;
    put_text(&node, 1, in);
    put_text(&node, 2, out);
    put_text(&node, 3, "a node");
    put_text(&node, 4, type);
    if (attribute != NULL)
        put(&node, 5, attribute);
    put_text(&node, 7, domain);
    put(graph, 1, &node);
}

static void put_named(struct bytes *graph, uint32_t field, const char *name)
{
    static struct bytes info;

    info.count = 0;
    put_text(&info, 1, name);
    put(graph, field, &info);
}

static const char *path_here(void)
{
    static char path[600];

    tn_snprint(path, sizeof path, "%s/tenon-onnx-%d.onnx",
               getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (int)getpid());
    return path;
}

static void write_file(const void *bytes, size_t count)
{
    FILE *file;

    unlink(path_here()); /* some file systems wait for the disk if a file is written again */
    file = fopen(path_here(), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

/* Adds a tensor [1] to the graph: 1 as float32 or int64. `again` may be a second name, or NULL. */
static void put_tensor(struct bytes *graph, const char *name, const char *again, bool integer)
{
    static struct bytes tensor;
    const float one = 1;
    const int64_t whole = 1;

    tensor.count = 0;
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, integer ? 7 : 1);
    put_text(&tensor, 8, name);
    if (again != NULL)
        put_text(&tensor, 8, again);
    put_bytes(&tensor, 9, integer ? (const void *)&whole : &one, integer ? 8 : 4);
    put(graph, 5, &tensor);
}

/* Writes a model with this graph and opens it; graph->count becomes 0. */
static tn_module *model_of(struct bytes *graph, uint64_t version)
{
    static struct bytes model, import;

    model.count = import.count = 0;
    put_int(&model, 1, 8);
    put(&model, 7, graph);
    put_text(&import, 1, "");
    put_int(&import, 2, version);
    put(&model, 8, &import);
    tn_error_clear();
    write_file(model.at, model.count);
    return tn_module_from_file(path_here());
}

#endif
