/* SPDX-License-Identifier: MIT
 *
 * The stack machine of pickle. It implements the opcodes of protocols 2 to 5 that describe data.
 * Each opcode checks number and types of the values on the stack before it uses them. */
#include "pickle.h"

#include <string.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

static const char *take(struct pickle *pk, uint64_t size)
{
    if (size > pk->size - pk->at) {
        pk->cut = true;
        pickle_bad(pk, "truncated");
        return NULL;
    }
    const char *at = pk->bytes + pk->at;
    pk->at += (size_t)size;
    return at;
}

/* Reads a little-endian unsigned integer of `size` bytes. Returns false and sets the error if the
 * pickle ends before. */
static bool take_number(struct pickle *pk, int size, uint64_t *out)
{
    const unsigned char *at = (const unsigned char *)take(pk, (uint64_t)size);
    *out = 0;
    for (int i = size; at != NULL && i-- > 0;)
        *out = *out << 8 | at[i];
    return at != NULL;
}

static const char *take_line(struct pickle *pk, size_t *size)
{
    const char *from = pk->bytes + pk->at, *end = memchr(from, '\n', pk->size - pk->at);
    if (end == NULL)
        return take(pk, UINT64_MAX);
    *size = (size_t)(end - from);
    pk->at += *size + 1;
    return from;
}

/* ---- the stack ------------------------------------------------------------------------------- */

/* Makes sure that an array with `count` used elements of `size` bytes has space for one more; *room
 * is the number of elements allocated. A full array is doubled. */
static tn_status make_room(void *array, int64_t count, int64_t *room, size_t size)
{
    void **at = array;
    if (count < *room)
        return TN_OK;
    int64_t more = *room > 0 ? *room * 2 : 64;
    void *grown = tn_realloc(*at, (size_t)more * size);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    *at = grown;
    *room = more;
    return TN_OK;
}

static tn_status push(struct pickle *pk, struct pickle_value *value)
{
    if (value == NULL)
        return tn_error_last_code();
    void *stack = pk->stack;
    tn_status status = make_room(&stack, pk->height, &pk->stack_room, sizeof *pk->stack);
    pk->stack = stack;
    if (status == TN_OK)
        pk->stack[pk->height++] = value;
    return status;
}

/* Returns the height below which opcodes must not pop: the values below the last mark belong to a
 * collection that is not finished. */
static int64_t floor_of(const struct pickle *pk)
{
    return pk->mark_count > 0 ? pk->marks[pk->mark_count - 1] : 0;
}

static bool has(struct pickle *pk, int64_t count)
{
    if (pk->height - floor_of(pk) >= count)
        return true;
    pickle_bad(pk, "stack: too few values; expected those that the opcode takes");
    return false;
}

static struct pickle_value *pop(struct pickle *pk)
{
    return has(pk, 1) ? pk->stack[--pk->height] : NULL;
}

/* Removes the last mark and returns the stack position at which the values after it begin. Returns
 * -1 and sets the error if there is no mark. */
static int64_t to_mark(struct pickle *pk)
{
    if (pk->mark_count > 0)
        return pk->marks[--pk->mark_count];
    pickle_bad(pk, "mark: missing");
    return -1;
}

/* ---- opcodes: values ------------------------------------------------------------------------- */

static tn_status push_int(struct pickle *pk, pickle_kind kind, int64_t number)
{
    struct pickle_value *value = pickle_new(pk, kind);
    if (value != NULL)
        value->as.i = number;
    return push(pk, value);
}

static tn_status op_none(struct pickle *pk, unsigned char op)
{
    (void)op;
    return push(pk, pickle_new(pk, PK_NONE));
}

static tn_status op_bool(struct pickle *pk, unsigned char op)
{
    return push_int(pk, PK_BOOL, op == 0x88);
}

static tn_status op_int(struct pickle *pk, unsigned char op)
{
    uint64_t number;
    if (!take_number(pk, op == 'K' ? 1 : op == 'M' ? 2 : 4, &number))
        return TN_ERR_FORMAT;
    return push_int(pk, PK_INT, op == 'J' ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number);
}

