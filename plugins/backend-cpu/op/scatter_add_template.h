/* SPDX-License-Identifier: MIT
 *
 * Adds elements of type T to the elements that a run of indices selects. */

static void NAME(add)(const void *user, char *x, char *other)
{
    T v, w;
    (void)user;
    memcpy(&v, x, sizeof v);
    memcpy(&w, other, sizeof w);
    v = (T)(v + w);
    memcpy(x, &v, sizeof v);
}
TN__INDEX_RUN(add)
