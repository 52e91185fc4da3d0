/* SPDX-License-Identifier: MIT
 *
 * The answer of tenon quantize, as text and as JSON. */
#include "quantize.h"

#include <math.h>

static const char *number(double value, const char *format, char *out, size_t size)
{
    if (isnan(value))
        snprintf(out, size, "-");
    else if (isinf(value))
        snprintf(out, size, value > 0 ? "exact" : "none");
    else
        snprintf(out, size, format, value);
    return out;
}

static const char *seconds_text(double seconds, char *out, size_t size)
{
    if (isnan(seconds))
        snprintf(out, size, "-");
    else if (seconds < 1e-3)
        snprintf(out, size, "%.0f us", 1e6 * seconds);
    else if (seconds < 1)
        snprintf(out, size, "%.2f ms", 1e3 * seconds);
    else
        snprintf(out, size, "%.2f s", seconds);
    return out;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static double results_sqnr(const quantize_outcome *out)
{
    if (!out->measured)
        return NAN;
    return out->noise == 0 ? INFINITY : 10 * log10(out->powers[0] / out->noise);
}

static double results_cosine(const quantize_outcome *out)
{
    if (!out->measured)
        return NAN;
    return out->noise == 0 ? 1 : out->powers[2] / sqrt(out->powers[0] * out->powers[1]);
}

static double accuracy(const metrics *m)
{
    return m->counted > 0 ? (double)m->correct / (double)m->counted : NAN;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_modules(const quantize_outcome *out)
{
    table t = { .columns = 9 };
    char sqnr[32], cosine[32], before[32], after[32], slow[32], fast[32];

    table_row(&t, "MODULE", "TYPE", "SQNR dB", "COSINE", "SIZE", "AFTER", "TIME", "AFTER",
              "RESULT");
    for (int64_t i = 0; i < out->report.count; i++) {
        const tn_quantize_row *row = &out->report.rows[i];
        const bool kept = row->becomes == NULL;

        table_row(&t, row->path, row->type, number(row->sqnr, "%.1f", sqnr, sizeof sqnr),
                  number(row->cosine, "%.5f", cosine, sizeof cosine),
                  bytes_text(row->bytes_before, before, sizeof before),
                  bytes_text(row->bytes_after, after, sizeof after),
                  seconds_text(row->seconds_before, slow, sizeof slow),
                  seconds_text(row->seconds_after, fast, sizeof fast),
                  kept ? "float" : "quantized");
        if (kept)
            table_note(&t, "stays in float: %s", row->why);
    }
    table_print(&t);
    putchar('\n');
}

static void print_times(const quantize_outcome *out)
{
    const double calls = (double)(out->batches - 1);
    char before[32], after[32];

    if (out->batches < 2)
        return;
    printf("time        %s per batch, before %s",
           seconds_text(out->seconds_after / calls, after, sizeof after),
           seconds_text(out->seconds_before / calls, before, sizeof before));
    printf(out->seconds_after > out->seconds_before ? ": slower on this device\n" : "\n");
}

void quantize_answer_text(const quantize_request *wanted, const quantize_outcome *out, bool written)
{
    char sqnr[32], cosine[32], before[32], after[32], part[32];
    double loss = quantize_loss(out);

    print_modules(out);
    printf("modules     %lld of %lld quantized\n", (long long)out->report.quantized,
           (long long)out->report.count);
    if (out->measured)
        printf("results     SQNR %s dB, cosine %s, beside the float model\n",
               number(results_sqnr(out), "%.1f", sqnr, sizeof sqnr),
               number(results_cosine(out), "%.5f", cosine, sizeof cosine));
    else if (out->compared)
        printf("results     integers, which have no SQNR\n");
    if (out->classifies)
        printf("accuracy    %.2f %%, before %.2f %%, of %lld\n", 100 * accuracy(&out->right_after),
               100 * accuracy(&out->right_before), (long long)out->right_before.counted);
    if (out->skipped > 0)
        printf("skipped     %lld samples that cannot be read\n", (long long)out->skipped);
    printf("size        %s, before %s (%s)\n", bytes_text(out->bytes_after, after, sizeof after),
           bytes_text(out->bytes_before, before, sizeof before),
           number(ratio((double)out->bytes_after, (double)out->bytes_before), "%.2f", part,
                  sizeof part));
    print_times(out);
    if (written)
        printf("written     %s\n", wanted->out);
    else
        printf("not written: %.2f points of accuracy are lost, more than --max-loss %g\n", loss,
               wanted->max_loss);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* JSON has no infinite numbers. */
static void put(const char *key, double value)
{
    if (isfinite(value))
        json_float(key, value);
    else
        json_null(key);
}

static void put_module(const tn_quantize_row *row)
{
    json_begin(NULL, '{');
    json_text("path", row->path);
    json_text("type", row->type);
    if (row->becomes != NULL)
        json_text("becomes", row->becomes);
    else
        json_null("becomes");
    if (row->why != NULL)
        json_text("why", row->why);
    put("sqnr", row->sqnr);
    put("cosine", row->cosine);
    json_int("bytes_before", row->bytes_before);
    json_int("bytes_after", row->bytes_after);
    put("seconds_before", row->seconds_before);
    put("seconds_after", row->seconds_after);
    json_end('}');
}

void quantize_answer_json(const quantize_request *wanted, const quantize_outcome *out, bool written)
{
    json_begin(NULL, '{');
    json_text("out", wanted->out);
    json_bool("written", written);
    json_int("quantized", out->report.quantized);
    json_int("bytes_before", out->bytes_before);
    json_int("bytes_after", out->bytes_after);
    if (out->compared) {
        put("sqnr", results_sqnr(out));
        put("cosine", results_cosine(out));
        json_int("batches", out->batches);
        json_int("skipped", out->skipped);
        put("seconds_before", out->seconds_before);
        put("seconds_after", out->seconds_after);
    }
    if (out->classifies) {
        put("accuracy_before", accuracy(&out->right_before));
        put("accuracy_after", accuracy(&out->right_after));
        put("loss", quantize_loss(out));
    }
    json_begin("modules", '[');
    for (int64_t i = 0; i < out->report.count; i++)
        put_module(&out->report.rows[i]);
    json_end(']');
    json_end('}');
}
