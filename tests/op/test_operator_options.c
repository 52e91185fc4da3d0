/* SPDX-License-Identifier: MIT
 *
 * Extreme values of every option of every operator: time and memory are bounded, and the result or
 * error is that of PyTorch, if PyTorch has the operator (tests/oracle/operator_options.txt).
 * `--list` prints what make_operator_options.py reads. */
#include <math.h>

#include "tests/oracle/option_rows.h"
#include "tests/op/suite.h"
#include "tests/oracle/rows.h"
#include "tests/oracle/shares.h"

#define ORACLE TN_TEST_SRCDIR "/tests/oracle/"

enum { LINE = 1 << 16, MOST = 16, VALUES = 4096, SPACE = 512, OPTIONS = 1024 };

/* Where Tenon intentionally differs from PyTorch, with the reason. */
static difference differences[] = {
    { "*", "*", "()", "in an option struct an empty row is one that was not given", 0 },
    { "*", "*", "1e+308", "beyond float32: the value that the type gives it, infinity", 0 },
    { "adaptive_*", "output_size", "-1", "as x has it: PyTorch's None", 0 },
    { "avg_pool1d", "divisor_override", "*", "PyTorch has it for two and three dimensions", 0 },
    { "conv*", "stride", "*", "kernels count strides in 32 bits", 0 },
    { "max_pool1d", "stride", "*", "as above", 0 },
    { "conv1d", "auto_padding", "''", "PyTorch has it in padding", 0 },
    { "cross_entropy", "label_smoothing", "*", "a share is between 0 and 1", 0 },
    { "gaussian_nll_loss", "eps", "*", "a variance is not raised to a negative number", 0 },
    { "normalize", "eps", "nan", "a length cannot be kept above NaN", 0 },
    { "im2col", "padding", "0", "one number stands for both dimensions", 0 },
    { "fold", "padding", "0", "as above", 0 },
    { "triplet_margin_loss", "margin", "nan", "NaN is not greater than 0", 0 },
    { "conv2d", "auto_padding", "''", "PyTorch has it in padding", 0 },
    { "conv3d", "auto_padding", "''", "as above", 0 },
    { "adaptive_*", "output_size", "0", "one number stands for all dimensions", 0 },
    { "max_unpool1d", "kernel", "0", "a window has an element", 0 },
    { "max_unpool1d", "padding", "-1", "no padding is less than none", 0 },
    { "scaled_dot*", "dropout_p", "*", "a probability is between 0 and 1", 0 },
    { "roll", "shifts", "-92*", "a shift counts modulo the size", 0 },
    { "fft_rfftfreq", "n", "-1", "a number of samples is not negative", 0 },
    { "polygamma", "n", "*", "factorials of larger orders are out of range", 0 },
    { NULL, NULL, NULL, NULL, 0 },
};

static char line[LINE];
static double values[VALUES];
static char asked[OPTIONS][96]; /* "conv2d.stride" */
static int n_asked;

static struct {
    const tn_op *op;
    tn_tensor *in[MOST];
    int64_t n_in;
    _Alignas(16) uint8_t options[SPACE], changed[SPACE];
    int64_t rows[MOST][TN_MAX_DIMS];
    double numbers[MOST][TN_MAX_DIMS];
    char texts[MOST][32];
    int n_rows, n_texts;
    const char *option, *value, *verdict;
} one;

/* ---- a case ---- */

static const tn_option *row_of(const char *name)
{
    const tn_option *row = tn_op_definition(one.op)->options;

    while (row->kind != TN_OPTION_KIND_END && strcmp(row->name, name) != 0)
        row++;
    ck_assert_msg(row->kind != TN_OPTION_KIND_END, "%s: no option %s", current, name);
    return row;
}

static tn_dtype dtype_of(const char *name)
{
    tn_dtype dtype = TN_F32;

    ck_assert_int_eq(tn_dtype_parse(name, &dtype), TN_OK);
    return dtype;
}

