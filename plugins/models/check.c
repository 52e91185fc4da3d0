/* SPDX-License-Identifier: MIT
 *
 * Checks of options and inputs. */
#include "models.h"

tn_status models_check_size(tn_module *self, const char *option, int64_t value, int64_t least)
{
    if (value >= least && value <= MODELS_LARGEST)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: out of range, got %lld; expected %lld to %lld",
                   tn_module_type(self), option, (long long)value, (long long)least,
                   (long long)MODELS_LARGEST);
}

tn_status models_check_count(tn_module *self, const char *option, int64_t value)
{
    enum { MOST = 4096 };

    if (value >= 1 && value <= MOST)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: out of range, got %lld; expected 1 to %d",
                   tn_module_type(self), option, (long long)value, MOST);
}

tn_status models_check_share(tn_module *self, const char *option, double value)
{
    if (value >= 0 && value <= 1)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: out of range, got %g; expected a probability from 0 to 1",
                   tn_module_type(self), option, value);
}

tn_status models_check_word(tn_module *self, const char *option, const char *value,
                            const char *words)
{
    size_t length = strlen(value);

    for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");

        if (size == length && strncmp(at, value, size) == 0)
            return TN_OK;
        at += size;
    }
    return tn_fail(TN_ERR_VALUE, "%s: %s: unknown, got %q; expected one of: %s",
                   tn_module_type(self), option, value, words);
}

tn_status models_check_stem(tn_module *self, const char *word, bool *small)
{
    *small = strcmp(word, "small") == 0;
    return models_check_word(self, "stem", word, "imagenet small");
}

tn_status models_check_images(tn_module *self, tn_tensor *x, int64_t channels)
{
    if (tn_tensor_ndim(x) == 4 && tn_tensor_size(x, 1) == channels)
        return TN_OK;
    if (tn_tensor_ndim(x) != 4)
        return tn_fail(TN_ERR_VALUE,
                       "%s: input: wrong number of dimensions, got %d; expected 4: [N, %lld, H, W]",
                       tn_module_type(self), (int)tn_tensor_ndim(x), (long long)channels);
    return tn_fail(TN_ERR_VALUE,
                   "%s: input: wrong number of channels, got %lld; expected %lld (in_channels)",
                   tn_module_type(self), (long long)tn_tensor_size(x, 1), (long long)channels);
}

tn_status models_check_image_size(tn_module *self, tn_tensor *x, int64_t channels, int64_t size)
{
    tn_status status = models_check_images(self, x, channels);

    if (status != TN_OK || (tn_tensor_size(x, 2) == size && tn_tensor_size(x, 3) == size))
        return status;
    return tn_fail(TN_ERR_VALUE,
                   "%s: input: wrong size, got %lld x %lld; expected %lld x %lld (image_size)",
                   tn_module_type(self), (long long)tn_tensor_size(x, 2),
                   (long long)tn_tensor_size(x, 3), (long long)size, (long long)size);
}

tn_status models_check_tokens(tn_module *self, tn_tensor *x)
{
    tn_dtype dtype = tn_tensor_dtype(x);

    if (dtype != TN_I64 && dtype != TN_I32)
        return tn_fail(TN_ERR_TYPE, "%s: input: wrong dtype, got %s; expected int64 or int32",
                       tn_module_type(self), tn_dtype_name(dtype));
    if (tn_tensor_ndim(x) != 2)
        return tn_fail(TN_ERR_VALUE,
                       "%s: input: wrong shape, got %d dimensions; expected 2: [N, L]",
                       tn_module_type(self), (int)tn_tensor_ndim(x));
    if (tn_tensor_size(x, 1) < 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: input: wrong shape, got [%lld, 0]; expected [N, L] with L at least 1",
                       tn_module_type(self), (long long)tn_tensor_size(x, 0));
    return TN_OK;
}

int64_t models_no_words(tn_module *self, char *out, size_t size)
{
    (void)self;
    return tn_snprint(out, size, "%s", "");
}

tn_status models_rename(tn_loading *loading, const char *name, const char *to)
{
    char from[512], into[512];

    if (tn_snprint(from, sizeof from, "%s%s", loading->prefix, name) >= (int64_t)sizeof from ||
        tn_snprint(into, sizeof into, "%s%s", loading->prefix, to) >= (int64_t)sizeof into ||
        tn_state_find(loading->state, from) < 0)
        return TN_OK; /* a longer name than those that are renamed */
    return tn_state_rename(loading->state, from, into);
}
