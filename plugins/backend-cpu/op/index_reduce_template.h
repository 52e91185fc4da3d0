/* SPDX-License-Identifier: MIT
 *
 * Combines elements of type T with the elements that a run of indices selects. NaN is the result of
 * a maximum or minimum with NaN. */

static void NAME(prod)(const void *user, char *x, char *other)
{
    T a, b;
    (void)user;
    memcpy(&a, x, sizeof a);
    memcpy(&b, other, sizeof b);
    a = PRODUCT(a, b);
    memcpy(x, &a, sizeof a);
}
TN__INDEX_RUN(prod)

static void NAME(amax)(const void *user, char *x, char *other)
{
    T a, b;
    (void)user;
    memcpy(&a, x, sizeof a);
    memcpy(&b, other, sizeof b);
    if (b > a || IS_NAN(b))
        memcpy(x, &b, sizeof b);
}
TN__INDEX_RUN(amax)

static void NAME(amin)(const void *user, char *x, char *other)
{
    T a, b;
    (void)user;
    memcpy(&a, x, sizeof a);
    memcpy(&b, other, sizeof b);
    if (b < a || IS_NAN(b))
        memcpy(x, &b, sizeof b);
}
TN__INDEX_RUN(amin)

/* Stores the value, the first operand of a maximum or minimum. */
static void NAME(store)(const void *user, char *x, char *other)
{
    (void)user;
    memcpy(x, other, sizeof(T));
}
TN__INDEX_RUN(store)

/* Stores 1, the first operand of a product. */
static void NAME(one)(const void *user, char *x, char *other)
{
    const T one = 1;
    (void)user, (void)other;
    memcpy(x, &one, sizeof one);
}
TN__INDEX_RUN(one)
