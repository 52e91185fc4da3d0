/* SPDX-License-Identifier: MIT
 *
 * The options of a table of numbers, with or without labels: the last rows of the option table of a
 * struct T. */
TN_OPTION_ROW(T, header, "None",
              "whether the first line has names of columns; None: it has if none of its fields is "
              "a number",
              TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_STRING(T, separator, "','", "character between fields"),
    TN_OPTION_ROW(T, missing, "None",
                  "number in place of fields that are empty, NA or similar; None: they are errors",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(T, shape, "None", "shape of a sample; None: [columns]", TN_OPTION_KIND_INTS,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_FLOAT(T, scale, "1.0", "factor of the values"),
