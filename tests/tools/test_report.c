/* SPDX-License-Identifier: MIT
 *
 * The files that a report writes: metrics.csv and the event file, whole, resumed, on a disk that is
 * full, without memory. `test_report --write FOLDER` writes what read_report.py reads. */
#include "readers.h"

#include "tools/train/report_private.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tests of test_page.c. */
int page_run(void);

static char folder[256];

static const char *in(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Begins with an empty folder of this test. */
static void begin(const char *name)
{
    snprintf(folder, sizeof folder, "%s/test_report.%s.%d", TN_TEST_BUILDDIR, name, (int)getpid());
    unlink(in("metrics.csv"));
    unlink(in("events.out.tfevents.tenon"));
    unlink(in("report.html"));
}

static void finish(void)
{
    unlink(in("metrics.csv"));
    unlink(in("events.out.tfevents.tenon"));
    unlink(in("report.html"));
    ck_assert_int_eq(rmdir(folder), 0); /* no other files were left */
}

static report *open_as(int how, int64_t step)
{
    report *r;
    report_setup setup = { .folder = folder, .how = how, .resume_step = step };
    ck_assert_msg(report_open(&r, &setup) == TN_OK, "%s", tn_error_text());
    return r;
}

#define good(call) ck_assert_msg((call) == TN_OK, "%s", tn_error_text())

static void expect_csv(const char *wanted)
{
    bytes file = read_whole(in("metrics.csv"));
    ck_assert_str_eq((const char *)file.at, wanted);
    free(file.at);
}

/* ---- metrics.csv ----------------------------------------------------------------------------- */

START_TEST(rows_have_the_values_of_their_steps)
{
    begin("rows");
    report *r = open_as(REPORT_NEW, 0);
    good(report_scalar(r, "loss", 1, 0.1));
    good(report_scalar(r, "rate", 1, 1e-300));
    good(report_scalar(r, "loss", 2, 0.1 + 0.2));
    good(report_scalar(r, "loss", 5, NAN));
    good(report_scalar(r, "rate", 5, -INFINITY));
    good(report_flush(r));
    expect_csv("step,loss,rate\n1,0.1,1e-300\n2,0.30000000000000004,\n5,nan,-inf\n");
    /* A new scalar of the same step changes the row, and the columns of all rows. */
    good(report_scalar(r, "top, \"5\"", 5, 3));
    good(report_scalar(r, "loss", 5, 7));
    good(report_scalar(r, "loss", INT64_MAX, 1.7976931348623157e308));
    good(report_close(r, NULL));
    expect_csv("step,loss,rate,\"top, \"\"5\"\"\"\n1,0.1,1e-300,\n2,0.30000000000000004,,\n"
               "5,7.0,-inf,3.0\n9223372036854775807,1.7976931348623157e+308,,\n");
    finish();
}
END_TEST

START_TEST(an_empty_run_and_one_of_one_step_have_all_files)
{
    begin("empty");
    good(report_close(open_as(REPORT_NEW, 0), "finished"));
    expect_csv("step\n");
    report *r = open_as(REPORT_NEW, 0); /* no row, nothing to lose */
    good(report_scalar(r, "loss", 0, 2));
    good(report_epoch(r, 1, 0, 1.5));
    good(report_close(r, "finished"));
    expect_csv("step,loss,epoch,epoch_seconds\n0,2.0,1.0,1.5\n");
    bytes page = read_whole(in("report.html"));
    ck_assert_ptr_nonnull(strstr((char *)page.at, "</html>"));
    free(page.at);
    finish();
}
END_TEST

START_TEST(wrong_calls_are_refused_and_change_nothing)
{
    report *r;
    report_setup setup = { .folder = NULL };
    ck_assert_int_eq(report_open(&r, &setup), TN_ERR_VALUE);
    ck_assert_ptr_null(r);
    expect_failure(TN_ERR_VALUE, "folder");
    begin("wrong");
    r = open_as(REPORT_NEW, 0);
    good(report_scalar(r, "loss", 7, 1));
    ck_assert_int_eq(report_scalar(r, "loss", 6, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "it goes back, got 6; expected 7 or more");
    ck_assert_int_eq(report_scalar(r, "a\nb", 8, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "control character");
    ck_assert_int_eq(report_scalar(r, "", 8, 1), TN_ERR_VALUE);
    ck_assert_int_eq(report_scalar(r, "step", 8, 1), TN_ERR_VALUE);
    tn_error_clear();
    int64_t class = 0;
    ck_assert_int_eq(report_predictions(r, &class, &class, 1), TN_ERR_INDEX);
    expect_failure(TN_ERR_INDEX, "got class 0; expected one of 0 classes");
    good(report_close(r, NULL));
    expect_csv("step,loss\n7,1.0\n");
    setup.folder = folder;
    ck_assert_int_eq(report_open(&r, &setup), TN_ERR_REFUSED);
    expect_failure(TN_ERR_REFUSED, "it has the files of a run");
    expect_csv("step,loss\n7,1.0\n");
    finish();
}
END_TEST

/* ---- the event file -------------------------------------------------------------------------- */

START_TEST(events_hold_scalars_and_histograms)
{
    TN_SCOPE;
    float values[1000];
    bytes value, event;
    size_t size = 0, inner = 0;
    begin("events");
    report *r = open_as(REPORT_NEW, 0);
    for (int i = 0; i < 1000; i++)
        values[i] = i < 990 ? (float)(i % 10) : i < 999 ? NAN : 500;
    tn_tensor *tensor = tn_tensor_from(values, TN_F32, TN_SHAPE(10, 100));
    good(report_scalar(r, "loss", 300, 0.1));
    good(report_scalar(r, "huge", 300, 1e300));
    good(report_histogram(r, REPORT_WEIGHTS, "a.b", 300, tensor));
    good(report_close(r, NULL));

    bytes file = read_whole(in("events.out.tfevents.tenon"));
    ck_assert(event_at(&file, 0, &event));
    const unsigned char *version = field(event.at, event.size, 3, 0, &size);
    ck_assert_uint_eq(size, 13);
    ck_assert_mem_eq(version, "brain.Event:2", 13);
    ck_assert(event_at(&file, 1, &event) && !event_at(&file, 2, &event));
    ck_assert_int_eq(find_value(&file, "loss", 300, &value), 1);
    ck_assert(float_at(field(value.at, value.size, 2, 0, &size)) == 0.1f);
    ck_assert_int_eq(find_value(&file, "huge", 300, &value), 1);
    ck_assert(isinf(float_at(field(value.at, value.size, 2, 0, &size))));
    ck_assert_int_eq(find_value(&file, "weights/a.b", 300, &value), 1);
    const unsigned char *bins = field(value.at, value.size, 5, 0, &size);
    const double wanted[] = { 0, 500, 991, 99 * 45 + 500, 99 * 285 + 250000 };
    for (uint64_t i = 1; i <= 5; i++)
        ck_assert(real_at(field(bins, size, i, 0, &inner)) == wanted[i - 1]);
    /* The bins whose limits are below 5 hold the values 0 to 4. */
    const unsigned char *limits = field(bins, size, 6, 0, &inner);
    const unsigned char *counts = field(bins, size, 7, 0, &inner);
    ck_assert_uint_eq(inner, 66 * 8);
    double below = 0, all = 0, last = -1;
    for (int i = 0; i < 66; i++) {
        double limit = real_at(limits + 8 * i), count = real_at(counts + 8 * i);
        ck_assert(limit >= last);
        last = limit;
        all += count;
        /* The bins are 1.08 wide: 64 of them reach to the mean plus 4 standard deviations. */
        below += limit < 5 ? count : 0;
    }
    ck_assert(all == 991 && last == 500 && below <= 495 && below >= 99 * 4);
    free(file.at);
    finish();
}
END_TEST

/* ---- resume ---------------------------------------------------------------------------------- */

static void run_steps(report *r, int64_t from, int64_t to, tn_tensor *tensor)
{
    for (int64_t step = from; step <= to; step++) {
        good(report_scalar(r, "loss", step, 1.0 / (double)step));
        if (step % 3 == 0)
            good(report_histogram(r, REPORT_GRADIENTS, "w", step, tensor));
        if (step % 2 == 0)
            good(report_epoch(r, step / 2, step, 0.5));
    }
}

START_TEST(a_resumed_run_has_every_step_once)
{
    TN_SCOPE;
    bytes value;
    float values[4] = { 1, 2, 3, 4 };
    tn_tensor *tensor = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    begin("whole");
    report *r = open_as(REPORT_NEW, 0);
    run_steps(r, 1, 12, tensor);
    good(report_close(r, NULL));
    bytes csv = read_whole(in("metrics.csv")), events = read_whole(in("events.out.tfevents.tenon"));
    finish();

    begin("resumed");
    r = open_as(REPORT_NEW, 0);
    run_steps(r, 1, 9, tensor);
    good(report_close(r, NULL));
    /* What a crash in the middle of a write leaves. */
    FILE *file = fopen(in("metrics.csv"), "a");
    fputs("10,0.", file);
    fclose(file);
    file = fopen(in("events.out.tfevents.tenon"), "a");
    fwrite("\x20\0\0\0\0\0\0\0\x12", 1, 9, file);
    fclose(file);
    r = open_as(REPORT_RESUME, 6);
    ck_assert_int_eq(r->spreads.spreads[0].count, 2);
    ck_assert(r->spreads.spreads[0].times[1].step == 6 && r->spreads.spreads[0].times[1].sum == 10);
    ck_assert_int_eq(r->epoch_count, 3);
    double loss[8];
    int64_t steps[8];
    ck_assert_int_eq(report_values(r, "loss", steps, loss, 8), 6);
    ck_assert(steps[5] == 6 && loss[5] == 1.0 / 6);
    good(report_scalar(r, "loss", 6, 1.0 / 6)); /* the row may still grow */
    run_steps(r, 7, 12, tensor);
    good(report_close(r, NULL));
    expect_csv((char *)csv.at);
    bytes again = read_whole(in("events.out.tfevents.tenon"));
    for (uint64_t step = 1; step <= 12; step++) {
        ck_assert_int_eq(find_value(&again, "loss", step, &value), step == 6 ? 2 : 1);
        ck_assert(float_at(field(value.at, value.size, 2, 0, &value.size)) == 1 / (float)step);
        ck_assert_int_eq(find_value(&again, "gradients/w", step, &value), step % 3 == 0);
    }
    bytes event;
    for (int i = 0; event_at(&again, i, &event); i++)
        ck_assert_int_lt(i, 14 + 1);
    free(csv.at);
    free(events.at);
    free(again.at);
    finish();
}
END_TEST

START_TEST(a_file_of_something_else_is_not_resumed)
{
    static const char *const texts[][2] = { { "a,b\n1,2\n", "the first column is not step" },
                                            { "step,a,a\n", "a column is there twice" },
                                            { "step,a\n1,2\n1,2\n", "line 3" },
                                            { "step,a\n1,2,3\n", "more fields" },
                                            { "step,a,b\n1,2\n", "fewer fields" },
                                            { "step,a\n1,x\n", "not a number" },
                                            { "step,a\nx,1\n", "no step" } };
    begin("other");
    mkdir(folder, 0777);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        report *r;
        report_setup setup = { .folder = folder, .how = REPORT_RESUME, .resume_step = 9 };
        FILE *file = fopen(in("metrics.csv"), "w");
        fputs(texts[i][0], file);
        fclose(file);
        ck_assert_int_eq(report_open(&r, &setup), TN_ERR_FORMAT);
        expect_failure(TN_ERR_FORMAT, texts[i][1]);
        expect_csv(texts[i][0]);
    }
    finish();
}
END_TEST

static void ignore(void *user, int level, const char *plugin, const char *text)
{
    (void)user, (void)level, (void)plugin, (void)text;
}

START_TEST(damaged_events_are_not_believed)
{
    TN_SCOPE;
    float values[4] = { 1, 2, 3, 4 };
    tn_tensor *tensor = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    begin("damaged");
    report *r = open_as(REPORT_NEW, 0);
    run_steps(r, 1, 3, tensor);
    good(report_close(r, NULL));
    bytes events = read_whole(in("events.out.tfevents.tenon"));
    tn_set_log_sink(ignore, NULL);
    for (size_t i = 0; i < events.size; i += 3) {
        FILE *file = fopen(in("events.out.tfevents.tenon"), "w");
        events.at[i] ^= 0x20;
        fwrite(events.at, 1, events.size, file);
        events.at[i] ^= 0x20;
        fclose(file);
        r = open_as(REPORT_RESUME, 3);
        ck_assert_int_le(r->spreads.count, 1);
        good(report_scalar(r, "loss", 4, 1));
        good(report_close(r, NULL));
        bytes again = read_whole(in("events.out.tfevents.tenon")), value;
        ck_assert_int_eq(find_value(&again, "loss", 4, &value), 1);
        free(again.at);
    }
    free(events.at);
    finish();
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

START_TEST(folders_and_full_disks_are_reported)
{
    report *r;
    report_setup setup = { .folder = "/dev/null/run" };
    ck_assert_int_eq(report_open(&r, &setup), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "the folder cannot be made");

    begin("full");
    mkdir(folder, 0777);
    ck_assert_int_eq(symlink("/dev/full", in("metrics.csv")), 0);
    setup = (report_setup){ .folder = folder, .how = REPORT_REPLACE };
    ck_assert_int_eq(report_open(&r, &setup), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "No space left on device");
    unlink(in("metrics.csv"));

    r = open_as(REPORT_NEW, 0);
    struct rlimit was, small;
    getrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_IGN);
    small = (struct rlimit){ 2000, was.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
    int64_t step = 1, failed = 0;
    for (; step <= 400; step++)
        failed += report_scalar(r, "loss", step, 1) == TN_ERR_IO;
    tn_status page = report_page(r);
    setrlimit(RLIMIT_FSIZE, &was);
    expect_failure(TN_ERR_IO, "it cannot be written");
    ck_assert_int_eq(page, TN_ERR_IO);
    ck_assert_int_gt(failed, 100);
    ck_assert_int_ne(access(in("report.html"), F_OK), 0);
    /* With space again, the run continues; no row and no event is broken. */
    good(report_scalar(r, "loss", step, 0.5));
    good(report_close(r, NULL));
    bytes csv = read_whole(in("metrics.csv")), events = read_whole(in("events.out.tfevents.tenon"));
    int64_t last = 0;
    char *line = strchr((char *)csv.at, '\n') + 1;
    for (; *line != '\0'; line = strchr(line, '\n') + 1) {
        int64_t number = strtoll(line, &line, 10);
        ck_assert_int_gt(number, last);
        ck_assert_mem_eq(line, number == step ? ",0.5\n" : ",1.0\n", 5);
        last = number;
    }
    bytes value;
    ck_assert_int_eq(last, step);
    ck_assert_int_eq(find_value(&events, "loss", (uint64_t)step, &value), 1);
    free(csv.at);
    free(events.at);
    finish();
}
END_TEST

static tn_status whole_run(tn_tensor *image)
{
    report *r;
    const char *classes[] = { "a", "b" };
    report_setup setup = {
        .folder = folder, .how = REPORT_REPLACE, .classes = classes, .class_count = 2
    };
    int64_t truth[] = { 0, 1, 1 }, predicted[] = { 0, 1, 0 };
    report_sample sample = { .image = image, .truth = 1, .loss = 2 };
    tn_status first = report_open(&r, &setup), status;
    if (first != TN_OK)
        return first;
#define step(call)                                                                                 \
    if ((status = (call)) != TN_OK && first == TN_OK)                                              \
    first = status
    step(report_scalar(r, "loss/train", 1, 1));
    step(report_scalar(r, "loss/validation", 1, 2));
    step(report_predictions(r, truth, predicted, 3));
    step(report_worst(r, &sample));
    step(report_histogram(r, REPORT_WEIGHTS, "w", 1, image));
    step(report_epoch(r, 1, 1, 1));
    step(report_scalar(r, "loss/train", 2, 1));
    step(report_close(r, NULL));
#undef step
    return first;
}

START_TEST(every_allocation_may_fail)
{
    TN_SCOPE;
    uint64_t failures = 0;
    begin("memory");
    tn_tensor *image = tn_tensor_full(TN_SHAPE(3, 8, 8), tn_scalar_float(0.5), TN_F32, NULL);
    ck_assert_int_eq(whole_run(image), TN_OK);
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_status status = whole_run(image);
        bool reached = tn__memory_fail(0) >= n;
        ck_assert_msg(status == TN_ERR_MEMORY || status == TN_OK, "allocation %d: %s", (int)n,
                      tn_error_text());
        failures += status == TN_ERR_MEMORY;
        tn_error_clear();
        if (!reached)
            break;
    }
    ck_assert_uint_gt(failures, 50);
    ck_assert_int_eq(whole_run(image), TN_OK);
    finish();
}
END_TEST

START_TEST(a_long_series_keeps_its_extremes)
{
    static int64_t steps[REPORT_POINTS];
    static double values[REPORT_POINTS];
    report_list list = { .count = 0 };
    report_series *s = report_series_make(&list, "x");
    for (int64_t i = 0; i < 200000; i++)
        good(report_series_add(s, i, i == 123456 ? 9 : i == 777 ? -9 : sin((double)i)));
    int64_t high = 0, low = 0, gap = 0;
    ck_assert_int_le(s->count, REPORT_POINTS);
    ck_assert_int_gt(s->count, REPORT_POINTS / 3);
    for (int64_t i = 0; i < s->count; i++) {
        steps[i] = s->points[i].step;
        values[i] = s->points[i].value;
        high += values[i] == 9 && steps[i] == 123456;
        low += values[i] == -9 && steps[i] == 777;
        ck_assert(i == 0 || steps[i] > steps[i - 1]);
        gap = i > 0 && steps[i] - steps[i - 1] > gap ? steps[i] - steps[i - 1] : gap;
    }
    ck_assert_int_eq(high, 1);
    ck_assert_int_eq(low, 1);
    ck_assert_int_le(gap, 130); /* evenly in all parts */
    ck_assert(steps[0] == 0 && steps[s->count - 1] == 199999);
    report_point few[100];
    int64_t count = report_series_thin(s->points, s->count, few, 100);
    ck_assert_int_le(count, 100);
    high = low = 0;
    for (int64_t i = 0; i < count; i++) {
        high += few[i].value == 9;
        low += few[i].value == -9;
    }
    ck_assert(high == 1 && low == 1 && few[0].step == 0 && few[count - 1].step == 199999);
    report_series_drop(&list);
}
END_TEST

/* ---- for read_report.py ---------------------------------------------------------------------- */

static int write_run(const char *path)
{
    TN_SCOPE;
    report *r;
    double values[1000];
    float ramp[3 * 64];
    report_setup setup = { .folder = path, .how = REPORT_REPLACE, .class_count = 3 };
    for (int i = 0; i < 1000; i++)
        values[i] = i / 1000.0;
    for (int i = 0; i < 3 * 64; i++)
        ramp[i] = (float)(i % 64) / 63;
    tn_tensor *tensor = tn_tensor_from(values, TN_F64, TN_SHAPE(1000));
    tn_tensor *image = tn_tensor_from(ramp, TN_F32, TN_SHAPE(3, 8, 8));
    tn_status status = report_open(&r, &setup);
    const double strange[] = { NAN, INFINITY, -INFINITY };
    for (int64_t step = 1; step <= 60 && status == TN_OK; step++) {
        status = report_scalar(r, "loss/train", step, 1.0 / (double)step);
        status = status ? status : report_scalar(r, "learning_rate", step, 0.1);
        if (step % 20 != 0)
            continue;
        status = status ? status : report_scalar(r, "loss/validation", step, 0.5 / (double)step);
        status = status ? status : report_scalar(r, "strange", step, strange[step / 20 - 1]);
        status = status ? status : report_histogram(r, REPORT_WEIGHTS, "0.weight", step, tensor);
        for (int64_t i = 0; i < 30 && status == TN_OK; i++) {
            report_sample sample = { image, i, i % 3, 1, (double)i };
            status = report_worst(r, &sample);
        }
        status = status ? status : report_epoch(r, step / 20, step, 1);
    }
    status = status ? status : report_close(r, NULL);
    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_error_text());
    return status == TN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "--write") == 0)
        return write_run(arguments[2]);
    const TTest *const tests[] = { rows_have_the_values_of_their_steps,
                                   an_empty_run_and_one_of_one_step_have_all_files,
                                   wrong_calls_are_refused_and_change_nothing,
                                   events_hold_scalars_and_histograms,
                                   a_resumed_run_has_every_step_once,
                                   a_file_of_something_else_is_not_resumed,
                                   damaged_events_are_not_believed,
                                   folders_and_full_disks_are_reported,
                                   every_allocation_may_fail,
                                   a_long_series_keeps_its_extremes,
                                   NULL };

    int files = suite_run("report", tests), pages = page_run();
    return files != EXIT_SUCCESS ? files : pages;
}
