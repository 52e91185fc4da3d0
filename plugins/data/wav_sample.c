/* SPDX-License-Identifier: MIT
 *
 * A sound as a sample: cut or padded, mixed down. */
#include "wav.h"

#include <math.h>
#include <string.h>

/* The first frame of the part that a sample has. */
static int64_t first_of(const struct wav_part *part, int64_t frames, int64_t length,
                        const tn_sample_args *args)
{
    int64_t spare = frames - length;
    tn_random_key key = { args->seed, 0 };

    if (spare <= 0 || part->crop == WAV_START)
        return 0;
    if (part->crop == WAV_MIDDLE)
        return spare / 2;
    key.seed = tn_random_bits(&key) ^ (uint64_t)args->epoch * 0xD6E8FEB86659FD93u;
    key.seed = tn_random_bits(&key) ^ (uint64_t)args->index * 0xD6E8FEB86659FD93u;
    return tn_random_below(&key, spare + 1);
}

/* Floats may be NaN or infinite: such a sample would spoil means, and spectra in decibels hide it.
 */
static tn_status check_values(const char *path, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return tn_fail(
                TN_ERR_FORMAT,
                "%s: damaged sound: a sample is NaN or infinite; expected finite numbers", path);
    return TN_OK;
}

/* Zeros fill what a file lacks of the length, in each of its channels: the header of a short file
 * could ask for gigabytes. */
static tn_status add_sound(const struct wav_part *part, const struct wav *wav, const char *path,
                           uint64_t size, const tn_sample_args *args)
{
    bool other = part->rate != INT64_MIN && wav->rate != part->rate;
    int64_t frames = other ? wav_resampled(wav->frames, wav->rate, part->rate) : wav->frames;
    int64_t length = part->length != INT64_MIN ? part->length : frames;
    int64_t count = frames < length ? frames : length;
    int64_t channels = part->mono ? 1 : wav->channels, first = first_of(part, frames, length, args);
    uint64_t bytes = (uint64_t)channels * (uint64_t)length * sizeof(float);
    float *values;
    tn_status status = TN_OK;

    if (frames < 0 || (uint64_t)length > data_most(size * sizeof(float)) ||
        bytes > data_most(size * sizeof(float))) /* a sample of one byte becomes a float */
        return data_limit(path, size, bytes);
    if (wav->frames == 0)
        return tn_fail(TN_ERR_FORMAT, "%s: a sound without samples; expected one or more", path);
    values = tn_calloc((size_t)(channels * length) + 1, sizeof *values);
    if (values == NULL)
        return TN_ERR_MEMORY;
    if (other && count > 0)
        status = wav_resample(wav, part->rate, part->mono, first, count, values, length);
    else if (part->mono)
        wav_read_mean(wav, first, count, values);
    else
        wav_read(wav, first, count, values, length);
    if (status == TN_OK && wav->floats)
        status = check_values(path, values, channels * length);
    if (status == TN_OK)
        status = data_add_tensor(args->out, values, TN_F32, TN_SHAPE(channels, length));
    tn_free(values);
    return status;
}

tn_status wav_add(const struct wav_part *part, const char *path, const tn_sample_args *args)
{
    uint64_t size;
    unsigned char *bytes = data_load(path, &size);
    struct wav wav = { .memory = NULL };
    const tn_value encoded[] = { tn_value_string(path), tn_value_bytes(bytes, (uint32_t)size) };
    tn_status status = bytes != NULL ? wav_open(&wav, path, bytes, size) : tn_error_last_code();

    if (status == TN_OK && (args->flags & TN_SAMPLE_ENCODED)) {
        status = tn_pack_add(args->out, NULL, tn_value_tuple(encoded, 2));
        tn_free(bytes);
        wav_close(&wav);
        return status;
    }
    if (status == TN_OK && part->rate == INT64_MIN && part->common > 0 && wav.rate != part->common)
        status = tn_fail(
            TN_ERR_VALUE,
            "%s: another sample rate, got %lld; expected %lld as in the first file, or "
            "the option sample_rate=%lld, which resamples all others",
            path, (long long)wav.rate, (long long)part->common, (long long)part->common);
    if (status == TN_OK && wav.channels > part->channels)
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: too many channels, got %lld; expected at most %lld, see the option "
                         "max_channels",
                         path, (long long)wav.channels, (long long)part->channels);
    if (status == TN_OK)
        status = wav_load(&wav, path, bytes, size);
    if (status == TN_OK)
        status = add_sound(part, &wav, path, size, args);
    wav_close(&wav);
    tn_free(bytes);
    return status;
}