static void set_option(uint8_t *options, const char *name, const char *text)
{
    const tn_option *row = row_of(name);
    void *at = options + row->offset;
    int n = one.n_rows;

    ck_assert_int_lt(n, MOST);
    ck_assert_int_lt(one.n_texts, MOST);
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: *(bool *)at = strcmp(text, "True") == 0; break;
    case TN_OPTION_KIND_INT: *(int64_t *)at = strtoll(text, NULL, 10); break;
    case TN_OPTION_KIND_FLOAT: *(double *)at = strtod(text, NULL); break;
    case TN_OPTION_KIND_SCALAR: *(tn_scalar *)at = read_scalar(text); break;
    case TN_OPTION_KIND_STRING:
        snprintf(one.texts[one.n_texts], sizeof one.texts[0], "%.31s", text);
        *(const char **)at = one.texts[one.n_texts++];
        break;
    case TN_OPTION_KIND_INTS:
        *(tn_ints *)at = (tn_ints){ one.rows[n], read_row(text, one.rows[n]) };
        one.n_rows++;
        break;
    case TN_OPTION_KIND_FLOATS:
        *(tn_floats *)at = (tn_floats){ one.numbers[n], read_numbers(text, one.numbers[n]) };
        one.n_rows++;
        break;
    case TN_OPTION_KIND_DTYPE: *(tn_dtype *)at = dtype_of(text); break;
    default: ck_abort_msg("%s: option %s of a kind that this test does not set", current, name);
    }
}

static void read_input(const char *text)
{
    char dtype[16], shape[128], strides[128], grad;
    int64_t sizes[TN_MAX_DIMS], steps[TN_MAX_DIMS], ndim, count = 0;
    long long offset;
    int used = 0;

    ck_assert_int_lt(one.n_in, MOST);
    if (strncmp(text, "none", 4) == 0) {
        one.in[one.n_in++] = TN_NONE;
        return;
    }
    ck_assert_int_eq(
        sscanf(text, "%15s %127s %127s %lld %c :%n", dtype, shape, strides, &offset, &grad, &used),
        5);
    text += used + strspn(text + used, " ");
    for (char *end; *text != '\0'; text = end + strspn(end, " \n")) {
        ck_assert_int_lt(count, VALUES);
        values[count++] = strtod(text, &end);
    }
    bool pairs = (TN_MASK_COMPLEX & TN_BIT(dtype_of(dtype))) != 0;
    tn_tensor *wide = pairs ? tn_tensor_from(values, TN_C128, TN_SHAPE(count / 2))
                            : tn_tensor_from(values, TN_F64, TN_SHAPE(count));
    ndim = read_row(shape, sizes);
    read_row(strides, steps);
    tn_tensor *x = tn_tensor_as_strided(tn_cast(wide, dtype_of(dtype)), (tn_ints){ sizes, ndim },
                                        (tn_ints){ steps, ndim }, offset);
    ck_assert_msg(x != NULL, "%s: %s", current, tn_error_text());
    one.in[one.n_in++] = tn_tensor_keep(x);
}

static void drop_case(void)
{
    while (one.n_in > 0)
        if (one.in[--one.n_in] != TN_NONE)
            tn_tensor_drop(one.in[one.n_in]);
    one.n_rows = one.n_texts = 0;
}

/* For operators without a suitable case in the texts: the call must return, with any result or
 * error. */
static void take_ones(const tn_op_def *def)
{
    for (int32_t i = 0; i < def->n_inputs; i++) {
        TN_SCOPE;
        bool optional = (def->inputs[i].flags & TN_OPERAND_OPTIONAL) != 0;

        one.in[one.n_in++] = optional ? TN_NONE
                                      : tn_tensor_keep(
                                            tn_tensor_full(TN_SHAPE(2, 3), 1.0, TN_F32, NULL));
    }
}

