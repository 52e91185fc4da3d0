/* SPDX-License-Identifier: MIT
 *
 * TextBytes and TextBPE; the tokens are those of transformers (bpe_ids.h). Hostile vocabularies. */
#include "tests/base/suite.h"
#include "tests/folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include "bpe_ids.h"

enum { IDS = sizeof bpe_ids / sizeof *bpe_ids };

static char folder[64];

static const char *inside(const char *name)
{
    static char path[2][128];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(inside(name), "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/tenon-text-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    unlink(inside("t"));
    unlink(inside("vocab.json"));
    unlink(inside("merges.txt"));
    ck_assert_int_eq(rmdir(folder), 0);
}

static void refused(tn_dataset *dataset, const char *words)
{
    ck_assert_ptr_null(dataset);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in \"%s\"", words,
                  tn_error_text());
    tn_error_clear();
}

/* Entry `entry` of a sample must be `count` numbers. */
static void has(tn_dataset *dataset, int64_t index, int64_t entry, const int64_t *numbers,
                int64_t count)
{
    TN_SCOPE;
    tn_pack *pack = tn_pack_new();
    const int64_t *got;

    ck_assert_msg(tn_dataset_get(dataset, index, 0, 0, pack) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_pack_count(pack), 2);
    ck_assert_int_eq(tn_tensor_dtype(tn_pack_tensor(pack, entry)), TN_I64);
    ck_assert_int_eq(tn_tensor_numel(tn_pack_tensor(pack, entry)), count);
    got = tn_tensor_data(tn_pack_tensor(pack, entry));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(got[i] == numbers[i], "sample %d: number %d is %d, expected %d", (int)index,
                      (int)i, (int)got[i], (int)numbers[i]);
    tn_pack_drop(pack);
}

START_TEST(bytes_are_windows_with_the_next_byte)
{
    static const int64_t x[] = { 'c', 'd', 'e' }, y[] = { 'd', 'e', 'f' },
                         last[] = { 'g', 'h', 255 };
    tn_dataset *dataset;

    make_folder();
    write_bytes("t", "abcdefgh\xFF", 9);
    dataset = tn_dataset_new("TextBytes(%q, length=3, stride=2)", inside("t"));
    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_dataset_count(dataset), 3);
    ck_assert_int_eq(tn_dataset_classes(dataset), 256);
    has(dataset, 1, 0, x, 3);
    has(dataset, 1, 1, y, 3);
    tn_dataset_drop(dataset);
    dataset = tn_dataset_new("TextBytes(%q, length=3, stride=5)", inside("t"));
    ck_assert_int_eq(tn_dataset_count(dataset), 2);
    has(dataset, 1, 1, last, 3);
    tn_dataset_drop(dataset);
    dataset = tn_dataset_new("TextBytes(%q, length=8)", inside("t"));
    ck_assert_int_eq(tn_dataset_count(dataset), 1);
    tn_dataset_drop(dataset);
    refused(tn_dataset_new("TextBytes(%q, length=9)", inside("t")),
            "too short, got 9 bytes; expected at least length + 1 = 10");
    refused(tn_dataset_new("TextBytes(%q, length=0)", inside("t")), "length: out of range, got 0");
    refused(tn_dataset_new("TextBytes(%q, length=1, stride=0)", inside("t")),
            "stride: out of range, got 0");
    write_bytes("t", "", 0);
    refused(tn_dataset_new("TextBytes(%q, length=1)", inside("t")), "too short, got 0 bytes");
    remove_folder();
}
END_TEST

START_TEST(tokens_are_those_of_transformers)
{
    char text[TEST_PATH], vocabulary[TEST_PATH];
    tn_dataset *dataset;

    source_path(text, "tests/data/files/text.txt");
    source_path(vocabulary, "tests/data/files/bpe");
    dataset = tn_dataset_new("TextBPE(%q, vocabulary=%q, length=%d)", text, vocabulary, IDS - 1);
    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_dataset_count(dataset), 1);
    ck_assert_int_eq(tn_dataset_classes(dataset), 420);
    has(dataset, 0, 0, bpe_ids, IDS - 1);
    has(dataset, 0, 1, bpe_ids + 1, IDS - 1);
    tn_dataset_drop(dataset);
    dataset = tn_dataset_new("TextBPE(%q, %q, length=10, stride=7)", text, vocabulary);
    has(dataset, 3, 1, bpe_ids + 22, 10);
    tn_dataset_drop(dataset);
    refused(tn_dataset_new("TextBPE(%q, %q, length=%d)", text, vocabulary, IDS),
            "tokens; expected at least length + 1");
}
END_TEST

