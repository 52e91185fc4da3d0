/* SPDX-License-Identifier: MIT
 *
 * Reads a vocabulary: vocab.json, an object with the number of each token, and merges.txt, a line
 * for each pair of tokens that are joined. Both write bytes as characters: those that can be
 * printed as themselves, the others as U+0100 and following. */
#include "bpe.h"

#include <stdio.h>
#include <string.h>

uint64_t bpe_hash(const void *bytes, uint64_t length)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xCBF29CE484222325u ^ length;

    for (uint64_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 0x100000001B3u;
    return hash ^ hash >> 29;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static struct bpe_token *token_place(const struct bpe *bpe, const unsigned char *bytes,
                                     uint64_t length)
{
    uint64_t place = bpe_hash(bytes, length) & (bpe->token_places - 1);

    while (bpe->tokens[place].length != 0 &&
           (bpe->tokens[place].length != length ||
            memcmp(bpe->bytes + bpe->tokens[place].at, bytes, length) != 0))
        place = (place + 1) & (bpe->token_places - 1);
    return &bpe->tokens[place];
}

int64_t bpe_find(const struct bpe *bpe, const unsigned char *bytes, uint64_t length)
{
    const struct bpe_token *token = length > 0 ? token_place(bpe, bytes, length) : NULL;

    return token != NULL && token->length > 0 ? (int64_t)token->id : -1;
}

static struct bpe_merge *merge_place(const struct bpe *bpe, uint32_t left, uint32_t right)
{
    const uint32_t pair[] = { left, right };
    uint64_t place = bpe_hash(pair, sizeof pair) & (bpe->merge_places - 1);

    while (bpe->merges[place].rank != UINT32_MAX &&
           (bpe->merges[place].left != left || bpe->merges[place].right != right))
        place = (place + 1) & (bpe->merge_places - 1);
    return &bpe->merges[place];
}

const struct bpe_merge *bpe_find_merge(const struct bpe *bpe, uint32_t left, uint32_t right)
{
    const struct bpe_merge *merge = merge_place(bpe, left, right);

    return merge->rank != UINT32_MAX ? merge : NULL;
}

/* Makes tables of a size for `tokens` and `merges` entries. */
static tn_status make_tables(struct bpe *bpe, uint64_t tokens, uint64_t merges)
{
    bpe->token_places = bpe->merge_places = 1024;
    while (bpe->token_places < 2 * tokens)
        bpe->token_places *= 2;
    while (bpe->merge_places < 2 * merges)
        bpe->merge_places *= 2;
    bpe->tokens = tn_calloc(bpe->token_places, sizeof *bpe->tokens);
    bpe->merges = tn_malloc(bpe->merge_places * sizeof *bpe->merges);
    if (bpe->tokens == NULL || bpe->merges == NULL)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < bpe->merge_places; i++)
        bpe->merges[i].rank = UINT32_MAX;
    return TN_OK;
}

/* ---- characters for bytes -------------------------------------------------------------------- */

static bool is_printed(uint32_t byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
           (byte >= 174 && byte <= 255);
}

/* The byte for each character from 0 to 323; -1: none. */
static void make_bytes(int bytes[324])
{
    int next = 256;

    for (int i = 0; i < 324; i++)
        bytes[i] = i < 256 && is_printed((uint32_t)i) ? i : -1;
    for (int i = 0; i < 256; i++)
        if (!is_printed((uint32_t)i))
            bytes[next++] = i;
}

/* A file that is read, and the position in it. `bytes` has the byte of each character. */
struct reader {
    struct bpe *bpe;
    const char *path;
    const unsigned char *text;
    uint64_t size, at;
    int bytes[324];
    unsigned char *word; /* the bytes of the text that was read last, room for `size` bytes */
    uint64_t length;
    bool known; /* each of its characters stands for a byte */
};

static tn_status wrong(const struct reader *r, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: byte %llu: %s", r->path, (unsigned long long)r->at, what);
}

static void add_character(struct reader *r, uint32_t point)
{
    if (point < 324 && r->bytes[point] >= 0)
        r->word[r->length++] = (unsigned char)r->bytes[point];
    else
        r->known = false;
}

/* ---- vocab.json ------------------------------------------------------------------------------ */

static void skip_space(struct reader *r)
{
    while (r->at < r->size && strchr(" \t\r\n", r->text[r->at]) != NULL && r->text[r->at] != 0)
        r->at++;
}

static bool take(struct reader *r, char byte)
{
    skip_space(r);
    if (r->at >= r->size || r->text[r->at] != (unsigned char)byte)
        return false;
    r->at++;
    return true;
}

