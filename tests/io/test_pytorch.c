/* SPDX-License-Identifier: MIT
 *
 * The format "pytorch": files that PyTorch wrote (make_pytorch_npz.py), content that is refused,
 * hostile files. */
#include "tests/base/suite.h"

#include "tests/io/memory.h"
#include "tests/io/state_values.h"
#include "tests/spec/proves.h"

/* ---- what PyTorch wrote ---------------------------------------------------------------------- */

static void expect_all(const tn_state *state)
{
    ck_assert_int_eq(tn_state_count(state), 26);
    ck_assert_str_eq(tn_state_name(state, 0), "float32");
    ck_assert_str_eq(tn_state_name(state, 25), "größe");
    EXPECT(state, "float32", TN_F32, TN_SHAPE(2, 3), uint32_t, 0x3fc00000, 0x80000000, 0x7f800000,
           1, 0x40400000, 0xc0800000);
    EXPECT(state, "float64", TN_F64, TN_SHAPE(2), double, 0.1, 1e300);
    EXPECT(state, "float16", TN_F16, TN_SHAPE(3), uint16_t, 0x3c00, 0xb800, 0x7bff);
    EXPECT(state, "bfloat16", TN_BF16, TN_SHAPE(3), uint16_t, 0x3f80, 0xbf00, 0x7f62);
    EXPECT(state, "complex64", TN_C64, TN_SHAPE(2), float, 1.5f, -2, 0, 3);
    EXPECT(state, "complex128", TN_C128, TN_SHAPE(2), double, 1.5, -2, 0, 1e300);
    EXPECT(state, "bool", TN_BOOL, TN_SHAPE(3), uint8_t, 1, 0, 1);
    EXPECT(state, "uint8", TN_U8, TN_SHAPE(2), uint8_t, 0, 255);
    EXPECT(state, "int8", TN_I8, TN_SHAPE(1), int8_t, -128);
    EXPECT(state, "int16", TN_I16, TN_SHAPE(1), int16_t, -300);
    EXPECT(state, "int32", TN_I32, TN_SHAPE(2), int32_t, -5, 7);
    EXPECT(state, "int64", TN_I64, TN_SHAPE(2), int64_t, INT64_MIN, INT64_MAX);
    EXPECT(state, "uint16", TN_U16, TN_SHAPE(2), uint16_t, 1, 65535);
    EXPECT(state, "uint32", TN_U32, TN_SHAPE(2), uint32_t, 1, UINT32_MAX);
    EXPECT(state, "uint64", TN_U64, TN_SHAPE(2), uint64_t, 1, UINT64_MAX);
    EXPECT(state, "float8_e4m3", TN_F8_E4M3, TN_SHAPE(2), uint8_t, 0x38, 0xb0);
    EXPECT(state, "float8_e5m2", TN_F8_E5M2, TN_SHAPE(2), uint8_t, 0x3c, 0xb8);
    EXPECT(state, "scalar", TN_F32, TN_SCALAR_SHAPE, float, 3.25f);
    expect_tensor(state, "empty", TN_F32, TN_SHAPE(0, 4), NULL, 0);
    EXPECT(state, "base", TN_F32, TN_SHAPE(3, 4), float, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    EXPECT(state, "base.transposed", TN_F32, TN_SHAPE(4, 3), float, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3,
           7, 11);
    EXPECT(state, "base.middle", TN_F32, TN_SHAPE(2, 2), float, 5, 6, 9, 10);
    EXPECT(state, "base.again", TN_F32, TN_SHAPE(3, 4), float, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
           11);
    EXPECT(state, "spread", TN_F32, TN_SHAPE(2, 3), float, 7, 7, 7, 7, 7, 7);
    EXPECT(state, "parameter", TN_F32, TN_SHAPE(1), float, 9);
    EXPECT(state, "größe", TN_F32, TN_SHAPE(1), float, 1);
}

/* SER-002: what shared memory shares it again, with its strides and its offset. */
static void expect_shared(const tn_state *state)
{
    tn_tensor *base = tensor_of(state, "base"), *middle = tensor_of(state, "base.middle"),
              *turned = tensor_of(state, "base.transposed");
    ck_assert(tn_tensor_shares_storage(base, turned));
    ck_assert(tn_tensor_shares_storage(base, middle));
    ck_assert(tn_tensor_shares_storage(base, tensor_of(state, "base.again")));
    ck_assert(!tn_tensor_shares_storage(base, tensor_of(state, "float32")));
    ck_assert_int_eq(tn_tensor_strides(turned).at[0], 1);
    ck_assert_int_eq(tn_tensor_strides(turned).at[1], 4);
    ck_assert_int_eq(tn_tensor_offset(middle), 5);
    ck_assert_int_eq(tn_tensor_strides(middle).at[0], 4);
    ck_assert_int_eq(tn_tensor_strides(tensor_of(state, "spread")).at[0], 0);
    ck_assert_uint_eq(tn_tensor_storage_size(tensor_of(state, "spread")), 4);
    *(float *)tn_tensor_data(middle) = 50;
    EXPECT(state, "base", TN_F32, TN_SHAPE(3, 4), float, 0, 1, 2, 3, 4, 50, 6, 7, 8, 9, 10, 11);
}

START_TEST(every_type_stride_and_shared_storage_of_a_state_dict_reads_to_the_bit)
{
    static const char *const names[] = { "pytorch.pt", "pytorch-old.pt", "pytorch-old3.pt",
                                         "pytorch-old4.pt", "pytorch-old5.pt" };
    for (int64_t i = 0; i < tn__countof(names); i++) {
        char path[4096];
        tn_snprint(path, sizeof path, FILES "%s", names[i]);
        tn_state *state = loaded(path);
        expect_all(state);
        expect_shared(state);
        ck_assert(!tn_tensor_requires_grad(tensor_of(state, "parameter")));
        tn_state_drop(state);
    }
    TN_PROVES("SER-002");
}
END_TEST

static void expect_checkpoint(const char *path)
{
    tn_state *state = loaded(path);
    ck_assert_str_eq(tn_state_name(state, 0), "net.fc.weight");
    EXPECT(state, "net.fc.weight", TN_F32, TN_SHAPE(1, 2), float, 0, 1);
    EXPECT(state, "net.fc.bias", TN_F32, TN_SHAPE(1), float, 10);
    EXPECT(state, "net.bn.weight", TN_F32, TN_SHAPE(1), float, 20);
    EXPECT(state, "net.bn.num_batches_tracked", TN_I64, TN_SCALAR_SHAPE, int64_t, 1);
    EXPECT(state, "optimizer.state.3.momentum_buffer", TN_F32, TN_SHAPE(1), float, 2);
    EXPECT(state, "list.0", TN_F32, TN_SHAPE(1), float, 1);
    EXPECT(state, "list.1.inner", TN_I64, TN_SHAPE(1), int64_t, 2);
    expect_value(state, "optimizer.param_groups.0.lr", TN_VALUE_FLOAT, "0.125");
    expect_value(state, "optimizer.param_groups.0.nesterov", TN_VALUE_BOOL, "False");
    expect_value(state, "optimizer.param_groups.0.params", TN_VALUE_LIST, "[0, 1, 2, 3]");
    expect_value(state, "epoch", TN_VALUE_INT, "7");
    expect_value(state, "loss", TN_VALUE_FLOAT, "0.25");
    expect_value(state, "best", TN_VALUE_NONE, "None");
    expect_value(state, "note", TN_VALUE_STRING, "'it\\'s a \"text\"'");
    expect_value(state, "size", TN_VALUE_TUPLE, "(2, 3)");
    expect_value(state, "classes", TN_VALUE_LIST, "['cat', 'dog', ('a', 1)]");
    expect_value(state, "counter.3", TN_VALUE_INT, "1");
    tn_value bytes = tn_state_value(state, tn_state_find(state, "bytes"));
    ck_assert_uint_eq(bytes.kind, TN_VALUE_BYTES);
    ck_assert_uint_eq(bytes.count, 3);
    ck_assert_mem_eq(bytes.as.s, "a\0\xff", 3);
    expect_value(state, "device", TN_VALUE_STRING, "'cpu'");
    expect_meta(state, "dtype", "torch.float16");
    expect_meta(state, "large", "0x400000000000000000");
    expect_meta(state, "less", "-0x400000000000000000");
    expect_meta(state, "complex", "(1.0-2.0j)");
    expect_meta(state, "set", "{4}");
    expect_meta(state, "none", "{}");
    ck_assert_int_eq(tn_state_version(state, "net"), 1);
    ck_assert_int_eq(tn_state_version(state, "net.fc"), 1);
    ck_assert_int_eq(tn_state_version(state, "net.bn"), 2);
    ck_assert_int_eq(tn_state_version_count(state), 3);
    tn_state_drop(state);
}

START_TEST(a_checkpoint_becomes_dotted_names_with_values_and_versions)
{
    expect_checkpoint(FILES "pytorch-checkpoint.pt");
    expect_checkpoint(FILES "pytorch-protocol4.pt");
}
END_TEST

#ifdef TN_WITH_ZLIB
START_TEST(an_archive_that_was_packed_again_reads_the_same)
{
    expect_checkpoint(FILES "pytorch-deflated.pt");
}
END_TEST
#endif

START_TEST(a_file_of_one_tensor_or_a_list_gets_names)
{
    tn_state *state = loaded(FILES "pytorch-bare.pt");
    ck_assert_int_eq(tn_state_count(state), 1);
    EXPECT(state, "tensor", TN_F32, TN_SHAPE(2), float, 1, 2);
    tn_state_drop(state);
    state = loaded(FILES "pytorch-list.pt");
    ck_assert_int_eq(tn_state_count(state), 2);
    EXPECT(state, "0", TN_I64, TN_SHAPE(1), int64_t, 1);
    EXPECT(state, "1", TN_F32, TN_SHAPE(1), float, 5);
    tn_state_drop(state);
    state = loaded(FILES "pytorch-no-sums.pt");
    EXPECT(state, "w", TN_F32, TN_SHAPE(2), float, 1, 2);
    tn_state_drop(state);
}
END_TEST

START_TEST(a_network_takes_the_weights_of_its_file)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(2, 1))");
    float y = 0;
    tn_state *file = loaded(FILES "pytorch-checkpoint.pt"), *state = tn_state_new();
    tn_state_set(state, "0.weight", tensor_of(file, "net.fc.weight"));
    tn_state_set(state, "0.bias", tensor_of(file, "net.fc.bias"));
    ck_assert_int_eq(tn_module_load_state(net, state, true), TN_OK);
    tn_tensor_copy_out(tn_module_call(net, tn_tensor_full(TN_SHAPE(1, 2), 3, TN_F32, NULL)), &y, 4);
    ck_assert(y == 13);
    tn_state_drop(file);
    tn_state_drop(state);
    tn_module_drop(net);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(whatever_is_not_data_is_refused_by_name_and_nothing_is_called)
{
    static const struct {
        const char *file;
        tn_status code;
        const char *words;
    } cases[] = {
        { "system.pt", TN_ERR_REFUSED, "posix.system: not data" },
        { "class.pt", TN_ERR_REFUSED, "__main__.Plain: not data" },
        { "module.pt", TN_ERR_REFUSED, "torch.nn.modules.container.Sequential: not data" },
        { "sparse.pt", TN_ERR_REFUSED, "torch._utils._rebuild_sparse_tensor: not data" },
        { "meta.pt", TN_ERR_REFUSED, "_rebuild_meta_tensor_no_storage: not data" },
        { "numpy.pt", TN_ERR_REFUSED, ".multiarray.scalar: not data" },
        { "dtype.pt", TN_ERR_REFUSED, "torch.float8_e4m3fnuz: not data" },
        { "conj.pt", TN_ERR_FORMAT, "save tensor.resolve_conj()" },
        { "big.pt", TN_ERR_FORMAT, "wrong byte order, got \"big\"" },
        { "big-old.pt", TN_ERR_FORMAT, "wrong byte order, got big-endian" },
        { "protocol0-old.pt", TN_ERR_REFUSED, "INT of protocol 0" },
        { "protocol1-old.pt", TN_ERR_REFUSED, "INT of protocol 0" },
        { "version.pt", TN_ERR_VERSION,
          "PyTorch file: unknown version, got \"11\"; expected at most 10" },
    };
    for (int64_t i = 0; i < tn__countof(cases); i++) {
        char path[4096];
        tn_snprint(path, sizeof path, FILES "refused-%s", cases[i].file);
        ck_assert_msg(tn_state_load(path) == NULL, "%s", path);
        expect_failure(cases[i].code, cases[i].words);
    }
    tn_state *state = tn_state_new();
    ck_assert_int_eq(tn_state_save(state, "not.pt"), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "not.pt: format pytorch: can be read, not written");
    tn_state_drop(state);
    TN_PROVES("SER-007");
}
END_TEST