static tn_status op_long(struct pickle *pk, unsigned char op)
{
    uint64_t size;
    const char *at = take_number(pk, op == 0x8a ? 1 : 4, &size) ? take(pk, size) : NULL;
    if (at == NULL)
        return TN_ERR_FORMAT;
    if (size > 8) {
        struct pickle_value *value = pickle_new(pk, PK_LONG);
        if (value != NULL) {
            value->as.text.at = at;
            value->as.text.size = (size_t)size;
        }
        return push(pk, value);
    }
    uint64_t number = size > 0 && (unsigned char)at[size - 1] > 127 ? UINT64_MAX : 0;
    for (uint64_t i = size; i-- > 0;)
        number = number << 8 | (unsigned char)at[i];
    return push_int(pk, PK_INT, (int64_t)number);
}

static tn_status op_float(struct pickle *pk, unsigned char op)
{
    const unsigned char *at = (const unsigned char *)take(pk, 8);
    (void)op;
    if (at == NULL)
        return TN_ERR_FORMAT;
    uint64_t bits = 0; /* the pickle has the highest byte first */
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | at[i];
    struct pickle_value *value = pickle_new(pk, PK_FLOAT);
    if (value != NULL)
        memcpy(&value->as.f[0], &bits, sizeof bits);
    return push(pk, value);
}

static tn_status push_text(struct pickle *pk, pickle_kind kind, int length_size)
{
    uint64_t size;
    const char *at = take_number(pk, length_size, &size) ? take(pk, size) : NULL;
    if (at == NULL)
        return TN_ERR_FORMAT;
    struct pickle_value *value = pickle_new(pk, kind);
    if (value != NULL) {
        value->as.text.at = at;
        value->as.text.size = (size_t)size;
    }
    return push(pk, value);
}

static tn_status op_text(struct pickle *pk, unsigned char op)
{
    return push_text(pk, PK_TEXT, op == 0x8c || op == 'U' ? 1 : op == 0x8d ? 8 : 4);
}

static tn_status op_bytes(struct pickle *pk, unsigned char op)
{
    return push_text(pk, PK_BYTES, op == 'C' ? 1 : op == 'B' ? 4 : 8);
}

static tn_status op_empty(struct pickle *pk, unsigned char op)
{
    return push(pk, pickle_new(pk, op == '}'   ? PK_DICT
                                   : op == ']' ? PK_LIST
                                   : op == ')' ? PK_TUPLE
                                               : PK_SET));
}

/* ---- opcodes: collections -------------------------------------------------------------------- */

static tn_status op_mark(struct pickle *pk, unsigned char op)
{
    (void)op;
    void *marks = pk->marks;
    tn_status status = make_room(&marks, pk->mark_count, &pk->mark_room, sizeof *pk->marks);
    pk->marks = marks;
    if (status == TN_OK)
        pk->marks[pk->mark_count++] = pk->height;
    return status;
}

/* Moves the values from stack position `begin` upwards to the end of the collection `into`. */
static tn_status gather(struct pickle *pk, struct pickle_value *into, int64_t begin)
{
    tn_status status = into != NULL ? TN_OK : tn_error_last_code();
    for (int64_t i = begin; i < pk->height && status == TN_OK; i++)
        status = pickle_add(pk, into, pk->stack[i]);
    pk->height = begin;
    return status;
}

static tn_status op_collect(struct pickle *pk, unsigned char op)
{
    pickle_kind kind = op == 't' ? PK_TUPLE : op == 'l' ? PK_LIST : op == 'd' ? PK_DICT : PK_SET;
    int64_t begin = to_mark(pk);
    if (begin < 0)
        return TN_ERR_FORMAT;
    if (kind == PK_DICT && (pk->height - begin) % 2 != 0)
        return pickle_bad(pk, "key: without a value");
    struct pickle_value *value = pickle_new(pk, kind);
    tn_status status = gather(pk, value, begin);
    return status == TN_OK ? push(pk, value) : status;
}

