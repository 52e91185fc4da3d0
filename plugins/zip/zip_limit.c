/* SPDX-License-Identifier: MIT
 *
 * The setting of plugins that read archives: how much memory a file can take beyond its own
 * size. */
#include "zip.h"

tn_status zip_unpacked(const tn_source *source, uint64_t *sum, uint64_t more, int64_t most,
                       const char *setting)
{
    if (__builtin_add_overflow(*sum, more, sum) || *sum > (uint64_t)most)
        return tn_fail(
            TN_ERR_REFUSED,
            "%s: unpacked data: too large for a file of %llu bytes; expected at most %lld bytes "
            "more than the file; if you trust it, raise %s",
            source->path, (unsigned long long)source->size, (long long)most, setting);
    return TN_OK;
}

tn_status zip_unpacked_check(int64_t most, const char *setting)
{
    return most >= 0 ? TN_OK
                     : tn_fail(TN_ERR_VALUE, "%s: negative, got %lld; expected a number of bytes",
                               setting, (long long)most);
}
