/* SPDX-License-Identifier: MIT
 *
 * The containers of the core: growing arrays, the hash index, the map from addresses to addresses.
 */
#include "tests/base/suite.h"

#include "core/base/map.h"
#include "core/base/vector.h"

START_TEST(an_array_keeps_its_elements_while_it_grows)
{
    int32_t *at = NULL;
    int64_t count = 0, capacity = 0;

    for (int32_t i = 0; i < 1000; i++) {
        ck_assert(tn__vector_room(&at, &capacity, count + 1, sizeof *at));
        at[count++] = i;
    }
    ck_assert_int_ge(capacity, count);
    for (int32_t i = 0; i < 1000; i++)
        ck_assert_int_eq(at[i], i);
    tn_free(at);
}
END_TEST

START_TEST(an_array_that_begins_in_its_owner_is_copied_out_of_it)
{
    int64_t first[4] = { 1, 2, 3, 4 }, *at = first, capacity = 4;

    ck_assert(tn__vector_room_after(&at, first, &capacity, 4, sizeof *at));
    ck_assert_ptr_eq(at, first);
    ck_assert(tn__vector_room_after(&at, first, &capacity, 5, sizeof *at));
    ck_assert_ptr_ne(at, first);
    ck_assert_int_eq(at[0] + at[1] + at[2] + at[3], 10);
    tn_free(at);
}
END_TEST

START_TEST(an_array_that_is_too_large_or_without_memory_stays_as_it_was)
{
    char *at = NULL;
    int64_t capacity = 0;

    ck_assert(!tn__vector_room(&at, &capacity, INT64_MAX, 4096));
    ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
    tn_error_clear();
    ck_assert(tn__vector_room(&at, &capacity, 8, 1));
    tn__memory_fail(1);
    ck_assert(!tn__vector_room(&at, &capacity, capacity + 1, 1));
    tn__memory_fail(0);
    ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
    ck_assert_int_eq(capacity, 8);
    tn_error_clear();
    tn_free(at);
}
END_TEST

/* Keys that are numbers; `step` decides how their hashes collide. */
static void check_map(uintptr_t step, uintptr_t count)
{
    tn__map map = { 0 };

    for (uintptr_t i = 1; i <= count; i++) {
        const void *key = (const void *)(i * step);

        ck_assert_int_eq(tn__map_add(&map, key), 1);
        ck_assert_int_eq(tn__map_add(&map, key), 0);
        *tn__map_value(&map, key) = (void *)i;
    }
    for (uintptr_t i = 1; i <= count; i += 2)
        tn__map_remove(&map, (const void *)(i * step));
    tn__map_remove(&map, (const void *)step); /* gone already */
    ck_assert_int_eq(map.count, (int64_t)(count / 2));
    for (uintptr_t i = 1; i <= count; i++) {
        void **value = tn__map_value(&map, (const void *)(i * step));

        ck_assert(i % 2 == 0 ? value != NULL && *value == (void *)i : value == NULL);
    }
    tn__map_free(&map);
    ck_assert_ptr_null(tn__map_value(&map, (const void *)step));
}

START_TEST(a_map_finds_what_was_added_and_not_what_was_removed)
{
    check_map(1, 10000);
    check_map(4096, 1000);
    check_map((uintptr_t)1 << 40, 1000);
}
END_TEST

START_TEST(an_index_finds_places_of_equal_hashes_and_follows_an_array_that_closes_up)
{
    enum { COUNT = 100 };
    tn__index index = { 0 };

    for (int64_t i = 0; i < COUNT; i++)
        ck_assert(tn__index_add(&index, (uint32_t)(i / 10), i));
    tn__index_remove(&index, 2, 25);
    tn__index_close_up(&index, 25);
    ck_assert_int_eq(index.count, COUNT - 1);
    for (uint32_t hash = 0; hash < 10; hash++) {
        int64_t at = -1, place, found = 0, from = hash * 10 - (hash > 2);

        while ((place = tn__index_next(&index, hash, &at)) >= 0) {
            ck_assert_int_ge(place, from);
            ck_assert_int_lt(place, hash * 10 + 10 - (hash >= 2));
            found++;
        }
        ck_assert_int_eq(found, hash == 2 ? 9 : 10);
    }
    tn__index_free(&index);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_array_keeps_its_elements_while_it_grows,
        an_array_that_begins_in_its_owner_is_copied_out_of_it,
        an_array_that_is_too_large_or_without_memory_stays_as_it_was,
        a_map_finds_what_was_added_and_not_what_was_removed,
        an_index_finds_places_of_equal_hashes_and_follows_an_array_that_closes_up,
        NULL,
    };

    return suite_run("containers", tests);
}