static void take_case(const char *op, const char *file_name, const char *name)
{
    char path[512];
    bool ours = false, seen = false;
    const tn_op_def *def;

    drop_case();
    snprintf(current, sizeof current, "%s of %s", name, file_name);
    one.op = tn_op_find(op, 0);
    ck_assert_msg(one.op != NULL, "%s: %s", current, tn_error_text());
    def = tn_op_definition(one.op);
    ck_assert_uint_le(def->options_size, SPACE);
    memcpy(one.options, def->defaults, def->options_size);
    if (strcmp(file_name, "-") == 0) {
        take_ones(def);
        return;
    }
    snprintf(path, sizeof path, ORACLE "%s", file_name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    while (fgets(line, LINE, file) != NULL) {
        TN_SCOPE;
        char first[64], second[160];

        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "case ", 5) == 0)
            ours = !seen && strcmp(line + 5, name) == 0;
        else if (ours && strncmp(line, "op ", 3) == 0)
            ours = strcmp(line + 3, op) == 0;
        else if (ours && strncmp(line, "opt ", 4) == 0 &&
                 sscanf(line + 4, "%63s %159s", first, second) == 2)
            set_option(one.options, first, second);
        else if (ours && strncmp(line, "in ", 3) == 0)
            read_input(line + 3);
        else if (ours && strncmp(line, "out ", 4) == 0)
            break;
        seen |= ours;
    }
    fclose(file);
    ck_assert_msg(seen, "%s is not there", current);
}

/* ---- a row ---- */

static void try_row(void *user)
{
    TN_SCOPE;
    const tn_op_def *def = tn_op_definition(one.op);
    tn_tensor *in[MOST], *out[MOST] = { NULL };
    int64_t n_in = one.n_in;
    bool none = (row_of(one.option)->flags & TN_OPTION_OPTIONAL) != 0 &&
                (strcmp(one.value, "-9223372036854775808") == 0 || strcmp(one.value, "nan") == 0);

    (void)user;
    tn_grad_begin(false);
    for (int64_t i = 0; i < n_in; i++) /* an operator may write into its inputs */
        in[i] = one.in[i] == TN_NONE ? TN_NONE : tn_clone(one.in[i]);
    memcpy(one.changed, one.options, def->options_size);
    set_option(one.changed, one.option,
               strcmp(one.value, "()") == 0   ? "-"
               : strcmp(one.value, "''") == 0 ? ""
                                              : one.value);
    tn_random_seed(3);
    tn_status status = tn_op_call(one.op, in, n_in, one.changed, out, def->n_outputs);
    judge(one.verdict,
          status != TN_OK      ? NULL
          : def->n_outputs > 0 ? out[0]
                               : in[0],
          def->name, one.option,
          none || is_difference(differences, def->name, one.option, one.value));
    tn_error_clear();
    tn_grad_end();
}

static void read_try(char *text)
{
    int rows = one.n_rows, texts = one.n_texts;
    char *value = strchr(text, ' '), *verdict = value != NULL ? strchr(value + 1, ' ') : NULL;

    ck_assert_ptr_nonnull(verdict);
    *value++ = *verdict++ = '\0';
    one.option = text;
    one.value = value;
    one.verdict = verdict;
    snprintf(current, sizeof current, "%s(%s=%s)", tn_op_definition(one.op)->name, text, value);
    ck_assert_int_lt(n_asked, OPTIONS);
    snprintf(asked[n_asked], sizeof asked[0], "%.40s.%.40s", tn_op_definition(one.op)->name, text);
    if (n_asked == 0 || strcmp(asked[n_asked], asked[n_asked - 1]) != 0)
        n_asked++;
    run_row(try_row, NULL);
    one.n_rows = rows;
    one.n_texts = texts;
}

START_TEST(every_option_of_every_operator_at_its_extremes_is_answered_as_pytorch_does)
{
    static char row[512];
    char op[64], file_name[64];
    int used = 0;
    FILE *file = fopen(ORACLE "operator_options.txt", "r");

    bound_all();
    ck_assert_ptr_nonnull(file);
    while (fgets(row, sizeof row, file) != NULL) {
        row[strcspn(row, "\n")] = '\0';
        if (sscanf(row, "op %63s %63s %n", op, file_name, &used) == 2)
            take_case(op, file_name, row + used);
        else if (strncmp(row, "try ", 4) == 0)
            read_try(row + 4);
    }
    fclose(file);
    drop_case();
    expect_all_right(differences, 1500);
}
END_TEST