START_TEST(damaged_vocabularies_are_refused)
{
    static const struct {
        const char *tokens, *merges, *text, *words;
    } wrong[] = {
        { "", "", "a", "byte 0: no JSON object" },
        { "[]", "", "a", "byte 0: no JSON object" },
        { "{\"a\":0", "", "a", "no comma after the number" },
        { "{\"a\":0,}", "", "a", "no text" },
        { "{\"a\" 0}", "", "a", "no colon" },
        { "{\"a\":-1}", "", "a", "no number" },
        { "{\"a\":\"b\"}", "", "a", "no number" },
        { "{\"a\":99999999999}", "", "a", "too large" },
        { "{\"a\":0,\"\\u0061\":1}", "", "a", "the token occurs twice" },
        { "{\"a\\x\":0}", "", "a", "wrong escape" },
        { "{\"a\\u12\":0}", "", "a", "wrong escape" },
        { "{\"a", "", "a", "the text has no end" },
        { "{\"a\":0} x", "", "a", "text after the end" },
        { "{\"a\":0,\"b\":1}", "a\n", "a", "no merge" },
        { "{\"a\":0,\"b\":1}", "a b\n", "a", "together are not in the vocabulary" },
        { "{\"a\":0,\"b\":1}", "a c\n", "a", "second token of a merge is not in" },
        { "{\"a\":0,\"b\":1,\"ab\":2}", "a b\n", "abc", "no token for byte 99" },
        { "{\"a\":0}", "", "a\xFF", "byte 1: not UTF-8" },
        { "{\"a\":0}", "", "a\xED\xA0\x80", "byte 1: not UTF-8" },
        { "{\"a\":0}", "", "\xC0\x80", "byte 0: not UTF-8" },
        { "{\"a\":0}", "", "aa\xF0\x9F\x99", "byte 2: not UTF-8" },
        { "{\"\xFF\":0}", "", "a", "byte 2: not UTF-8" },
        { "{}", "", "", "too short, got 0 tokens" },
    };
    static const char good[] = "{ \"a\" : 0 , \"b\":1, \"\\u0061b\":2, \"\\u4e2d\": 7 }";
    static const char merges[] = "#version: 0.2\r\na b\r\n";
    static const int64_t joined[] = { 2, 0, 2 };
    tn_dataset *dataset;

    make_folder();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_bytes("vocab.json", wrong[i].tokens, strlen(wrong[i].tokens));
        write_bytes("merges.txt", wrong[i].merges, strlen(wrong[i].merges));
        write_bytes("t", wrong[i].text, strlen(wrong[i].text));
        refused(tn_dataset_new("TextBPE(%q, %q, length=1)", inside("t"), folder), wrong[i].words);
    }
    write_bytes("vocab.json", good, sizeof good - 1);
    write_bytes("merges.txt", merges, sizeof merges - 1);
    write_bytes("t", "abaab", 5);
    dataset = tn_dataset_new("TextBPE(%q, %q, length=2)", inside("t"), folder);
    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_dataset_classes(dataset), 8);
    has(dataset, 0, 0, joined, 2);
    has(dataset, 0, 1, joined + 1, 2);
    tn_dataset_drop(dataset);
    unlink(inside("merges.txt"));
    refused(tn_dataset_new("TextBPE(%q, %q, length=1)", inside("t"), folder),
            "merges.txt: cannot be opened");
    remove_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bytes_are_windows_with_the_next_byte,
        tokens_are_those_of_transformers,
        damaged_vocabularies_are_refused,
        NULL,
    };
    return suite_run("texts", tests);
}
