/* SPDX-License-Identifier: MIT
 *
 * tenon bench MODEL --input SHAPE: how long calls of a model take, on each device, for each size of
 * the batch and each number of threads. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_MOST = 32, TRAINING_FACTOR = 3 };

/* A case whose times are spread further than this part of the median is noted. */
static const double spread_most = 0.2;

static bench_request request = { .low = 0, .high = 2, .seconds = 1, .dtype = TN_F32 };
static int64_t batches[LIST_MOST], threads[LIST_MOST];
static int batch_count, thread_count;
static const char *device_names = NULL;
static tn_dtype wanted_dtype = TN_DTYPE_AUTO;

/* ---- options --------------------------------------------------------------------------------- */

/* Reads "1,8,32". */
static bool read_list(const char *value, int64_t most, int64_t *out, int *count)
{
    char text[512];
    if (strlen(value) >= sizeof text)
        return false;
    strcpy(text, value);
    *count = 0;
    for (char *at = text, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL)
            *next++ = '\0';
        if (*count == LIST_MOST || !work_read_number(at, 1, most, &out[*count]))
            return false;
        ++*count;
    }
    return true;
}

static bool take_batches(const char *value)
{
    return read_list(value, INT32_MAX, batches, &batch_count);
}

static bool take_threads(const char *value)
{
    return read_list(value, 4096, threads, &thread_count);
}

static bool take_input(const char *value)
{
    if (request.input_count == BENCH_INPUTS)
        return false;
    request.inputs[request.input_count++] = value;
    return true;
}

static bool take_dtype(const char *value)
{
    uint64_t mark = tn_error_mark();
    bool good = tn_dtype_parse(value, &wanted_dtype) == TN_OK &&
                (TN_BIT(wanted_dtype) & TN_MASK_FLOAT) != 0;
    tn_error_restore(mark);
    return good;
}

static bool take_range(const char *value)
{
    char low[32];
    const char *comma = strchr(value, ',');
    if (comma == NULL || comma - value >= (long)sizeof low)
        return false;
    memcpy(low, value, (size_t)(comma - value));
    low[comma - value] = '\0';
    return tn_read_int(low, &request.low) && tn_read_int(comma + 1, &request.high) &&
           request.low < request.high;
}

static bool take_train(const char *value)
{
    (void)value;
    return request.train = true;
}

static bool take_compiled(const char *value)
{
    (void)value;
    if (request.compiled == NULL)
        request.compiled = "";
    return true;
}

static bool take_passes(const char *value)
{
    request.compiled = value;
    return true;
}

static bool take_repeat(const char *value)
{
    return work_read_number(value, 1, 1000000, &request.repeat);
}

static bool take_seconds(const char *value)
{
    return tn_read_float(value, &request.seconds) && request.seconds > 0 &&
           request.seconds <= 86400;
}

static bool take_devices(const char *value)
{
    device_names = value;
    return value[0] != '\0';
}

/* ---- cases ----------------------------------------------------------------------------------- */

typedef struct bench {
    tn_module *module; /* on the host */
    bool json;
    table table;
    bool varies;
    int failures;
    int64_t macs, macs_batch; /* of the first case that succeeded */
    int64_t parameters;       /* after the first call, which gives lazy layers their shapes */
} bench;

/* The operations of a call: two for each multiply-add. A training step has about twice as many in
 * the backward pass as in the forward pass. */
static double gflops(const bench_result *r)
{
    double operations = 2.0 * (double)r->macs * (request.train ? TRAINING_FACTOR : 1);
    return r->median > 0 ? operations / r->median / 1e9 : 0;
}

static double spread(const bench_result *r)
{
    return r->median > 0 ? (r->p90 - r->p10) / r->median : 0;
}

static void case_json(const char *device, int64_t thread, int64_t batch, const bench_result *r,
                      tn_status status)
{
    json_begin(NULL, '{');
    json_text("device", device);
    if (thread > 0)
        json_int("threads", thread);
    else
        json_null("threads");
    json_int("batch", r->batch > 0 ? r->batch : batch);
    if (status != TN_OK) {
        json_error(status, tn_error_text());
    } else {
        json_int("runs", r->runs);
        json_float("first_ms", 1e3 * r->first);
        json_float("median_ms", 1e3 * r->median);
        json_float("p10_ms", 1e3 * r->p10);
        json_float("p90_ms", 1e3 * r->p90);
        json_float("p99_ms", 1e3 * r->p99);
        json_float("spread", spread(r));
        json_bool("varies", spread(r) > spread_most);
        json_float("samples_per_second", (double)(r->batch * r->runs) / r->total);
        json_int("multiply_adds", r->macs);
        json_float("gflops", gflops(r));
        json_int("peak_bytes", r->peak);
        if (request.compiled != NULL)
            json_float("compile_ms", 1e3 * r->compile);
    }
    json_end('}');
}