/* A number that is not a dtype is refused by every operator that takes one. */
/* A dtype that the operand accepts: float32, or the first one. */
static tn_dtype accepted(const tn_operand *operand)
{
    return operand->dtypes == 0 || (operand->dtypes & TN_BIT(TN_F32)) != 0
               ? TN_F32
               : (tn_dtype)__builtin_ctzll(operand->dtypes);
}

START_TEST(no_operator_takes_a_number_that_is_no_element_type)
{
    static const int numbers[] = { TN_DTYPE_COUNT, 31, 32, 99, 254, 256, -1, 1 << 30 };
    int seen = 0;

    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op *op = tn_op_find(tn_op_name_at(i), 0);
        const tn_op_def *def = tn_op_definition(op);

        for (const tn_option *row = def->options; row != NULL && row->kind != TN_OPTION_KIND_END;
             row++) {
            if (row->kind != TN_OPTION_KIND_DTYPE)
                continue;
            seen++;
            for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
                TN_SCOPE;
                tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 1.0, TN_F32, NULL), *in[MOST],
                          *out[MOST] = { NULL };

                memcpy(one.options, def->defaults, def->options_size);
                memcpy(one.options + row->offset, &numbers[n], sizeof(tn_dtype));
                for (int32_t k = 0; k < def->n_inputs; k++)
                    in[k] = tn_cast(x, accepted(&def->inputs[k]));
                ck_assert_msg(tn_op_call(op, in, def->n_inputs, one.options, out, def->n_outputs) !=
                                  TN_OK,
                              "%s takes dtype %d", def->name, numbers[n]);
                ck_assert_msg(strstr(tn_error_text(), "unknown dtype") != NULL, "%s: %s", def->name,
                              tn_error_text());
                tn_error_clear();
            }
        }
    }
    ck_assert_int_gt(seen, 10);
}
END_TEST

/* ---- whose memory results have ---- */

static int64_t rows_of_numbers[MOST][TN_MAX_DIMS];

/* Sets an option to `number`; of a list all entries. */
static void set_number(const tn_option *row, int at, uint8_t *options, int64_t number)
{
    void *place = options + row->offset;
    int64_t *list = rows_of_numbers[at];
    int64_t count;

    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: *(bool *)place = number > 0; break;
    case TN_OPTION_KIND_INT: *(int64_t *)place = number; break;
    case TN_OPTION_KIND_FLOAT: *(double *)place = (double)number; break;
    case TN_OPTION_KIND_SCALAR: *(tn_scalar *)place = tn_scalar_int(number); break;
    case TN_OPTION_KIND_INTS:
        count = ((tn_ints *)place)->count > 0 ? ((tn_ints *)place)->count : 1;
        for (int64_t i = 0; i < count; i++)
            list[i] = number;
        *(tn_ints *)place = (tn_ints){ list, count };
        break;
    default: break;
    }
}

/* The inputs of the case; with `single` the first slice along each dimension. */
static void take_inputs(tn_tensor **in, bool single)
{
    for (int64_t i = 0; i < one.n_in; i++) {
        in[i] = one.in[i] == TN_NONE ? TN_NONE : tn_clone(one.in[i]);
        for (int64_t d = 0; single && in[i] != TN_NONE && d < tn_tensor_ndim(one.in[i]); d++)
            if (tn_tensor_size(in[i], d) > 1)
                in[i] = tn_copy(tn_narrow(in[i], d, 0, 1));
        ck_assert_msg(in[i] != NULL, "%s: %s", current, tn_error_text());
    }
}

static void expect_own_memory(bool single)
{
    TN_SCOPE;
    const tn_op_def *def = tn_op_definition(one.op);
    tn_tensor *in[MOST], *out[MOST] = { NULL };

    tn_grad_begin(false);
    take_inputs(in, single);
    tn_status status = tn_op_call(one.op, in, one.n_in, one.changed, out, def->n_outputs);
    for (int32_t i = 0; status == TN_OK && i < def->n_outputs; i++) {
        const char *wrong = wrong_memory(def, out[i], in, one.n_in);

        if (wrong != NULL)
            wrong_row(single ? "with sizes of 1: %s" : "%s", wrong);
    }
    rows_run += status == TN_OK;
    tn_error_clear();
    tn_grad_end();
}

