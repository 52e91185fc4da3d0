/* SPDX-License-Identifier: MIT
 *
 * Host memory, texts that grow, arenas, and names. */
#include "tests/base/suite.h"

#include <sys/wait.h>
#include <unistd.h>

START_TEST(memory_comes_zeroed_resized_and_of_size_zero)
{
    char *block = tn_calloc(3, 5);

    for (int i = 0; i < 15; i++)
        ck_assert_int_eq(block[i], 0);
    memcpy(block, "fourteen chars", 15);
    block = tn_realloc(block, 1000);
    ck_assert_str_eq(block, "fourteen chars");
    tn_free(block);
    block = tn_malloc(0);
    ck_assert_ptr_nonnull(block);
    block = tn_realloc(block, 0);
    ck_assert_ptr_nonnull(block);
    tn_free(block);
    tn_free(NULL);
    block = tn_realloc(NULL, 5);
    ck_assert_ptr_nonnull(block);
    tn_free(block);
    block = tn_strdup("a text");
    ck_assert_str_eq(block, "a text");
    tn_free(block);
}
END_TEST

START_TEST(running_out_of_memory_is_an_error_like_any_other)
{
    volatile size_t huge = SIZE_MAX / 2;

    tn_error_clear();
    ck_assert_ptr_null(tn_calloc(huge, 4));
    expect_failure(TN_ERR_MEMORY, "out of host memory");
    for (int what = 0; what < 5; what++) {
        void *kept = tn_malloc(8);
        void *got = kept;

        tn__memory_fail(1);
        switch (what) {
        case 0: got = tn_malloc(77); break;
        case 1: got = tn_calloc(7, 11); break;
        case 2: got = tn_realloc(kept, 77); break;
        case 3: got = tn__memory_alloc_aligned(77, 64); break;
        default: got = tn_strdup("seventy-seven bytes?"); break;
        }
        ck_assert_uint_eq(tn__memory_fail(0), 1);
        ck_assert_ptr_null(got);
        expect_failure(TN_ERR_MEMORY, what < 4 ? "77 bytes" : "21 bytes");
        tn_free(kept);
    }
}
END_TEST

START_TEST(the_nth_allocation_fails_and_no_other)
{
    tn_error_clear();
    tn__memory_fail(2);
    void *one = tn_malloc(1), *two = tn_malloc(1), *three = tn_malloc(1);
    ck_assert_uint_eq(tn__memory_fail(0), 3);
    ck_assert(one && !two && three);
    tn_free(one);
    tn_free(three);
    tn_error_clear();
}
END_TEST

START_TEST(aligned_memory_is_aligned)
{
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *block = tn__memory_alloc_aligned(100, alignment);
        ck_assert_uint_eq((uintptr_t)block % alignment, 0);
        memset(block, 1, 100);
        tn__memory_free_aligned(block, 100, alignment);
    }
    tn__memory_free_aligned(NULL, 0, 64);
}
END_TEST

/* ---- an allocator of the program ------------------------------------------------------------- */

struct ledger {
    size_t live, calls;
    bool wrong;
};

static void *ledger_alloc(void *user, size_t size, size_t alignment)
{
    struct ledger *ledger = user;
    void *block = NULL;

    ledger->calls++;
    ledger->live += size;
    return posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, size)
               ? NULL
               : block;
}

static void ledger_free(void *user, void *block, size_t size, size_t alignment)
{
    struct ledger *ledger = user;

    (void)alignment;
    ledger->wrong = ledger->wrong || size > ledger->live;
    ledger->live -= size;
    free(block);
}

static void *ledger_resize(void *user, void *block, size_t old_size, size_t size, size_t alignment)
{
    void *fresh = ledger_alloc(user, size, alignment);

    if (fresh) {
        memcpy(fresh, block, old_size < size ? old_size : size);
        ledger_free(user, block, old_size, alignment);
    }
    return fresh;
}

/* Runs in a process of its own, because a process chooses its allocator once. Returns the exit
 * status, 0 if all checks passed. */
static int with_own_allocator(void)
{
    static struct ledger ledger;
    tn_allocator own = { ledger_alloc, ledger_resize, ledger_free, &ledger, { NULL } };
    tn_allocator half = { ledger_alloc, NULL, ledger_free, &ledger, { NULL } };

    if (tn_set_allocator(&half) != TN_ERR_VALUE || tn_set_allocator(&own) != TN_OK)
        return 1;
    char *text = tn_strdup("text");
    char *zero = tn_calloc(10, 10);
    void *aligned = tn__memory_alloc_aligned(1000, 256);
    if (!text || !zero || !aligned || (uintptr_t)aligned % 256 || (uintptr_t)text % 16 || zero[99])
        return 2;
    text = tn_realloc(text, 500);
    if (!text || strcmp(text, "text") != 0 || ledger.calls != 4)
        return 3;
    if (tn_set_allocator(&own) != TN_ERR_RUNTIME)
        return 4;
    tn__spec *spec = tn__spec_parse("Sequential(Linear(4, 3), [1, 2], 'x')");
    if (!spec)
        return 5;
    tn__spec_free(spec);
    tn_free(text);
    tn_free(zero);
    tn__memory_free_aligned(aligned, 1000, 256);
    return ledger.live || ledger.wrong ? 6 : 0;
}