/* A short time has more digits: a tiny network takes less than a microsecond. */
static void milliseconds(double seconds, char out[32])
{
    snprintf(out, 32, seconds < 1e-5 ? "%.5f" : "%.3f", 1e3 * seconds);
}

static void case_row(bench *b, const char *device, int64_t thread, int64_t batch,
                     const bench_result *r, tn_status status)
{
    char cells[10][32] = { "-", "-", "-", "-", "-", "-", "-", "-", "-", "-" };
    if (thread > 0)
        snprintf(cells[0], 32, "%lld", (long long)thread);
    snprintf(cells[1], 32, "%lld", (long long)(r->batch > 0 ? r->batch : batch));
    if (status == TN_OK) {
        snprintf(cells[2], 32, "%lld", (long long)r->runs);
        milliseconds(r->median, cells[3]);
        milliseconds(r->p10, cells[4]);
        milliseconds(r->p90, cells[5]);
        milliseconds(r->p99, cells[6]);
        snprintf(cells[7], 32, "%.1f", (double)(r->batch * r->runs) / r->total);
        if (r->macs > 0)
            snprintf(cells[8], 32, "%.2f", gflops(r));
        bytes_text(r->peak, cells[9], 32);
    }
    table_row(&b->table, device, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5],
              cells[6], cells[7], cells[8], cells[9]);
    if (status != TN_OK)
        table_note(&b->table, "%s", tn_error_text());
}

static void run_case(bench *b, tn_module *module, const tn_device *device, int64_t thread,
                     int64_t batch)
{
    bench_result result;
    tn_status status = bench_measure(module, device, &request, batch, &result);
    if (b->json)
        case_json(tn_device_name(device), thread, batch, &result, status);
    else
        case_row(b, tn_device_name(device), thread, batch, &result, status);
    b->failures += status != TN_OK;
    b->varies = b->varies || (status == TN_OK && spread(&result) > spread_most);
    if (status == TN_OK && b->macs_batch == 0) {
        b->macs = result.macs;
        b->macs_batch = result.batch;
    }
    tn_error_clear();
}

/* Measures all cases on one device. The number of threads varies on devices of the host only. */
static tn_status run_device(bench *b, const tn_device *device)
{
    bool host = tn_device_is_host(device);
    int before = tn_num_threads();
    tn_module *module = NULL;
    tn_status status = tn_set_default_device(tn_device_name(device));

    if (status == TN_OK)
        module = tn_module_copy(b->module);
    if (module != NULL)
        status = tn_module_to(module, device, TN_DTYPE_AUTO);
    if (module == NULL || status != TN_OK) {
        tn_module_drop(module);
        return tn_error_prefix("%s: ", tn_device_name(device));
    }
    for (int t = 0; t < (host && thread_count > 0 ? thread_count : 1) && status == TN_OK; t++) {
        int64_t thread = !host ? 0 : thread_count > 0 ? threads[t] : before;
        if (host)
            status = tn_set_num_threads((int)thread);
        for (int i = 0; i < (batch_count > 0 ? batch_count : 1) && status == TN_OK; i++)
            run_case(b, module, device, thread, batch_count > 0 ? batches[i] : 0);
    }
    b->parameters = tn_module_parameter_count(module);
    tn_module_drop(module);
    tn_set_num_threads(before);
    return status;
}

/* ---- devices --------------------------------------------------------------------------------- */

static tn_status run_all(bench *b)
{
    tn_status status = TN_OK;
    for (int64_t i = 0, count = tn_device_count(); i < count && status == TN_OK; i++) {
        const tn_device *device = tn_device_at(i);
        if (device != NULL && tn_device_has_memory(device))
            status = run_device(b, device);
    }
    return status;
}

static tn_status run_listed(bench *b)
{
    tn_status status = TN_OK;
    char name[64];
    for (const char *at = device_names; status == TN_OK && *at != '\0';) {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const tn_device *device = work_device(name);
        if (device == NULL)
            return tn_error_last_code();
        status = run_device(b, device);
        at += length + (at[length] == ',');
    }
    return status;
}