/* Reads four hexadecimal digits. Returns UINT32_MAX if the next four bytes are something else. */
static uint32_t take_hex(struct reader *r)
{
    uint32_t value = 0;

    if (r->size - r->at < 4)
        return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        unsigned char byte = r->text[r->at++], low = byte | 0x20;

        if (byte >= '0' && byte <= '9')
            value = value * 16 + (byte - '0');
        else if (low >= 'a' && low <= 'f')
            value = value * 16 + (uint32_t)(low - 'a') + 10;
        else
            return UINT32_MAX;
    }
    return value;
}

/* Reads the escape after a backslash. */
static tn_status read_escape(struct reader *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    unsigned char byte = r->at < r->size ? r->text[r->at++] : 0;
    const char *found = byte != 0 ? strchr(from, byte) : NULL;
    uint32_t point;

    if (found != NULL) {
        add_character(r, (unsigned char)to[found - from]);
        return TN_OK;
    }
    point = byte == 'u' ? take_hex(r) : UINT32_MAX;
    if (point == UINT32_MAX)
        return wrong(r, "wrong escape in a text");
    add_character(r, point); /* a surrogate stands for no byte, which add_character() notes */
    return TN_OK;
}

static tn_status read_string(struct reader *r)
{
    r->length = 0;
    r->known = true;
    if (!take(r, '"'))
        return wrong(r, "no text; expected a token in quotation marks");
    while (r->at < r->size && r->text[r->at] != '"') {
        tn_status status = TN_OK;

        if (r->text[r->at] == '\\') {
            r->at++;
            status = read_escape(r);
        } else {
            add_character(r, bpe_next(r->text, &r->at));
        }
        if (status != TN_OK)
            return status;
    }
    return take(r, '"') ? TN_OK : wrong(r, "the text has no end");
}

static tn_status read_number(struct reader *r, uint32_t *number)
{
    uint64_t value = 0, start;

    skip_space(r);
    for (start = r->at; r->at < r->size && r->text[r->at] >= '0' && r->text[r->at] <= '9';
         r->at++) {
        value = value * 10 + (uint64_t)(r->text[r->at] - '0');
        if (value > INT32_MAX)
            return wrong(r, "the number of a token is too large; expected at most 2147483647");
    }
    *number = (uint32_t)value;
    return r->at > start ? TN_OK : wrong(r, "no number; expected that of a token, from 0 on");
}

static tn_status add_token(struct reader *r, uint32_t id)
{
    struct bpe *bpe = r->bpe;
    struct bpe_token *place;

    bpe->size = (int64_t)id >= bpe->size ? (int64_t)id + 1 : bpe->size;
    if (!r->known || r->length == 0)
        return TN_OK; /* a special token, to which no text is encoded */
    place = token_place(bpe, r->word, r->length);
    if (place->length != 0)
        return wrong(r, "the token occurs twice");
    memcpy(bpe->bytes + bpe->used, r->word, r->length);
    *place = (struct bpe_token){ (uint32_t)bpe->used, (uint32_t)r->length, id };
    bpe->used += r->length;
    return TN_OK;
}

static tn_status read_tokens(struct reader *r)
{
    tn_status status = TN_OK;
    uint32_t id = 0;

    if (!take(r, '{'))
        return wrong(r, "no JSON object; expected the number of each token");
    if (!take(r, '}'))
        do {
            status = read_string(r);
            if (status == TN_OK && !take(r, ':'))
                status = wrong(r, "no colon after the token");
            if (status == TN_OK)
                status = read_number(r, &id);
            if (status == TN_OK)
                status = add_token(r, id);
        } while (status == TN_OK && take(r, ','));
    if (status == TN_OK && r->at > 0 && r->text[r->at - 1] != '}' && !take(r, '}'))
        status = wrong(r, "no comma after the number; expected a comma or }");
    skip_space(r);
    return status == TN_OK && r->at < r->size ? wrong(r, "text after the end of the object")
                                              : status;
}

/* ---- merges.txt ------------------------------------------------------------------------------ */

/* Reads the characters up to `end`, or the end of the line. */
static int64_t read_part(struct reader *r, unsigned char end)
{
    r->length = 0;
    r->known = true;
    while (r->at < r->size && r->text[r->at] != end && r->text[r->at] != '\n' &&
           r->text[r->at] != '\r')
        add_character(r, bpe_next(r->text, &r->at));
    return r->known ? bpe_find(r->bpe, r->word, r->length) : -1;
}