static tn_status op_tuple(struct pickle *pk, unsigned char op)
{
    int64_t count = op - 0x84;
    if (!has(pk, count))
        return TN_ERR_FORMAT;
    struct pickle_value *value = pickle_new(pk, PK_TUPLE);
    tn_status status = gather(pk, value, pk->height - count);
    return status == TN_OK ? push(pk, value) : status;
}

/* Appends the values from stack position `begin` upwards to the collection below them, which must
 * be of kind `kind`: a list, a dictionary or a set. Other values never change after they are
 * made. */
static tn_status extend(struct pickle *pk, pickle_kind kind, int64_t begin)
{
    if (begin - 1 < floor_of(pk))
        return pickle_bad(pk, "stack: too few values; expected those that the opcode takes");
    struct pickle_value *into = pk->stack[begin - 1];
    if (into->kind != kind)
        return pickle_bad_type(pk, "append", into, pickle_kind_name(kind));
    if (kind == PK_DICT && (pk->height - begin) % 2 != 0)
        return pickle_bad(pk, "key: without a value");
    return gather(pk, into, begin);
}

static tn_status op_extend(struct pickle *pk, unsigned char op)
{
    int64_t begin = to_mark(pk);
    if (begin < 0)
        return TN_ERR_FORMAT;
    return extend(pk, op == 'u' ? PK_DICT : op == 'e' ? PK_LIST : PK_SET, begin);
}

static tn_status op_extend_one(struct pickle *pk, unsigned char op)
{
    int64_t count = op == 's' ? 2 : 1;
    return has(pk, count) ? extend(pk, op == 's' ? PK_DICT : PK_LIST, pk->height - count)
                          : TN_ERR_FORMAT;
}

/* ---- opcodes: the machine itself ------------------------------------------------------------- */

static tn_status op_proto(struct pickle *pk, unsigned char op)
{
    uint64_t version;
    (void)op;
    if (!take_number(pk, 1, &version))
        return TN_ERR_FORMAT;
    return version <= 5 ? TN_OK : pickle_bad(pk, "protocol: too new; expected at most 5");
}

static tn_status op_frame(struct pickle *pk, unsigned char op)
{
    uint64_t size;
    (void)op;
    return take_number(pk, 8, &size) ? TN_OK : TN_ERR_FORMAT;
}

static tn_status op_pop(struct pickle *pk, unsigned char op)
{
    if (op == '1' || pk->height == floor_of(pk)) {
        int64_t begin = to_mark(pk);
        if (begin >= 0)
            pk->height = begin;
        return begin >= 0 ? TN_OK : TN_ERR_FORMAT;
    }
    return pop(pk) != NULL ? TN_OK : TN_ERR_FORMAT;
}

/* Stores the top of the stack in the memo under `number`. Python counts these numbers up from 0,
 * and each takes at least one byte of the pickle; so a number that is larger than the bytes read so
 * far is wrong. The check limits the memory that a damaged file can claim. */
