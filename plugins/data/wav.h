/* SPDX-License-Identifier: MIT
 *
 * Sounds in WAV files. */
#ifndef TN_DATA_WAV_H
#define TN_DATA_WAV_H

#include "data.h"

/* The samples of a file that is in memory. */
struct wav {
    int64_t channels, rate;
    int64_t frames; /* samples of each channel */
    int64_t bytes;  /* of one sample of one channel */
    bool floats;    /* IEEE numbers; else integers */
    const unsigned char *data;
};

/* Finds the samples in a file. `path` is for messages. */
tn_status wav_open(struct wav *wav, const char *path, const unsigned char *bytes, uint64_t size);
/* Converts `count` frames from `first` on to floats from -1 to 1: `to` has `stride` floats for each
 * channel. */
void wav_read(const struct wav *wav, int64_t first, int64_t count, float *to, int64_t stride);

#endif
