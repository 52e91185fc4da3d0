/* SPDX-License-Identifier: MIT
 *
 * Reads and runs cases of optimizers (docs/plugins/check.md): `optimizer SPEC`, `parameter`,
 * `gradient`, and for each step a line `after` with the parameter that the author computed. */
#include "optimizers.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NUMBERS = 16 };

typedef struct numbers_case {
    char spec[512];
    double parameter[NUMBERS], gradient[NUMBERS];
    int64_t n_parameter, n_gradient;
    int step;
    tn_tensor *tensor;
    tn_optimizer *optimizer;
} numbers_case;

/* Reads up to 16 numbers. Returns how many, -1 if the line is malformed or too long. */
static int64_t read_numbers(const char *text, double *out)
{
    int64_t count = 0;
    char *end;

    for (text += strspn(text, " \t"); *text != '\0'; text = end + strspn(end, " \t\r\n")) {
        if (count == NUMBERS)
            return -1;
        out[count++] = strtod(text, &end);
        if (end == text)
            return -1;
    }
    return count;
}

static tn_tensor *row_of(const double *values, int64_t count, const tn_device *device)
{
    tn_tensor *t = tn_tensor_empty(TN_SHAPE(count), TN_F64, device);

    return t != NULL && tn_tensor_copy_in(t, values, (size_t)count * sizeof *values) == TN_OK
               ? t
               : NULL;
}

/* Handles a line `after`: runs a step and compares the parameter with the expected numbers. */
static bool case_after(const conform_rule *r, numbers_case *one, const double *after, int64_t count)
{
    const tn_device *device = r->c->plugin->device;
    int64_t n = 0;
    double *values;
    bool well = true;

    if (one->tensor == NULL) {
        one->tensor = tn_parameter(row_of(one->parameter, one->n_parameter, device), true);
        one->optimizer = tn_optimizer_parse(&one->tensor, 1, one->spec);
    }
    one->step++;
    r->c->checks++;
    if (one->optimizer == NULL || count != one->n_parameter || count != one->n_gradient ||
        tn_tensor_set_grad(one->tensor, row_of(one->gradient, count, device)) != TN_OK ||
        tn_optimizer_step(one->optimizer) != TN_OK)
        return conform_rule_fail(
            r, "step %d of the case fails: %s", one->step,
            tn_failed() ? tn_error_text()
                        : "expected as many numbers in `parameter`, `gradient` and `after`");
    values = conform_values(one->tensor, &n);
    for (int64_t i = 0; well && i < count; i++)
        if (values == NULL || !(fabs(values[i] - after[i]) <= 1e-10 * (1 + fabs(after[i]))))
            well = conform_rule_fail(
                r, "step %d, element %lld: wrong value, got %.12g; expected %.12g", one->step,
                (long long)i, values != NULL ? values[i] : NAN, after[i]);
    free(values);
    return well;
}

static void end_case(numbers_case *one)
{
    tn_optimizer_drop(one->optimizer);
    memset(one, 0, sizeof *one);
}

/* Runs the cases of the optimizer in a file. Returns their number, -1 after reporting a failure. */
static int64_t cases_of_file(conform *c, const char *path)
{
    const char *reason = NULL;
    char why[256];
    conform_lines lines = { .file = conform_open(path, &reason) };
    numbers_case one = { .step = 0 };
    conform_rule r = { c, one.spec };
    double after[NUMBERS];
    char *line;
    size_t length = strlen(c->subject);
    int64_t found = 0, number = 0, count;
    bool well = lines.file != NULL;

    while (well && conform_next_line(&lines, &line, &reason)) {
        number++;
        if (strncmp(line, "optimizer ", 10) == 0) {
            bool ours = strncmp(line + 10, c->subject, length) == 0 &&
                        (line[10 + length] == '(' || line[10 + length] == '\0');

            end_case(&one);
            if (!ours)
                continue;
            snprintf(one.spec, sizeof one.spec, "%s", line + 10);
            found++;
            well = strlen(line + 10) < sizeof one.spec
                       ? conform_rule_check(&r)
                       : conform_fail(c,
                                      "%s:%lld: the optimizer is too long, got %zu bytes; "
                                      "expected at most %zu",
                                      path, (long long)number, strlen(line + 10),
                                      sizeof one.spec - 1);
            if (well)
                conform_rule_try_options(&r);
        } else if (one.spec[0] != '\0' && strncmp(line, "parameter ", 10) == 0) {
            one.n_parameter = read_numbers(line + 10, one.parameter);
        } else if (one.spec[0] != '\0' && strncmp(line, "gradient ", 9) == 0) {
            one.n_gradient = read_numbers(line + 9, one.gradient);
        } else if (one.spec[0] != '\0' && strncmp(line, "after ", 6) == 0) {
            count = read_numbers(line + 6, after);
            well = count > 0 && one.n_parameter > 0 && one.n_gradient > 0
                       ? case_after(&r, &one, after, count)
                       : conform_fail(
                             c, "%s:%lld: %s", path, (long long)number,
                             count <= 0
                                 ? "wrong numbers; expected 1 to 16 after the word `after`"
                                 : "no numbers of `parameter` or `gradient`; expected both lines "
                                   "before `after`, each with 1 to 16 numbers");
        } else if (conform_line_of_other(line, "optimizer")) {
            end_case(&one);
        } else if (!conform_line_begins(
                       line, one.spec[0] != '\0' ? CONFORM_OPTIMIZER_LINES : CONFORM_LINES, why,
                       sizeof why)) {
            well = conform_fail(c, "%s:%lld: %s", path, (long long)number, why);
        }
    }
    end_case(&one);
    if (well && reason != NULL)
        well = conform_fail(c, "%s: %s", path, reason);
    if (lines.file == NULL)
        conform_fail(c, "%s: %s; name a file or folder with --cases", path, reason);
    conform_lines_end(&lines);
    return well ? found : -1;
}

void conform_optimizer(conform *c)
{
    const char *path = c->plugin->options->cases;
    struct dirent **entries = NULL;
    struct stat about;
    uint64_t scope = tn_scope_begin();
    int64_t found = 0;

    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        int count = scandir(path, &entries, conform_is_text, alphasort);

        for (int i = 0; i < count; i++) {
            char full[4096];
            int64_t here = 0;

            snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
            if (c->verdict == CONFORM_PASS)
                here = cases_of_file(c, full);
            found += here > 0 ? here : 0;
            free(entries[i]);
        }
        free(entries);
    } else {
        found = cases_of_file(c, path);
    }
    if (c->verdict == CONFORM_PASS && found == 0) {
        char spec[256];

        snprintf(spec, sizeof spec, "%.250s()", c->subject);
        conform_rule_check(&(conform_rule){ c, spec });
    }
    if (c->verdict == CONFORM_PASS)
        conform_rule_judge_options(c);
    tn_error_clear();
    tn_scope_end(scope);
}