static tn_status memorize(struct pickle *pk, uint64_t number)
{
    if (!has(pk, 1))
        return TN_ERR_FORMAT;
    if (number > pk->at)
        return pickle_bad(pk, "index of the memo: too large; expected at most the bytes before it");
    if ((int64_t)number >= pk->memo_size) {
        int64_t size = (int64_t)number * 2 + 64;
        struct pickle_value **grown = tn_realloc(pk->memo, (size_t)size * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        memset(grown + pk->memo_size, 0, (size_t)(size - pk->memo_size) * sizeof *grown);
        pk->memo = grown;
        pk->memo_size = size;
    }
    pk->memo[number] = pk->stack[pk->height - 1];
    return TN_OK;
}

static tn_status op_put(struct pickle *pk, unsigned char op)
{
    uint64_t number;
    return take_number(pk, op == 'q' ? 1 : 4, &number) ? memorize(pk, number) : TN_ERR_FORMAT;
}

/* MEMOIZE stores under the next number, which is the count of values that MEMOIZE stored before. */
static tn_status op_memoize(struct pickle *pk, unsigned char op)
{
    (void)op;
    return memorize(pk, (uint64_t)pk->memoized++);
}

static tn_status op_get(struct pickle *pk, unsigned char op)
{
    uint64_t number;
    if (!take_number(pk, op == 'h' ? 1 : 4, &number))
        return TN_ERR_FORMAT;
    if ((int64_t)number >= pk->memo_size || pk->memo[number] == NULL)
        return pickle_bad(pk, "index of the memo: not defined");
    return push(pk, pk->memo[number]);
}

static tn_status op_global(struct pickle *pk, unsigned char op)
{
    size_t module_size = 0, name_size = 0;
    (void)op;
    const char *module = take_line(pk, &module_size);
    const char *name = module != NULL ? take_line(pk, &name_size) : NULL;
    return name != NULL ? push(pk, pickle_global(pk, module, module_size, name, name_size))
                        : TN_ERR_FORMAT;
}

static tn_status op_stack_global(struct pickle *pk, unsigned char op)
{
    (void)op;
    struct pickle_value *name = pop(pk), *module = name != NULL ? pop(pk) : NULL;
    if (module == NULL)
        return TN_ERR_FORMAT;
    if (name->kind != PK_TEXT || module->kind != PK_TEXT)
        return pickle_bad_type(pk, "name", name->kind != PK_TEXT ? name : module, "a string");
    return push(pk, pickle_global(pk, module->as.text.at, module->as.text.size, name->as.text.at,
                                  name->as.text.size));
}

static tn_status op_reduce(struct pickle *pk, unsigned char op)
{
    (void)op;
    struct pickle_value *arguments = pop(pk), *name = arguments != NULL ? pop(pk) : NULL;
    if (name == NULL)
        return TN_ERR_FORMAT;
    if (name->kind != PK_NAME)
        return pickle_bad_type(pk, "call", name, "a name");
    if (arguments->kind != PK_TUPLE)
        return pickle_bad_type(pk, "arguments of a call", arguments, "a tuple");
    return push(pk, pickle_call(pk, name, arguments));
}

static tn_status refuse(const struct pickle *pk, const char *name)
{
    return tn_fail(TN_ERR_REFUSED,
                   "%s: pickle, byte %zu: opcode %s: not supported; expected opcodes of plain data",
                   pk->path, pk->op, name);
}

static tn_status op_object(struct pickle *pk, unsigned char op)
{
    (void)op;
    if (!pk->script)
        return refuse(pk, "NEWOBJ");
    struct pickle_value *arguments = pop(pk), *name = arguments != NULL ? pop(pk) : NULL;
    return name != NULL ? push(pk, pickle_object(pk, name, arguments)) : TN_ERR_FORMAT;
}

static tn_status op_build(struct pickle *pk, unsigned char op)
{
    (void)op;
    if (!has(pk, 2))
        return TN_ERR_FORMAT;
    struct pickle_value *state = pop(pk);
    return pickle_build(pk, pk->stack[pk->height - 1], state);
}

static tn_status op_persistent(struct pickle *pk, unsigned char op)
{
    (void)op;
    struct pickle_value *id = pop(pk);
    return id != NULL ? push(pk, pickle_persistent(pk, id)) : TN_ERR_FORMAT;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct opcode {
    const char *name; /* of an opcode that is known but refused, for the message; else NULL */
    tn_status (*run)(struct pickle *pk, unsigned char op);
} opcodes[256] = {
    ['N'] = { NULL, op_none },
    [0x88] = { NULL, op_bool },
    [0x89] = { NULL, op_bool },
    ['J'] = { NULL, op_int },
    ['K'] = { NULL, op_int },
    ['M'] = { NULL, op_int },
    [0x8a] = { NULL, op_long },
    [0x8b] = { NULL, op_long },
    ['G'] = { NULL, op_float },
    ['X'] = { NULL, op_text },
    ['T'] = { NULL, op_text },
    ['U'] = { NULL, op_text },
    [0x8c] = { NULL, op_text },
    [0x8d] = { NULL, op_text },
    ['B'] = { NULL, op_bytes },
    ['C'] = { NULL, op_bytes },
    [0x8e] = { NULL, op_bytes },
    [0x96] = { NULL, op_bytes },
    ['}'] = { NULL, op_empty },
    [']'] = { NULL, op_empty },
    [')'] = { NULL, op_empty },
    [0x8f] = { NULL, op_empty },
    ['('] = { NULL, op_mark },
    ['t'] = { NULL, op_collect },
    ['l'] = { NULL, op_collect },
    ['d'] = { NULL, op_collect },
    [0x91] = { NULL, op_collect },
    [0x85] = { NULL, op_tuple },
    [0x86] = { NULL, op_tuple },
    [0x87] = { NULL, op_tuple },
    ['u'] = { NULL, op_extend },
    ['e'] = { NULL, op_extend },
    [0x90] = { NULL, op_extend },
    ['s'] = { NULL, op_extend_one },
    ['a'] = { NULL, op_extend_one },
    [0x80] = { NULL, op_proto },
    [0x95] = { NULL, op_frame },
    ['0'] = { NULL, op_pop },
    ['1'] = { NULL, op_pop },
    ['q'] = { NULL, op_put },
    ['r'] = { NULL, op_put },
    [0x94] = { NULL, op_memoize },
    ['h'] = { NULL, op_get },
    ['j'] = { NULL, op_get },
    ['c'] = { NULL, op_global },
    [0x93] = { NULL, op_stack_global },
    ['R'] = { NULL, op_reduce },
    ['b'] = { NULL, op_build },
    ['Q'] = { NULL, op_persistent },
    ['i'] = { "INST", NULL },
    ['o'] = { "OBJ", NULL },
    [0x81] = { NULL, op_object },
    [0x92] = { "NEWOBJ_EX", NULL },
    [0x82] = { "EXT1", NULL },
    [0x83] = { "EXT2", NULL },
    [0x84] = { "EXT4", NULL },
    [0x97] = { "NEXT_BUFFER", NULL },
    [0x98] = { "READONLY_BUFFER", NULL },
    ['P'] = { "PERSID", NULL },
    ['I'] = { "INT of protocol 0", NULL },
    ['L'] = { "LONG of protocol 0", NULL },
    ['F'] = { "FLOAT of protocol 0", NULL },
    ['S'] = { "STRING of protocol 0", NULL },
    ['V'] = { "UNICODE of protocol 0", NULL },
    ['p'] = { "PUT of protocol 0", NULL },
    ['g'] = { "GET of protocol 0", NULL },
    ['2'] = { "DUP", NULL },
};

static tn_status step(struct pickle *pk, unsigned char op)
{
    if (opcodes[op].run != NULL)
        return opcodes[op].run(pk, op);
    if (opcodes[op].name == NULL)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: pickle, byte %zu: unknown opcode, got %02x; expected one of protocols 0 to 5",
            pk->path, pk->op, op);
    return refuse(pk, opcodes[op].name);
}

tn_status pickle_read(struct pickle *pk, const char *path, const char *bytes, size_t size,
                      bool script)
{
    memset(pk, 0, sizeof *pk);
    pk->path = path;
    pk->bytes = bytes;
    pk->script = script;
    pk->size = size;
    for (;;) {
        pk->op = pk->at;
        const char *op = take(pk, 1);
        if (op == NULL)
            return TN_ERR_FORMAT;
        if (*op == '.')
            break;
        tn_status status = step(pk, (unsigned char)*op);
        if (status != TN_OK)
            return status;
    }
    if (pk->mark_count > 0)
        return pickle_bad(pk, "stack: a mark is left at the end; expected none");
    pk->result = pop(pk);
    if (pk->result == NULL)
        return TN_ERR_FORMAT;
    return pk->height == 0 ? TN_OK
                           : pickle_bad(pk, "stack: several values at the end; expected one");
}

void pickle_free(struct pickle *pk)
{
    pickle_free_values(pk);
    tn_free(pk->stack);
    tn_free(pk->memo);
    tn_free(pk->marks);
    pk->stack = pk->memo = NULL;
    pk->marks = NULL;
    pk->result = NULL;
}