/* Checks the names before the first measurement. */
static tn_status check_devices(void)
{
    bool all = device_names != NULL && strcmp(device_names, "all") == 0;
    const char *listed = all ? NULL : device_names;
    char name[64];
    for (const char *at = listed; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (work_device(name) == NULL)
            return tn_error_last_code();
        at += length + (at[length] == ',');
    }
    return TN_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void begin_answer(bench *b)
{
    b->table.columns = 11;
    if (!b->json) {
        table_row(&b->table, "DEVICE", "THREADS", "BATCH", "RUNS", "MEDIAN ms", "P10", "P90", "P99",
                  "SAMPLES/S", "GFLOP/S", "MEMORY");
        return;
    }
    json_begin(NULL, '{');
    json_bool("train", request.train);
    json_begin("cases", '[');
}

static void end_answer(bench *b, tn_status status)
{
    if (b->json) {
        json_end(']');
        if (status != TN_OK)
            json_error(status, tn_error_text());
        json_int("parameters", b->parameters);
        json_end('}');
        return;
    }
    table_print(&b->table);
    printf("\nparameters     %lld\n", (long long)b->parameters);
    if (b->macs_batch > 0)
        printf("multiply-adds  %.4g M in a call with a batch of %lld\n", (double)b->macs / 1e6,
               (long long)b->macs_batch);
    print_wrapped("one run", 15,
                  request.train ? "a training step without optimizer: forward, mean, backward; "
                                  "counted as three forward passes"
                  : request.compiled != NULL ? "a run of a plan, made in evaluation mode"
                                             : "a forward pass in evaluation mode");
    if (b->varies)
        print_wrapped("note", 15,
                      "the times vary: in some case P90 - P10 is more than a fifth of the median. "
                      "Other work of the machine, or its clock, disturbs them; compare medians of "
                      "longer runs (--seconds)");
}

static int usage(const char *words)
{
    fprintf(stderr, "tenon bench: %s; `tenon bench --help` lists its arguments\n", words);
    return EXIT_USAGE;
}

static int run_bench(int count, char **arguments, bool json)
{
    bench b = { .json = json };
    model_notes notes = { 0 };
    tn_status status;
    (void)count;

    if (request.input_count == 0)
        return usage("--input is missing; expected a shape such as 1,3,224,224");
    if (request.compiled != NULL && request.train)
        return usage("--compiled and --train: a plan records no gradients; expected one of them");
    status = check_devices();
    if (status == TN_OK && device_names == NULL) {
        const tn_device *device = work_device(NULL);
        device_names = device != NULL ? tn_device_name(device) : NULL;
        status = device != NULL ? TN_OK : tn_error_last_code();
    }
    /* The model is made once, with the same weights for all devices. */
    if (status == TN_OK && work_device("cpu") != NULL)
        b.module = work_model(arguments[0], &notes);
    status = b.module != NULL ? TN_OK : tn_error_last_code();
    if (status == TN_OK && wanted_dtype != TN_DTYPE_AUTO)
        status = tn_module_to(b.module, NULL, wanted_dtype);
    if (status == TN_OK && request.train)
        status = tn_module_train(b.module, true);
    if (status == TN_OK) {
        tn_dtype dtype = work_dtype(b.module);
        request.dtype = dtype != TN_DTYPE_AUTO          ? dtype
                        : wanted_dtype != TN_DTYPE_AUTO ? wanted_dtype
                                                        : TN_F32;
        begin_answer(&b);
        status = strcmp(device_names, "all") == 0 ? run_all(&b) : run_listed(&b);
        end_answer(&b, status);
        if (status != TN_OK)
            fprintf(stderr, "tenon: %s\n", tn_error_text());
        b.failures += status != TN_OK;
        status = TN_OK;
    }
    tn_module_drop(b.module);
    model_notes_free(&notes);
    if (status != TN_OK)
        return tool_fail(NULL);
    return b.failures > 0 ? EXIT_NOT_OK : EXIT_OK;
}

static const tool_option options[] = {
    { "--input", "SHAPE[:DTYPE]",
      "an input with the batch as dimension 0, 1,3,224,224 or 8,20:int64; repeat it for each",
      take_input },
    { "--range", "LOW,HIGH", "integer inputs are random from LOW to HIGH - 1; default: 0,2",
      take_range },
    { "--batch", "N[,N]...", "sizes of the batch, in place of those of --input", take_batches },
    { "--device", "NAME[,NAME]...", "the devices, or all; default: TENON_DEVICE, else cpu",
      take_devices },
    { "--threads", "N[,N]...", "numbers of threads on devices of the host", take_threads },
    { "--dtype", "DTYPE", "converts the model and floating inputs, such as to bfloat16",
      take_dtype },
    { "--train", NULL, "a training step without optimizer, in training mode", take_train },
    { "--compiled", NULL, "runs a plan of the traced model; its graph is for inference",
      take_compiled },
    { "--passes", "PASSES", "the same, after passes such as \"conv_bn, dropout, dead\"",
      take_passes },
    { "--seconds", "S", "repeats a case for this time, at least 10 times; default: 1",
      take_seconds },
    { "--repeat", "N", "repeats a case N times", take_repeat },
    WORK_MODEL_OPTIONS,
    { NULL, NULL, NULL, NULL }
};

const command bench_command = {
    "bench",
    "MODEL --input SHAPE",
    "latency, throughput and memory of a model",
    "Calls a model again and again with random inputs and prints the median of the times, the "
    "10th, 90th and 99th percentile, samples in a second, effective GFLOP/s and the most memory "
    "that tensors used at one time, weights included. A case is warmed up first; each time "
    "includes the wait for the device. A case that fails has its error below it; the exit status "
    "is then 1.\n\nGFLOP/s are twice the multiply-adds of `tenon summary` in the median "
    "time.\n\n" MODEL_HELP,
    1,
    1,
    run_bench,
    0,
    options
};
