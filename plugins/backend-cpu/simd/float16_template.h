/* SPDX-License-Identifier: MIT
 *
 * Adds elements of float16 or bfloat16 to the elements that an index selects, one by one. simd.h
 * describes add_at. NAME(x) is x_f16 or x_bf16. */
static void NAME(add_element)(const void *user, char *x, char *other)
{
    uint16_t v, w;
    (void)user;
    memcpy(&v, x, sizeof v);
    memcpy(&w, other, sizeof w);
    v = NAME(sum_of)(v, w);
    memcpy(x, &v, sizeof v);
}

static int64_t NAME(add_at)(const struct tn__index_run *run)
{
    return tn__index_run_sized(run, NAME(add_element), NULL, 2);
}
