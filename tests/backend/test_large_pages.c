/* SPDX-License-Identifier: MIT
 *
 * Large pages for large tensors of the CPU, where the system has them. */
#include <stdio.h>
#include <unistd.h>

#include "tests/backend/backend.h"

enum { LARGE = 2 << 20 };

/* Whether /proc/self/smaps says that the program asked for large pages at this address ("hg"). */
static bool asked_for_large_pages(const void *at)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    unsigned long from, to;
    bool here = false, asked = false;
    char line[512];

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (unsigned long)at && (unsigned long)at < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            asked = asked || strstr(line, " hg") != NULL;
    }
    fclose(file);
    return asked;
}

/* Without the guard zones of TENON_CHECK=1, which come before a tensor. */
static tn_tensor *bytes_of(int64_t bytes)
{
    tn_tensor *x;

    unsetenv("TENON_CHECK");
    x = tn_tensor_empty(TN_SHAPE(bytes), TN_U8, tn_device_find("cpu"));
    ck_assert_msg(x != NULL, "%s", tn_error_text());
    return x;
}

START_TEST(large_pages_are_asked_for_where_they_are_filled)
{
    TN_SCOPE;
    char *at = tn_tensor_data(bytes_of((64 << 20) + LARGE / 2));

    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0) {
        ck_assert(asked_for_large_pages(at));
        ck_assert(asked_for_large_pages(at + (64 << 20) - 1));
        ck_assert(!asked_for_large_pages(at + (64 << 20)));
    }
}
END_TEST

START_TEST(a_large_tensor_begins_at_a_large_page)
{
    static const int64_t sizes[] = { 9 << 20, (32 << 20) + 4096, 100 << 20 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TN_SCOPE;
        char *at = tn_tensor_data(bytes_of(sizes[i]));

        ck_assert_int_eq((int64_t)((uintptr_t)at % LARGE), 0);
        at[0] = at[sizes[i] - 1] = 1; /* the whole block is there */
    }
}
END_TEST

/* The order matters: the first test needs a block of its own. */
RUN_SUITE("large_pages", large_pages_are_asked_for_where_they_are_filled,
          a_large_tensor_begins_at_a_large_page)