/* ---- hostile pickles in a legacy file -------------------------------------------------------- */

#define MAGIC "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define START                                                                                      \
    MAGIC "\x80\2M\xe9\3."                                                                         \
          "}."
/* ('storage', torch.FloatStorage, 'k', 'cpu', 2) */
#define STORAGE "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpuK\2tQ"
#define KEYS "]X\1\0\0\0ka."
#define DATA "\2\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40"
#define TENSOR(offset, shape, strides)                                                             \
    "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE offset shape strides "\x89NtR"

static void judge(const char *bytes, size_t size, const char *words)
{
    tn_state *state = tn_state_new();
    tn_status status = load_memory_as("pytorch", bytes, size, state);
    if (words == NULL) {
        ck_assert_msg(status == TN_OK, "%s", tn_error_text());
    } else {
        ck_assert_msg(status == TN_ERR_FORMAT || status == TN_ERR_REFUSED, "%s: %d %s", words,
                      (int)status, tn_error_text());
        ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in \"%s\"", words,
                      tn_error_text());
    }
    tn_error_clear();
    tn_state_drop(state);
}

#define JUDGE(pickle, words) judge(START pickle, sizeof(START pickle) - 1, words)
#define JUDGE_TENSOR(offset, shape, strides, words)                                                \
    JUDGE(TENSOR(offset, shape, strides) "." KEYS DATA, words)

