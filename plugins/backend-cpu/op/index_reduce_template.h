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
    a = ENCODE(PRODUCT(DECODE(a), DECODE(b)));
    memcpy(x, &a, sizeof a);
}
TN__INDEX_RUN(prod)

static void NAME(amax)(const void *user, char *x, char *other)
{
    T a, b, most;
    (void)user;
    memcpy(&a, x, sizeof a);
    memcpy(&b, other, sizeof b);
    most = DECODE(a) > DECODE(b)
               ? a
               : b; /* b if one of them is NaN; no branch, which would be mispredicted */
    if (IS_NAN(DECODE(a)))
        most = a;
    memcpy(x, &most, sizeof most);
}
TN__INDEX_RUN(amax)

static void NAME(amin)(const void *user, char *x, char *other)
{
    T a, b, least;
    (void)user;
    memcpy(&a, x, sizeof a);
    memcpy(&b, other, sizeof b);
    least = DECODE(a) < DECODE(b) ? a : b;
    if (IS_NAN(DECODE(a)))
        least = a;
    memcpy(x, &least, sizeof least);
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
    const T one = ENCODE(1);
    (void)user, (void)other;
    memcpy(x, &one, sizeof one);
}
TN__INDEX_RUN(one)
