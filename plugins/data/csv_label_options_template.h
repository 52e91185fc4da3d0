/* SPDX-License-Identifier: MIT
 *
 * The options of a table with labels: the first rows of the option table of a struct T. LABEL is
 * the default of the label. */
TN_OPTION_ROW(T, path, NULL, "the file, plain or compressed by gzip", TN_OPTION_KIND_STRING,
              TN_OPTION_REQUIRED),
    TN_OPTION_ROW(T, label, LABEL,
                  "column of the label: its name, or its number, negative from the last; None: no "
                  "label",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_STRING(T, target, "'class'",
                     "the label is a 'class' (a number from 0 on, or a text), or a 'number'"),
    TN_OPTION_ROW(T, classes, "None",
                  "list with the names of the classes in their order; None: those in the file",
                  TN_OPTION_KIND_VALUE, 0),
#undef LABEL