/* Each option alone, then all options, are `number`. */
static void try_numbers(const tn_op_def *def, int64_t number)
{
    int count = 0;

    for (const tn_option *row = def->options; row != NULL && row->kind != TN_OPTION_KIND_END; row++)
        count++;
    ck_assert_int_le(count, MOST);
    for (int alone = 0; alone <= count; alone++) {
        memcpy(one.changed, one.options, def->options_size);
        for (int at = 0; at < count; at++)
            if (alone == count || alone == at)
                set_number(&def->options[at], at, one.changed, number);
        snprintf(current, sizeof current, "%s(%s=%d)", def->name,
                 alone < count ? def->options[alone].name : "all", (int)number);
        expect_own_memory(false);
        expect_own_memory(true);
    }
}

/* A later write into such a result would change the input. */
START_TEST(results_have_the_memory_of_inputs_exactly_where_the_schema_says_view)
{
    static char row[512];
    char op[64], file_name[64];
    int used = 0;
    FILE *file = fopen(ORACLE "operator_options.txt", "r");

    ck_assert_ptr_nonnull(file);
    rows_run = rows_wrong = 0;
    while (fgets(row, sizeof row, file) != NULL) {
        row[strcspn(row, "\n")] = '\0';
        if (sscanf(row, "op %63s %63s %n", op, file_name, &used) != 2)
            continue;
        take_case(op, file_name, row + used);
        for (int64_t number = -1; number <= 2; number++)
            try_numbers(tn_op_definition(one.op), number);
    }
    fclose(file);
    drop_case();
    ck_assert_int_gt(rows_run, 1000);
    ck_assert_int_eq(rows_wrong, 0);
}
END_TEST

/* ---- which options there are ---- */

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [TN_OPTION_KIND_INT] = "int",     [TN_OPTION_KIND_FLOAT] = "float",
        [TN_OPTION_KIND_INTS] = "ints",   [TN_OPTION_KIND_FLOATS] = "floats",
        [TN_OPTION_KIND_STRING] = "text", [TN_OPTION_KIND_BOOL] = "bool",
        [TN_OPTION_KIND_DTYPE] = "dtype", [TN_OPTION_KIND_SCALAR] = "float"
    };

    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

static void each_option(void (*take)(const char *op, const tn_option *row))
{
    for (int64_t i = 0; i < tn_op_count(); i++) {
        const char *name = tn_op_name_at(i);

        for (const tn_option *row = tn_op_definition(tn_op_find(name, 0))->options;
             row != NULL && row->kind != TN_OPTION_KIND_END; row++)
            take(name, row);
    }
}

static void expect_asked(const char *op, const tn_option *row)
{
    char name[96];

    if (row->kind == TN_OPTION_KIND_BOOL || row->kind == TN_OPTION_KIND_DTYPE)
        return;
    snprintf(name, sizeof name, "%s.%s", op, row->name);
    for (int i = 0; i < n_asked; i++)
        if (strcmp(asked[i], name) == 0)
            return;
    fprintf(stderr, "%s: no row\n", name);
    rows_wrong++;
}

START_TEST(no_option_of_an_operator_is_left_out)
{
    rows_wrong = 0;
    each_option(expect_asked);
    ck_assert_int_eq(rows_wrong, 0);
}
END_TEST

static void list_option(const char *op, const tn_option *row)
{
    printf("op %s %s %s\n", op, row->name, kind_name(row->kind));
}

int main(int argc, char **argv)
{
    TCase *tcase = tcase_create("options");
    Suite *suite = suite_create("options of operators");

    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        each_option(list_option);
        return 0;
    }
    each_alone = argc > 1 && strcmp(argv[1], "--each") == 0;
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase,
                   every_option_of_every_operator_at_its_extremes_is_answered_as_pytorch_does);
    tcase_add_test(tcase, no_operator_takes_a_number_that_is_no_element_type);
    tcase_add_test(tcase, no_option_of_an_operator_is_left_out);
    tcase_add_test(tcase, results_have_the_memory_of_inputs_exactly_where_the_schema_says_view);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
