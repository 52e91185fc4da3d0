/* SPDX-License-Identifier: MIT
 *
 * report.html: what it says, that it is well-formed whatever the names are, that it stays small. */
#include "readers.h"

#include "tools/train/report_private.h"

#include <math.h>
#include <unistd.h>

/* Runs the tests of this file, which are part of test_report. */
int page_run(void);

static char folder[256];

#define good(call) ck_assert_msg((call) == TN_OK, "%s", tn_error_text())

static report *begin(const char *const *classes, int64_t class_count)
{
    report *r;
    report_row settings[] = { { "network", "Linear(2, 2) </td><script>alert(1)</script>" },
                              { "a\"b", NULL } };
    snprintf(folder, sizeof folder, "%s/test_page.%d", TN_TEST_BUILDDIR, (int)getpid());
    report_setup setup = { .folder = folder,
                           .title = "<b>Title</b> & \"more\"\x01\xff",
                           .how = REPORT_REPLACE,
                           .settings = settings,
                           .setting_count = 2,
                           .classes = classes,
                           .class_count = class_count,
                           .epochs = 3 };
    good(report_open(&r, &setup));
    return r;
}

static char *page_of(report *r)
{
    char path[400];
    good(report_close(r, "failed: <i>x</i>"));
    snprintf(path, sizeof path, "%s/report.html", folder);
    bytes page = read_whole(path);
    ck_assert_uint_eq(strlen((char *)page.at), page.size); /* no NUL */
    unlink(path);
    snprintf(path, sizeof path, "%s/metrics.csv", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/events.out.tfevents.tenon", folder);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
    return (char *)page.at;
}

#define has(page, text) ck_assert_msg(strstr(page, text) != NULL, "no \"%s\"", text)
#define has_not(page, text) ck_assert_msg(strstr(page, text) == NULL, "\"%s\"", text)

static bool is_void(const char *name)
{
    static const char *const names[] = { "!DOCTYPE", "meta", "link", "img", "input" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Every element ends where it should; attributes have double quotes; '&' begins a reference;
 * nothing is loaded from elsewhere. */
static void check_form(const char *page)
{
    static char open[64][32];
    int depth = 0;
    for (const char *at = page; *at != '\0';) {
        if (*at == '&') {
            size_t length = strcspn(at, "; <");
            ck_assert_msg(at[length] == ';', "%.40s", at);
        }
        if (*at++ != '<')
            continue;
        bool closes = *at == '/';
        char name[32] = "";
        size_t length = strcspn(at + closes, " >/");
        ck_assert_msg(length > 0 && length < sizeof name, "%.40s", at);
        memcpy(name, at + closes, length);
        const char *end = at;
        for (bool quoted = false; *end != '\0' && (quoted || *end != '>'); end++) {
            quoted ^= *end == '"';
            ck_assert_msg(*end != '<', "%.60s", at);
        }
        bool empty = end[-1] == '/';
        at = end + 1;
        if (closes) {
            ck_assert_msg(depth > 0 && strcmp(open[depth - 1], name) == 0, "</%s> in <%s>: %.60s",
                          name, depth > 0 ? open[depth - 1] : "", at);
            depth--;
        } else if (!empty && !is_void(name)) {
            ck_assert_int_lt(depth, 64);
            memcpy(open[depth++], name, sizeof name);
        }
        /* The contents of these are no HTML. */
        if (!closes && (strcmp(name, "script") == 0 || strcmp(name, "style") == 0)) {
            at = strstr(at, strcmp(name, "script") == 0 ? "</script" : "</style");
            ck_assert_ptr_nonnull(at);
        }
    }
    ck_assert_int_eq(depth, 0);
    has_not(page, "http:");
    has_not(page, "https:");
    has_not(page, " src=\"/");
}

START_TEST(a_page_without_values_is_complete)
{
    char *page = page_of(begin(NULL, 0));
    check_form(page);
    has(page, "No scalar has been recorded.");
    has_not(page, "id=\"confusion\"");
    free(page);
}
END_TEST

START_TEST(names_are_text_and_no_markup)
{
    TN_SCOPE;
    const char *evil = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>\xff\x02";
    const char *classes[] = { evil, "\xc3\xa4\xe2\x82\xac" };
    int64_t truth[] = { 0, 0, 1 }, predicted[] = { 0, 1, 1 };
    float values[4] = { 1, 2, 3, 4 };
    report *r = begin(classes, 2);
    tn_tensor *tensor = tn_tensor_from(values, TN_F32, TN_SHAPE(2, 2));
    report_sample sample = { tensor, 5, 0, 1, 3 };
    good(report_scalar(r, "</script><script>alert(2)//</script>\"'&", 1, 2));
    good(report_scalar(r, "<svg>/<b>", 1, 2));
    good(report_scalar(r, "<svg>/<b>", 2, 3));
    good(report_predictions(r, truth, predicted, 3));
    good(report_worst(r, &sample));
    good(report_histogram(r, REPORT_WEIGHTS, "<u>\"", 2, tensor));
    good(report_epoch(r, 1, 2, 1));
    char *page = page_of(r);
    check_form(page);
    has_not(page, "<script>alert");
    has_not(page, "<img src=x");
    has(page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;&lt;im\xe2\x80\xa6");
    has(page, "\"name\":\"\\u003cb\\u003e\"");
    has(page,
        "<title>&lt;b&gt;Title&lt;/b&gt; &amp; &quot;more&quot;\xef\xbf\xbd\xef\xbf\xbd</title>");
    has(page, "failed: &lt;i&gt;x&lt;/i&gt;");
    has(page, "\xc3\xa4\xe2\x82\xac");
    free(page);
}
END_TEST

START_TEST(curves_keep_extremes_and_skip_what_is_not_finite)
{
    report *r = begin(NULL, 0);
    for (int64_t step = 1; step <= 5000; step++)
        good(report_scalar(r, "loss/train", step,
                           step == 3210         ? 77.125
                           : step % 1000 == 500 ? NAN
                                                : 1 + 1.0 / (double)step));
    good(report_scalar(r, "loss/validation", 5000, 1.5));
    good(report_scalar(r, "huge", 5000, 1.7e308));
    good(report_scalar(r, "huge", 5001, -1.7e308));
    good(report_scalar(r, "same", 5002, 1e-320));
    char *page = page_of(r);
    check_form(page);
    has(page, "77.125"); /* in the data */
    has(page, "train: 5 values are NaN or infinite, the first at step 500.");
    has(page, "Loss, steps 1 to 5,000. train: from 2 to 1. validation: from 1.5 to 1.5");
    has(page, "Validation loss");
    has_not(page, "nan");
    has_not(page, "d=\"M-");
    free(page);
}
END_TEST

START_TEST(classes_have_precision_and_recall)
{
    const char *classes[] = { "cat", "dog", "bird" };
    const int64_t counts[] = { 8, 2, 0, 1, 9, 0, 0, 0, 0 };
    report *r = begin(classes, 3);
    good(report_confusion(r, counts));
    good(report_epoch(r, 2, 10, 1));
    int64_t wrong[9] = { 0, 0, -1 };
    ck_assert_int_eq(report_confusion(r, wrong), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "element [0, 2]: out of range, got -1");
    char *page = page_of(r);
    check_form(page);
    has(page,
        "Accuracy <b>85.00 %</b> of 20 samples in epoch 2, mean F1 of the classes <b>84.96 %");
    /* The samples, precision, recall and F1 of each class. */
    has(page, "cat</th><td data-v=\"10\">10</td>"
              "<td class=\"bar\" style=\"--v:0.889\" data-v=\"0.888889\">88.9 %</td>"
              "<td class=\"bar\" style=\"--v:0.800\" data-v=\"0.8\">80.0 %</td>"
              "<td class=\"bar\" style=\"--v:0.842\" data-v=\"0.842105\">84.2 %</td>"
              "<td class=\"text\">dog <small>(2 samples)</small>");
    has(page, "dog</th><td data-v=\"10\">10</td>"
              "<td class=\"bar\" style=\"--v:0.818\" data-v=\"0.818182\">81.8 %</td>"
              "<td class=\"bar\" style=\"--v:0.900\" data-v=\"0.9\">90.0 %</td>");
    has(page, "title=\"cat taken for dog: 2 (20.0 %)\">2</td>");
    has(page, "bird</th><td data-v=\"0\">0</td><td>\xe2\x80\x93</td>");
    free(page);
}
END_TEST

START_TEST(huge_counts_do_not_overflow)
{
    const int64_t counts[] = { INT64_MAX, INT64_MAX, 1, INT64_MAX };
    report *r = begin(NULL, 2);
    good(report_confusion(r, counts));
    good(report_confusion(r, counts));
    good(report_epoch(r, 1, 1, 1e300));
    char *page = page_of(r);
    check_form(page);
    has(page, "Accuracy <b>66.67 %</b> of 2.767e+19 samples");
    has(page, "title=\"0 taken for 1: 9.223e+18 (50.0 %)\">9.22E</td>");
    free(page);
}
END_TEST

START_TEST(pictures_are_png_files_of_the_pixels)
{
    static unsigned char pixels[96 * 96 * 4], wanted[96 * 96 * 4];
    unsigned width, height;
    for (int kind = 0; kind < 12; kind++) {
        int channels = kind % 3 == 0 ? 1 : kind % 3 == 1 ? 3 : 4;
        report_picture picture = { kind < 3 ? 96 : 5 + kind, kind < 6 ? 96 : 1 + kind, channels,
                                   wanted };
        int size = picture.width * picture.height * channels;
        uint32_t noise = (uint32_t)kind;
        for (int i = 0; i < size; i++) {
            noise = noise * 1664525u + 1013904223u;
            /* noise, which is stored; a gradient; repetitions; noise in a part of the codes */
            wanted[i] = (unsigned char)(kind % 4 == 0   ? noise >> 24
                                        : kind % 4 == 1 ? (uint32_t)i / 3
                                        : kind % 4 == 2 ? (uint32_t)i % 7 * 30
                                                        : noise >> 30);
        }
        report_text png = { .status = TN_OK };
        good(report_png(&png, &picture));
        ck_assert_int_eq(read_png((unsigned char *)png.bytes, pixels, &width, &height), channels);
        ck_assert_uint_eq(width, (unsigned)picture.width);
        ck_assert_uint_eq(height, (unsigned)picture.height);
        ck_assert_mem_eq(pixels, wanted, (size_t)size);
        ck_assert_uint_le(png.size, (size_t)size + (size_t)picture.height + 80);
        report_text_drop(&png);
    }
}
END_TEST

START_TEST(the_worst_samples_stay)
{
    TN_SCOPE;
    unsigned char pixels[4] = { 0, 51, 102, 255 };
    float wide[2 * 192];
    report *r = begin(NULL, 3);
    tn_tensor *image = tn_tensor_from(pixels, TN_U8, TN_SHAPE(1, 2, 2));
    for (int i = 0; i < 384; i++)
        wide[i] = i % 2 == 0 ? -1 : 3; /* averages: 1, the middle of -1 to 3 */
    tn_tensor *large = tn_tensor_from(wide, TN_F32, TN_SHAPE(2, 192));
    ck_assert(report_can_draw(image) && report_can_draw(large) && !report_can_draw(NULL));
    for (int64_t i = 0; i < 100; i++) {
        report_sample sample = { image, i, i % 3, -1, i == 50 ? NAN : (double)(i * 37 % 100) };
        good(report_worst(r, &sample));
    }
    ck_assert_int_eq(r->shooting.count, REPORT_WORST);
    ck_assert(isnan(r->shooting.shots[0].loss) && r->shooting.shots[0].index == 50);
    for (int i = 1; i < REPORT_WORST; i++)
        ck_assert(r->shooting.shots[i].loss == 100 - i);
    ck_assert(!report_is_bad(r, 81) && report_is_bad(r, 82) && report_is_bad(r, NAN));
    ck_assert_mem_eq(r->shooting.shots[3].picture.pixels, pixels, 4);
    report_sample sample = { large, -1, 0, 1, 1000 };
    good(report_worst(r, &sample));
    const report_picture *picture = &r->shooting.shots[1].picture;
    ck_assert(picture->width == 96 && picture->height == 1 && picture->channels == 1);
    for (int i = 0; i < 96; i++)
        ck_assert_int_eq(picture->pixels[i], 128);
    sample.image = tn_reshape(large, TN_SHAPE(2, 12, 16));
    ck_assert(!report_can_draw(sample.image));
    ck_assert_int_eq(report_worst(r, &sample), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "got [2, 12, 16]; expected [H, W] or [C, H, W]");
    sample = (report_sample){ NULL, -1, 3, 1, 1000 };
    ck_assert_int_eq(report_worst(r, &sample), TN_ERR_INDEX);
    tn_error_clear();
    good(report_epoch(r, 1, 1, 1));
    char *page = page_of(r);
    check_form(page);
    has(page, "predicted <b>1</b></span><span>loss 1,000</span></figcaption>");
    has(page, "<span>loss NaN</span><span>sample 50</span>");
    free(page);
}
END_TEST

START_TEST(a_large_run_has_a_small_page)
{
    TN_SCOPE;
    report *r = begin(NULL, 1000);
    static float values[3 * 96 * 96];
    uint32_t noise = 1;
    char name[64];
    for (int i = 0; i < 3 * 96 * 96; i++) {
        noise = noise * 1664525u + 1013904223u;
        values[i] = (float)(noise >> 8) / 16777216.0f; /* does not compress */
    }
    tn_tensor *tensor = tn_tensor_from(values, TN_F32, TN_SHAPE(3, 96, 96));
    for (int64_t step = 1; step <= 100000; step++) {
        noise = noise * 1664525u + 1013904223u;
        good(report_scalar(r, "loss/train", step, step == 50001 ? 1234 : (double)noise / 4e9));
        good(report_scalar(r, "learning_rate", step, 1 - (double)step / 1e5));
    }
    for (int64_t i = 0; i < 50000; i++) {
        noise = noise * 1664525u + 1013904223u;
        int64_t truth = i % 1000, predicted = noise >> 31 ? truth : (int64_t)(noise >> 8) % 1000;
        good(report_predictions(r, &truth, &predicted, 1));
    }
    for (int i = 0; i < REPORT_WORST; i++) {
        report_sample sample = { tensor, i, i, i + 1, i };
        good(report_worst(r, &sample));
    }
    tn_tensor *small = tn_narrow(tn_reshape(tensor, TN_SHAPE(-1)), 0, 0, 500);
    for (int64_t step = 100001; step <= 100040; step++)
        for (int i = 0; i < 300; i++) {
            snprintf(name, sizeof name, "layer%d.conv.weight", i / 2);
            good(report_histogram(r, i % 2, name, step, small));
        }
    good(report_epoch(r, 1, 100041, 1));
    char *page = page_of(r);
    check_form(page);
    ck_assert_uint_lt(strlen(page), 2000000);
    has(page, "The 24 classes of 1,000 that are confused most");
    has(page, "40 parameters of 150; the event file has all of them.");
    has(page, "1234");
    free(page);
}
END_TEST

int page_run(void)
{
    const TTest *const tests[] = { a_page_without_values_is_complete,
                                   names_are_text_and_no_markup,
                                   curves_keep_extremes_and_skip_what_is_not_finite,
                                   classes_have_precision_and_recall,
                                   huge_counts_do_not_overflow,
                                   pictures_are_png_files_of_the_pixels,
                                   the_worst_samples_stay,
                                   a_large_run_has_a_small_page,
                                   NULL };
    return suite_run("report page", tests);
}