static tn_status read_merge(struct reader *r, uint32_t rank)
{
    int64_t left = read_part(r, ' '), right, joined;
    uint64_t length = r->length;
    struct bpe_merge *place;

    if (r->at >= r->size || r->text[r->at] != ' ')
        return wrong(r, "no merge; expected two tokens of the vocabulary with a space between");
    if (left < 0)
        return wrong(r, "the first token of a merge is not in the vocabulary");
    r->at++;
    memmove(r->word + r->size, r->word, length);
    right = read_part(r, '\n');
    memcpy(r->word + r->size + length, r->word, r->length);
    joined = bpe_find(r->bpe, r->word + r->size, length + r->length);
    if (right < 0)
        return wrong(r, "the second token of a merge is not in the vocabulary");
    if (joined < 0)
        return wrong(r, "the two tokens of a merge together are not in the vocabulary");
    place = merge_place(r->bpe, (uint32_t)left, (uint32_t)right);
    if (place->rank == UINT32_MAX)
        *place = (struct bpe_merge){ (uint32_t)left, (uint32_t)right, (uint32_t)joined, rank };
    return TN_OK;
}

static tn_status read_merges(struct reader *r)
{
    tn_status status = TN_OK;

    if (r->size >= 8 && memcmp(r->text, "#version", 8) == 0)
        while (r->at < r->size && r->text[r->at] != '\n')
            r->at++;
    for (uint32_t rank = 0; status == TN_OK; rank++) {
        while (r->at < r->size && (r->text[r->at] == '\n' || r->text[r->at] == '\r'))
            r->at++;
        if (r->at >= r->size)
            break;
        status = read_merge(r, rank);
    }
    return status;
}

/* ---- both files ------------------------------------------------------------------------------ */

/* Loads a file, which must be UTF-8. The caller frees r->path, r->text and r->word. */
static tn_status load(struct reader *r, struct bpe *bpe, const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = tn_malloc(size);
    uint64_t good;

    *r = (struct reader){ .bpe = bpe, .path = path };
    if (path == NULL)
        return TN_ERR_MEMORY;
    snprintf(path, size, "%s/%s", folder, name);
    make_bytes(r->bytes);
    r->text = data_load(path, &r->size);
    if (r->text == NULL)
        return tn_error_last_code();
    r->word = tn_malloc(2 * r->size + 16);
    if (r->word == NULL)
        return TN_ERR_MEMORY;
    good = bpe_check(r->text, r->size);
    if (good < r->size)
        return tn_fail(TN_ERR_FORMAT, "%s: byte %llu: not UTF-8", path, (unsigned long long)good);
    return TN_OK;
}

static void unload(struct reader *r)
{
    tn_free((void *)(uintptr_t)r->path);
    tn_free((void *)(uintptr_t)r->text);
    tn_free(r->word);
}

static uint64_t count_of(const struct reader *r, unsigned char byte)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < r->size; i++)
        count += r->text[i] == byte;
    return count;
}

static tn_status fill(struct bpe *bpe, struct reader *tokens, struct reader *merges)
{
    tn_status status = make_tables(bpe, count_of(tokens, ':') + 1, count_of(merges, '\n') + 1);

    bpe->bytes = tn_malloc(tokens->size + 1);
    if (bpe->bytes == NULL)
        return TN_ERR_MEMORY;
    if (status == TN_OK)
        status = read_tokens(tokens);
    if (status == TN_OK)
        status = read_merges(merges);
    for (int i = 0; i < 256 && status == TN_OK; i++) {
        unsigned char byte = (unsigned char)i;

        bpe->single[i] = bpe_find(bpe, &byte, 1);
    }
    if (status == TN_OK)
        bpe->end = bpe_find(bpe, (const unsigned char *)"<|endoftext|>", 13);
    return status;
}

struct bpe *bpe_open(const char *folder)
{
    struct bpe *bpe = tn_calloc(1, sizeof *bpe);
    struct reader tokens = { 0 }, merges = { 0 };
    tn_status status = bpe != NULL ? load(&tokens, bpe, folder, "vocab.json") : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = load(&merges, bpe, folder, "merges.txt");
    if (status == TN_OK)
        status = fill(bpe, &tokens, &merges);
    unload(&tokens);
    unload(&merges);
    if (status == TN_OK)
        return bpe;
    bpe_free(bpe);
    return NULL;
}

void bpe_free(struct bpe *bpe)
{
    if (bpe == NULL)
        return;
    tn_free(bpe->bytes);
    tn_free(bpe->tokens);
    tn_free(bpe->merges);
    tn_free(bpe);
}