START_TEST(a_program_can_bring_its_own_allocator)
{
    int status = -1;
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    ck_assert_int_gt(length, 0);
    self[length] = 0;
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, "--own-allocator", (char *)NULL);
        _exit(99);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* ---- texts and arenas ------------------------------------------------------------------------ */

START_TEST(a_text_grows_and_is_taken_or_given)
{
    tn__text text = { 0 };
    char out[8];

    for (int i = 0; i < 1000; i++)
        tn__text_add(&text, "%d,", i);
    tn__text_put(&text, "\0x", 2);
    tn__text_quote(&text, '\'', "it's");
    char *whole = tn__text_take(&text);
    ck_assert_int_eq(strncmp(whole, "0,1,2,", 6), 0);
    ck_assert_str_eq(whole + 3890 + 2, "'it\\'s'");
    tn_free(whole);
    ck_assert_ptr_null(text.at);

    char *empty = tn__text_take(&text);
    ck_assert_str_eq(empty, "");
    tn_free(empty);
    tn__text_add(&text, "%s", "1234567890");
    ck_assert_int_eq(tn__text_give(&text, out, sizeof out), 10);
    ck_assert_str_eq(out, "1234567");
    ck_assert_int_eq(tn__text_give(&text, out, sizeof out), 0);
    ck_assert_str_eq(out, "");
    tn__text_add(&text, "%1000d", 1);
    ck_assert_int_eq(tn__text_give(&text, NULL, 0), 1000);
}
END_TEST

START_TEST(a_text_without_memory_says_so_once_at_the_end)
{
    tn__text text = { 0 };
    char out[4] = "#";

    tn_error_clear();
    for (int what = 0; what < 2; what++) {
        uint64_t count = tn__error_count();
        tn__memory_fail(1);
        tn__text_add(&text, "%d", 1);
        tn__text_add(&text, "%d", 2);
        ck_assert_uint_eq(tn__error_count(), count);
        if (what)
            ck_assert_int_eq(tn__text_give(&text, out, sizeof out), -1);
        else
            ck_assert_ptr_null(tn__text_take(&text));
        tn__memory_fail(0);
        ck_assert_uint_eq(tn__error_count(), count + 1);
        expect_failure(TN_ERR_MEMORY, "out of host memory");
    }
}
END_TEST

START_TEST(an_arena_gives_aligned_pieces_of_any_size)
{
    tn__arena *arena = tn__arena_new();

    for (size_t size = 0; size < 5000; size += 7) {
        char *piece = tn__arena_alloc(arena, size);
        ck_assert_uint_eq((uintptr_t)piece % 16, 0);
        memset(piece, 1, size);
    }
    ck_assert_str_eq(tn__arena_text(arena, "abcdef", 3), "abc");
    tn_error_clear();
    ck_assert_ptr_null(tn__arena_alloc(arena, SIZE_MAX));
    ck_assert_ptr_null(tn__arena_alloc(arena, SIZE_MAX - 40));
    expect_failure(TN_ERR_MEMORY, "out of host memory");
    tn__arena_free(arena);
    tn__arena_free(NULL);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

START_TEST(the_nearest_name_is_found_and_far_ones_are_not)
{
    static const char *const names[] = { "in_features", "out_features", "bias", "Linear", "relu" };

    ck_assert_str_eq(tn__name_nearest("in_featurs", names, 5), "in_features");
    ck_assert_str_eq(tn__name_nearest("linear", names, 5), "Linear");
    ck_assert_str_eq(tn__name_nearest("bais", names, 5), "bias");
    ck_assert_str_eq(tn__name_nearest("rleu", names, 5), "relu");
    ck_assert_str_eq(tn__name_nearest("outfeatures", names, 5), "out_features");
    ck_assert_ptr_null(tn__name_nearest("momentum", names, 5));
    ck_assert_ptr_null(tn__name_nearest("", names, 5));
    ck_assert_ptr_null(tn__name_nearest("x", names, 5));
    ck_assert_ptr_null(tn__name_nearest("in", names, 0));
    char longer[200];
    memset(longer, 'a', 199);
    longer[199] = 0;
    ck_assert_ptr_null(tn__name_nearest(longer, names, 5));
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        memory_comes_zeroed_resized_and_of_size_zero,
        running_out_of_memory_is_an_error_like_any_other,
        the_nth_allocation_fails_and_no_other,
        aligned_memory_is_aligned,
        a_program_can_bring_its_own_allocator,
        a_text_grows_and_is_taken_or_given,
        a_text_without_memory_says_so_once_at_the_end,
        an_arena_gives_aligned_pieces_of_any_size,
        the_nearest_name_is_found_and_far_ones_are_not,
        NULL,
    };

    if (argc > 1 && strcmp(argv[1], "--own-allocator") == 0)
        return with_own_allocator();
    return suite_run("memory", tests);
}
