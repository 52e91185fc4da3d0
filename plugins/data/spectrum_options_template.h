/* SPDX-License-Identifier: MIT
 *
 * The options of MelSpectrogram that MFCC has, too: rows of a table of struct spectrum
 * (spectrum.c). */
TN_OPTION_INT(struct spectrum, sample_rate, "16000", "samples for each second"),
    TN_OPTION_INT(struct spectrum, n_fft, "400", "samples that a spectrum is computed from"),
    TN_OPTION_ROW(struct spectrum, win_length, "None",
                  "samples of the window, a Hann window; None: n_fft", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct spectrum, hop_length, "None",
                  "samples from one spectrum to the next; None: win_length // 2",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_FLOAT(struct spectrum, f_min, "0.0", "the lowest frequency"),
    TN_OPTION_ROW(struct spectrum, f_max, "None",
                  "the highest frequency; None: half the sample rate", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_INT(struct spectrum, n_mels, "128", "bands of frequencies"),
    TN_OPTION_FLOAT(struct spectrum, power, "2.0",
                    "exponent of the magnitudes: 1 is magnitude, 2 is power"),
    TN_OPTION_BOOL(struct spectrum, center, "True",
                   "the sound is mirrored at its ends, so that spectrum i is that around sample "
                   "i * hop_length"),
    TN_OPTION_STRING(struct spectrum, mel_scale, "'htk'",
                     "the scale of frequencies: htk or slaney"),
