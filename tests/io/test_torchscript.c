/* SPDX-License-Identifier: MIT
 *
 * Archives of torch.jit.save (make_torchscript.py) in the format "pytorch": attributes are read as
 * data, code is not; hostile archives. */
#include "tests/base/suite.h"

#include "tests/io/memory.h"
#include "tests/io/state_values.h"

START_TEST(tensors_have_the_paths_of_their_attributes)
{
    tn_state *state = loaded(FILES "torchscript.pt");
    ck_assert_int_eq(tn_state_count(state), 7);
    EXPECT(state, "part.lin.weight", TN_F32, TN_SHAPE(2, 3), float, 0, 1, 2, 3, 4, 5);
    EXPECT(state, "part.lin.bias", TN_F32, TN_SHAPE(2), float, 10, 11);
    EXPECT(state, "part.buf", TN_F32, TN_SHAPE(4), float, 0, 1, 2, 3);
    EXPECT(state, "list.0", TN_F32, TN_SHAPE(2), float, 1, 1);
    EXPECT(state, "list.1", TN_F32, TN_SHAPE(3), float, 0, 0, 0);
    ck_assert(tn_tensor_shares_storage(tensor_of(state, "part.lin.weight"),
                                       tensor_of(state, "tied.weight")));
    /* Attributes without tensors are texts. */
    ck_assert_int_eq(tn_state_meta_count(state), 4);
    ck_assert_str_eq(tn_state_meta(state, "part.scale"), "2.5");
    ck_assert_str_eq(tn_state_meta(state, "part.names"), "['a', 'b']");
    ck_assert_str_eq(tn_state_meta(state, "part.sizes"), "[1, 2]");
    ck_assert_str_eq(tn_state_meta(state, "part.table"), "{'x': 1}");
    tn_state_drop(state);
}
END_TEST

