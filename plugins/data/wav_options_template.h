/* SPDX-License-Identifier: MIT
 *
 * The options of all datasets of WAV files: rows of a table of struct wav_options (wav.h), which
 * follow the row that says where the files are. */
TN_OPTION_ROW(struct wav_options, length, "None",
              "samples of each channel: longer files are cut, shorter ones get zeros at the end; "
              "None: as many as the file has",
              TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_STRING(struct wav_options, crop, "'start'",
                     "the part that stays of a longer file: start, middle or random"),
    TN_OPTION_BOOL(struct wav_options, mono, "False", "mean of the channels"),
    TN_OPTION_ROW(struct wav_options, sample_rate, "None",
                  "samples for each second: files with another rate are resampled; None: all files "
                  "must have the same rate",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_INT(struct wav_options, max_channels, "256",
                  "channels of the largest file that is read"),