/* A list that names one long text again and again: each name is two bytes. */
START_TEST(texts_that_are_shared_are_counted_as_often_as_they_are_named)
{
    enum { LONG = 1 << 20, TIMES = 300 };
    static const char begin[] = START "](X\0\0\x10\0", memo[] = "q\1", end[] = "e.].";
    size_t size = 0;
    char *bytes = malloc(sizeof begin + LONG + 2 * TIMES + 16);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, begin, sizeof begin - 1);
    size += sizeof begin - 1;
    memset(bytes + size, 'a', LONG);
    size += LONG;
    memcpy(bytes + size, memo, 2);
    size += 2;
    size_t few = size;
    for (int times = 2; times <= TIMES; times += TIMES - 2) {
        size = few;
        for (int i = 1; i < times; i++, size += 2)
            memcpy(bytes + size, "h\1", 2);
        memcpy(bytes + size, end, sizeof end - 1);
        judge(bytes, size + sizeof end - 1,
              times == 2 ? NULL : "values: too large; expected at most 268435456 bytes");
    }
    free(bytes);
}
END_TEST

START_TEST(hostile_pickles_are_refused_with_words)
{
    JUDGE_TENSOR("K\0", "K\2\x85", "K\1\x85", NULL);
    JUDGE_TENSOR("K\1", "K\1\x85", "K\7\x85", NULL);
    JUDGE_TENSOR("K\2", "K\0\x85", "K\1\x85", NULL);
    JUDGE_TENSOR(
        "K\1", "K\2\x85", "K\1\x85",
        "beyond its storage; expected sizes, strides and offset within the storage's 2 elements");
    JUDGE_TENSOR("K\0", "K\2\x85", "K\2\x85", "beyond its storage");
    JUDGE_TENSOR("K\3", "K\0\x85", "K\1\x85", "beyond its storage");
    JUDGE_TENSOR("K\0", "J\xff\xff\xff\xff\x85", "K\1\x85", "tensor: wrong arguments");
    JUDGE_TENSOR("K\0", "K\2\x85", "J\xff\xff\xff\xff\x85", "tensor: wrong arguments");
    JUDGE_TENSOR("J\xff\xff\xff\xff", "K\2\x85", "K\1\x85", "tensor: wrong arguments");
    JUDGE_TENSOR("K\0", "K\2\x85", "K\1K\1\x86", "tensor: wrong arguments");
    JUDGE_TENSOR("K\0", "]K\2a", "K\1\x85", "tensor: wrong arguments"); /* lists may change */
    JUDGE_TENSOR(
        "K\0",
        "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x86",
        "K\0K\0\x86", "beyond its storage");
    /* Elements that share memory: a kilobyte may not expand to a terabyte. */
    JUDGE_TENSOR("K\0", "\x8a\x06\0\0\0\0\0\1\x85", "K\0\x85", "TENON_FORMATS_UNPACKED_MAX");
    JUDGE(TENSOR("K\0", "K\2\x85", "K\1\x85") "." KEYS "\1\0\0\0\0\0\0\0\0\0\x80\x3f",
          "storage k: inconsistent size, got 1 elements; expected 2");
    JUDGE(TENSOR("K\0", "K\2\x85", "K\1\x85") "." KEYS "\2\0\0\0\0\0\0\0\0\0\x80",
          "storage k: truncated, got 3 bytes in the file; expected 8");
    JUDGE(TENSOR("K\0", "K\2\x85", "K\1\x85") "." KEYS DATA "x", "storages: wrong size");
    JUDGE(TENSOR("K\0", "K\2\x85", "K\1\x85") "."
                                              "]." DATA,
          "storage k: its bytes are missing");
    JUDGE(TENSOR("K\0", "K\2\x85", "K\1\x85") "."
                                              "]X\1\0\0\0kaX\1\0\0\0ka." DATA DATA,
          "occurs twice");
    JUDGE("cos\nsystem\n.].", "os.system: not data");
    JUDGE("\x8c\2os\x8c\6system\x93.].", "os.system: not data");
    JUDGE("(cos\nsystem\n.].", "os.system: not data");
    JUDGE("(ios\nsystem\n.].", "opcode INST: not supported");
    JUDGE("(o.].", "opcode OBJ: not supported");
    JUDGE("ccollections\nOrderedDict\n)\x81.].", "opcode NEWOBJ: not supported");
    JUDGE("I1\n.].", "opcode INT of protocol 0: not supported");
    JUDGE("\xff.].", "unknown opcode, got ff");
    JUDGE(".].", "stack: too few values");
    JUDGE("K\1K\2.].", "stack: several values at the end");
    JUDGE("(K\1.].", "stack: a mark is left");
    JUDGE("t.].", "mark: missing");
    JUDGE("K\1(\x85.].", "stack: too few values"); /* what is below a mark is out of reach */
    JUDGE("K\1K\1a.].", "append: wrong type, got an integer; expected a list");
    JUDGE(")K\1a.].", "append: wrong type, got a tuple; expected a list");
    JUDGE("}K\1a.].", "append: wrong type, got a dictionary; expected a list");
    JUDGE("}(K\1u.].", "key: without a value");
    JUDGE("(K\1d.].", "key: without a value");
    JUDGE("h\0.].", "index of the memo: not defined");
    JUDGE("Nr\xff\xff\xff\xff.].", "index of the memo: too large");
    JUDGE("K\1)R.].", "call: wrong type, got an integer; expected a name");
    JUDGE("ccollections\nOrderedDict\n]R.].",
          "arguments of a call: wrong type, got a list; expected a tuple");
    JUDGE("ccollections\nOrderedDict\nK\1\x85R.].",
          "OrderedDict: wrong arguments; expected a list");
    JUDGE("ctorch\nFloatStorage\n)R.].", "torch.FloatStorage: wrong arguments");
    JUDGE("]}b.].", "attributes: owner: wrong type, got a list");
    JUDGE("K\1Q.].", "external object: wrong arguments; expected a storage");
    JUDGE("}K\1ctorch\nfloat32\ns.].", NULL);
    JUDGE("}K\1ctorch\nTensor\ns.].",
          "wrong type, got a storage, a type or a function; expected a value");
    JUDGE("}NNs.].", "expected a string or an integer");
    JUDGE("}X\1\0\0\0aK\1sX\1\0\0\0aK\1s.].", "name \"a\": occurs twice");
    JUDGE("}X\1\0\0\0\0K\1s.].", "contains a NUL");
    JUDGE("X\xff\xff\xff\x7f.", "truncated");
    JUDGE("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "truncated");
    JUDGE("]q\0h\0a.].", "nested too deep, or recursive; expected at most 64 levels");
    judge(MAGIC "\x80\2M\xe8\3.", sizeof MAGIC - 1 + 7,
          "PyTorch file: unknown protocol, got 1000; expected 1001");
}
END_TEST

START_TEST(values_that_are_shared_do_not_unfold_without_end)
{
    /* [[[1, 1], [1, 1]], ...]: 40 lists, 2^40 values when written out. */
    char bytes[512] = START "K\1";
    size_t size = sizeof(START "K\1") - 1;
    for (int i = 0; i < 40; i++) {
        memcpy(bytes + size, "q\0h\0\x86", 5);
        size += 5;
    }
    memcpy(bytes + size, ".].", 3);
    judge(bytes, size + 3, "values: too many; expected at most 16777216");
}
END_TEST

START_TEST(a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads)
{
    cut_and_change("pytorch", FILES "pytorch-bare.pt");
    cut_and_change("pytorch", FILES "pytorch-checkpoint.pt");
    cut_and_change("pytorch", FILES "pytorch-old.pt");
    cut_and_change("pytorch", FILES "pytorch-old4.pt");
    TN_PROVES("SER-005");
}
END_TEST

START_TEST(a_small_file_with_any_byte_at_any_place_is_an_error_or_loads)
{
    change_to_anything("pytorch", FILES "pytorch-small-old.pt");
    change_to_anything("pytorch", FILES "refused-version.pt");
}
END_TEST

START_TEST(each_allocation_that_fails_is_an_error_and_nothing_is_left)
{
    fail_allocations(FILES "pytorch-checkpoint.pt");
    fail_allocations(FILES "pytorch-small-old.pt");
    fail_allocations(FILES "refused-module.pt");
#ifdef TN_WITH_ZLIB
    fail_allocations(FILES "pytorch-deflated.pt");
#endif
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_type_stride_and_shared_storage_of_a_state_dict_reads_to_the_bit,
        a_checkpoint_becomes_dotted_names_with_values_and_versions,
#ifdef TN_WITH_ZLIB
        an_archive_that_was_packed_again_reads_the_same,
#endif
        a_file_of_one_tensor_or_a_list_gets_names,
        a_network_takes_the_weights_of_its_file,
        whatever_is_not_data_is_refused_by_name_and_nothing_is_called,
        texts_that_are_shared_are_counted_as_often_as_they_are_named,
        hostile_pickles_are_refused_with_words,
        values_that_are_shared_do_not_unfold_without_end,
        a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads,
        a_small_file_with_any_byte_at_any_place_is_an_error_or_loads,
        each_allocation_that_fails_is_an_error_and_nothing_is_left,
        NULL,
    };
    return suite_run("pytorch", tests);
}