START_TEST(a_module_takes_the_weights_of_an_archive)
{
    TN_SCOPE;
    tn_module *net = tn_module_parse("Sequential(part=Sequential(lin=Linear(3, 2)), "
                                     "tied=Linear(3, 2))");
    tn_state *state = loaded(FILES "torchscript.pt");
    static const char *const more[] = { "list.0", "list.1", "part.buf" };
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(tn_state_remove(state, more[i]), TN_OK);
    ck_assert_msg(tn_module_load_state(net, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_double_eq(tn_item(tn_sum(tn_module_find_tensor(net, "tied.weight"))), 15);
    tn_state_drop(state);
    tn_module_drop(net);
}
END_TEST

START_TEST(constants_have_the_names_that_the_code_uses)
{
    tn_state *state = loaded(FILES "torchscript-frozen.pt");
    ck_assert_int_eq(tn_state_count(state), 5);
    EXPECT(state, "CONSTANTS.c0", TN_F32, TN_SHAPE(2, 3), float, 0, 1, 2, 3, 4, 5);
    EXPECT(state, "CONSTANTS.c1", TN_F32, TN_SHAPE(2), float, 10, 11);
    tn_state_drop(state);
}
END_TEST

/* ---- hostile archives ------------------------------------------------------------------------ */

struct archive {
    char bytes[8192];
    char directory[2048];
    size_t size, listed;
    int members;
};

static void put_number(char **at, uint32_t number, int size)
{
    for (int i = 0; i < size; i++)
        *(*at)++ = (char)(number >> 8 * i);
}

/* Adds a stored member without a check sum. */
static void put_member(struct archive *a, const char *name, const char *bytes, size_t size)
{
    for (int both = 0; both < 2; both++) {
        char *begin = both ? a->directory + a->listed : a->bytes + a->size, *at = begin;
        uint32_t header = (uint32_t)(a->size - (both ? 30 + strlen(name) + size : 0));
        put_number(&at, both ? 0x02014b50 : 0x04034b50, 4);
        put_number(&at, 20, both ? 4 : 2); /* versions */
        put_number(&at, 0, 4);             /* flags, method */
        put_number(&at, 0, 4);             /* time */
        put_number(&at, 0, 4);             /* check sum */
        put_number(&at, (uint32_t)size, 4);
        put_number(&at, (uint32_t)size, 4);
        put_number(&at, (uint32_t)strlen(name), 4); /* and no extra field */
        if (both) {
            put_number(&at, 0, 4);
            put_number(&at, 0, 4);
            put_number(&at, 0, 2);
            put_number(&at, header, 4);
        }
        memcpy(at, name, strlen(name));
        at += strlen(name);
        if (both) {
            a->listed += (size_t)(at - begin);
        } else {
            memcpy(at, bytes, size);
            a->size += (size_t)(at + size - begin);
        }
    }
    a->members++;
    ck_assert_uint_lt(a->size, sizeof a->bytes / 2);
}

static void put_end(struct archive *a)
{
    size_t directory = a->size;
    memcpy(a->bytes + a->size, a->directory, a->listed);
    char *at = a->bytes + a->size + a->listed;
    put_number(&at, 0x06054b50, 4);
    put_number(&at, 0, 4);
    put_number(&at, (uint32_t)(a->members | a->members << 16), 4);
    put_number(&at, (uint32_t)a->listed, 4);
    put_number(&at, (uint32_t)directory, 4);
    put_number(&at, 0, 2);
    a->size = (size_t)(at - a->bytes);
}

/* Loads an archive with these two pickles (`constants` NULL: only the first). Expects an error
 * whose message contains `words`; if `words` is NULL, expects that the load succeeds. */
static void judge(const char *data, size_t data_size, const char *constants, size_t constants_size,
                  const char *words)
{
    struct archive a = { .size = 0 };
    put_member(&a, "a/data.pkl", data, data_size);
    put_member(&a, "a/data/0", "\0\0\x80\x3f", 4);
    if (constants != NULL)
        put_member(&a, "a/constants.pkl", constants, constants_size);
    put_end(&a);
    tn_state *state = tn_state_new();
    tn_status status = load_memory_as("pytorch", a.bytes, a.size, state);
    if (words == NULL)
        ck_assert_msg(status == TN_OK, "%s", tn_error_text());
    else
        ck_assert_msg((status == TN_ERR_FORMAT || status == TN_ERR_REFUSED) &&
                          strstr(tn_error_text(), words) != NULL,
                      "\"%s\" is not in \"%s\"", words, tn_error_text());
    tn_error_clear();
    tn_state_drop(state);
}

#define JUDGE_BOTH(data, constants, words)                                                         \
    judge("\x80\2" data ".", sizeof("\x80\2" data ".") - 1, "\x80\2" constants ".",                \
          sizeof("\x80\2" constants ".") - 1, words)
#define JUDGE(data, words) JUDGE_BOTH(data, ")", words)
#define NET "c__torch__.a.b\nNet\n)\x81"
#define TENSOR(key)                                                                                \
    "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" key     \
    "X\3\0\0\0cpuK\1tQK\0K\1\x85K\1\x85\x89NtR"
#define KEY "X\1\0\0\0k"

START_TEST(hostile_archives_are_refused_with_words)
{
    JUDGE(NET "}" KEY TENSOR("0") "sb", NULL);
    JUDGE(NET, NULL);
    /* Without constants.pkl an archive is none of TorchScript. */
    judge("\x80\2" NET ".", sizeof("\x80\2" NET ".") - 1, NULL, 0, "__torch__.a.b.Net: not data");
    JUDGE("cos\nsystem\n)\x81", "os.system: not data");
    JUDGE("c__torch__x\nNet\n)\x81", "__torch__x.Net: not data");
    JUDGE("ctorch.jit._pickle\nbuild\n)R", "torch.jit._pickle.build: not data");
    JUDGE("c__torch__\nNet\n)R", "__torch__.a class: wrong arguments");
    JUDGE("c__torch__\nNet\nK\1\x85\x81", "new object: arguments: given; expected none");
    JUDGE("c__torch__\nNet\n]\x81", "new object: arguments: wrong type, got a list");
    JUDGE("ccollections\nOrderedDict\n)\x81", "new object: wrong type");
    JUDGE("K\1)\x81", "new object: wrong type, got an integer; expected a class");
    JUDGE(")\x81", "stack: too few values");
    JUDGE(NET "K\1\x85"
              "b",
          "attributes of an object: wrong type, got a tuple; expected a dictionary");
    JUDGE(NET "}b}b", "attributes: set twice");
    JUDGE(NET "}K\1Nsb", NULL);
    JUDGE(NET "}NK\1sb", "expected a string or an integer");
    JUDGE(NET "}" KEY "K\1s" KEY "K\2sb", "name \"k\": occurs twice");
    JUDGE(NET "}" KEY TENSOR("0") "s" KEY TENSOR("0") "sb", "name \"k\": occurs twice");
    JUDGE(NET "}" KEY TENSOR("1") "sb", "storage \"a/data/1\": missing");
    JUDGE(NET "}" KEY "c__torch__\nNet\nsb", "wrong type, got a storage, a type or a function");
    JUDGE("ctorch.jit._pickle\nbuild_intlist\nK\1\x85R", "build_intlist: wrong arguments");
    JUDGE("ctorch.jit._pickle\nrestore_type_tag\n)R", "restore_type_tag: wrong arguments");
    /* Objects that contain themselves, directly and in a list or a dictionary. */
    JUDGE(NET "q\0}" KEY "h\0sb", "nested too deep, or recursive");
    JUDGE(NET "q\0}" KEY "]h\0asb", "nested too deep, or recursive");
    JUDGE(NET "}" KEY "}q\0K\1h\0ssb", "nested too deep, or recursive");
    JUDGE_BOTH(NET, "K\1", "constants: wrong type, got an integer; expected a tuple of tensors");
    JUDGE_BOTH(NET, NET "\x85", "constants: wrong type, got an object; expected tensors");
    JUDGE_BOTH(NET, "K\1\x85", NULL);
    JUDGE_BOTH(NET, "cos\nsystem\n\x85", "os.system: not data");
    JUDGE_BOTH(NET, TENSOR("0") "\x85", "storage \"a/constants/0\": missing");
    JUDGE_BOTH(NET "}X\x0c\0\0\0CONSTANTS.c0K\1sb", "K\1\x85", "occurs twice");
}
END_TEST

START_TEST(objects_that_are_shared_do_not_unfold_without_end)
{
    /* 40 objects with twice the object before, 2^40 tensors when written out. */
    char bytes[2048] = "\x80\2" NET "q\0";
    size_t size = sizeof("\x80\2" NET "q\0") - 1;
    static const char level[] = "0" NET "}X\1\0\0\0ah\0sX\1\0\0\0bh\0sbq\0";
    for (int i = 0; i < 40; i++) {
        memcpy(bytes + size, level, sizeof level - 1);
        size += sizeof level - 1;
    }
    bytes[size++] = '.';
    judge(bytes, size, "\x80\2).", 4, "values: too many; expected at most 16777216");
}
END_TEST

START_TEST(an_archive_cut_or_changed_anywhere_is_an_error_or_loads)
{
    cut_and_change("pytorch", FILES "torchscript.pt");
}
END_TEST

START_TEST(each_allocation_that_fails_is_an_error_and_nothing_is_left)
{
    fail_allocations(FILES "torchscript.pt");
    fail_allocations(FILES "torchscript-frozen.pt");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tensors_have_the_paths_of_their_attributes,
        a_module_takes_the_weights_of_an_archive,
        constants_have_the_names_that_the_code_uses,
        hostile_archives_are_refused_with_words,
        objects_that_are_shared_do_not_unfold_without_end,
        an_archive_cut_or_changed_anywhere_is_an_error_or_loads,
        each_allocation_that_fails_is_an_error_and_nothing_is_left,
        NULL,
    };
    return suite_run("torchscript", tests);
}
