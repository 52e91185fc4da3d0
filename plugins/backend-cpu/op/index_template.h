/* SPDX-License-Identifier: MIT
 *
 * Functions that process a run of indices for elements of type T. */

static void NAME(gather)(const void *user, char *x, char *other)
{
    (void)user;
    memcpy(other, x, sizeof(T));
}
TN__INDEX_RUN(gather)

static void NAME(scatter)(const void *user, char *x, char *other)
{
    (void)user;
    memcpy(x, other, sizeof(T));
}
TN__INDEX_RUN(scatter)
