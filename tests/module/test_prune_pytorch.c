/* SPDX-License-Identifier: MIT
 *
 * Sequences of prunings, with the masks, values and failures of PyTorch: prune.txt, which
 * make_prune.py writes. TENON_TEST_PRUNE names another file; `make prune` uses it to compare with
 * PyTorch live. */
#include <math.h>

#include "tests/module/prune.h"

enum { TENSORS = 8, LINE = 1 << 20 };

static const char *path;

struct replay {
    tn_module *modules[TENSORS];
    tn_tensor *scores[TENSORS];
    int64_t count, steps;
    tn_status status; /* of the last step */
    char name[64];
};

/* Reads numbers up to the end of the line. */
static int64_t read_numbers(const char *text, double *out)
{
    int64_t count = 0;
    char *end;

    for (;; text = end) {
        double value = strtod(text, &end);

        if (end == text)
            return count;
        ck_assert_int_lt(count, MOST_VALUES);
        out[count++] = value;
    }
}

/* Returns a tensor of the numbers after ':'. It has the shape of `like` if that has as many
 * elements, else it is a row. */
static tn_tensor *read_tensor(const char *text, const tn_tensor *like)
{
    const char *colon = strchr(text, ':');
    double values[MOST_VALUES];
    int64_t count = read_numbers(colon + 1, values);

    if (like != NULL && tn_tensor_numel(like) == count)
        return numbers(tn_tensor_shape(like), values);
    return numbers(TN_SHAPE(count), values);
}

static tn_tensor *now(const struct replay *r, int64_t i)
{
    tn_tensor *weight = tn_module_get(r->modules[i], "weight");

    ck_assert_ptr_nonnull(weight);
    return weight;
}

static void add_tensor(struct replay *r, const char *text)
{
    const char *colon = strchr(text, ':');
    double sizes[MOST_VALUES], values[MOST_VALUES];
    int64_t shape[TN_MAX_DIMS], ndim = read_numbers(text, sizes) - 1;

    read_numbers(colon + 1, values);
    ck_assert_int_eq((int64_t)sizes[0], r->count);
    for (int64_t i = 0; i < ndim; i++)
        shape[i] = (int64_t)sizes[i + 1];
    r->modules[r->count++] = holder(numbers((tn_ints){ shape, ndim }, values));
}

static void prune(struct replay *r, char *text)
{
    int64_t i = strtoll(text, &text, 10);
    char *colon = strstr(text, " : ");

    if (colon == NULL) {
        r->status = tn_prune(r->modules[i], "weight", text);
        return;
    }
    *colon = '\0';
    r->status = tn_prune_by(r->modules[i], "weight", text, read_tensor(colon + 1, now(r, i)));
}

static void prune_all(struct replay *r, char *text)
{
    char *colon = strstr(text, " : ");
    double which[MOST_VALUES];
    int64_t count = read_numbers(colon + 3, which);
    tn_prune_target targets[TENSORS];

    *colon = '\0';
    for (int64_t i = 0; i < count; i++) {
        int64_t k = (int64_t)which[i];

        targets[i] = (tn_prune_target){ r->modules[k], "weight", r->scores[k] };
        r->scores[k] = NULL;
    }
    r->status = tn_prune_global(targets, count, text);
}

static void compare(struct replay *r, const char *text)
{
    int64_t i = strtoll(text, NULL, 10), count;
    double wanted[MOST_VALUES], got[MOST_VALUES];
    tn_module *module = r->modules[i];

    ck_assert_msg(r->status == TN_OK, "%s: %s", r->name, tn_error_text());
    count = read_numbers(strchr(text, ':') + 1, wanted);
    values_of(tn_module_get(module, tn_module_slot_kind(module, "weight_mask") != 0 ? "weight_mask"
                                                                                    : "weight"),
              got, count);
    for (int64_t k = 0; k < count; k++)
        ck_assert_msg(fabs(got[k] - wanted[k]) <= 1e-6 * fabs(wanted[k]),
                      "%s: step %d: [%d]: %.9g, not %.9g", r->name, (int)r->steps, (int)k, got[k],
                      wanted[k]);
}

static void compare_error(struct replay *r, const char *type)
{
    static const struct {
        const char *name;
        tn_status status;
    } types[] = { { "ValueError", TN_ERR_VALUE },
                  { "TypeError", TN_ERR_TYPE },
                  { "IndexError", TN_ERR_INDEX },
                  { "AssertionError", TN_ERR_VALUE } };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0) {
            ck_assert_msg(r->status == types[i].status, "%s: %s: %s", r->name, type,
                          tn_error_text());
            tn_error_clear();
            r->status = TN_OK;
            return;
        }
    ck_abort_msg("%s: %s", r->name, type);
}

static void end_case(struct replay *r)
{
    for (int64_t i = 0; i < r->count; i++)
        tn_module_drop(r->modules[i]);
    *r = (struct replay){ .steps = r->steps };
}

static void step(struct replay *r, char *line)
{
    char *rest = strchr(line, ' ');

    *rest++ = '\0';
    if (strcmp(line, "case") == 0) {
        end_case(r);
        snprintf(r->name, sizeof r->name, "%s", rest);
    } else if (strcmp(line, "tensor") == 0) {
        add_tensor(r, rest);
    } else if (strcmp(line, "prune") == 0) {
        prune(r, rest);
    } else if (strcmp(line, "mask") == 0) {
        int64_t i = strtoll(rest, NULL, 10);

        r->status = tn_prune_from_mask(r->modules[i], "weight", read_tensor(rest, now(r, i)));
    } else if (strcmp(line, "scores") == 0) {
        int64_t i = strtoll(rest, NULL, 10);

        r->scores[i] = read_tensor(rest, now(r, i));
    } else if (strcmp(line, "global") == 0) {
        prune_all(r, rest);
    } else if (strcmp(line, "remove") == 0) {
        r->status = tn_prune_remove(r->modules[strtoll(rest, NULL, 10)], "weight");
    } else if (strcmp(line, "is") == 0) {
        compare(r, rest);
    } else if (strcmp(line, "error") == 0) {
        compare_error(r, rest);
    } else {
        ck_abort_msg("%s", line);
    }
    r->steps++;
}

START_TEST(masks_values_and_failures_are_those_of_pytorch)
{
    FILE *file = fopen(path, "r");
    char *line = malloc(LINE);
    struct replay r = { 0 };
    TN_SCOPE;

    ck_assert_msg(file != NULL && line != NULL, "%s", path);
    while (fgets(line, LINE, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '#')
            step(&r, line);
    }
    end_case(&r);
    fclose(file);
    free(line);
    ck_assert_int_gt(r.steps, 200);
    TN_PROVES("PRN-004", "PRN-007", "PRN-008", "PRN-009", "PRN-011", "PRN-012");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { masks_values_and_failures_are_those_of_pytorch, NULL };
    const char *other = getenv("TENON_TEST_PRUNE");

    path = other != NULL ? other : TN_TEST_SRCDIR "/tests/module/prune.txt";
    return suite_run("prune beside pytorch", tests);
}
