/* SPDX-License-Identifier: MIT
 *
 * The test of a device that records its work (capture). Recording must not do the work, each launch
 * must do it, on any stream, and no launch may write to tensors created after the capture. */
#include "device.h"

#include <stdlib.h>

enum { COUNT = 3000, OTHERS = 6 };

/* Checks that the elements of a tensor are first, first + step, and so on. */
static bool counts_from(conform *c, tn_tensor *x, float first, float step, const char *when)
{
    float *values = malloc(COUNT * sizeof *values);
    int64_t wrong = -1;
    bool well = values != NULL && tn_tensor_copy_out(x, values, COUNT * sizeof *values) == TN_OK;

    for (int64_t i = 0; well && i < COUNT && wrong < 0; i++)
        if (values[i] != first + step * (float)i)
            wrong = i;
    c->checks++;
    if (!well)
        conform_fail(c, "capture: %s: %s", when, tn_error_text());
    else if (wrong >= 0)
        conform_fail(c, "capture: %s: element %lld: wrong value, got %g; expected %g", when,
                     (long long)wrong, (double)values[wrong],
                     (double)(first + step * (float)wrong));
    free(values);
    return well && wrong < 0;
}

/* Sets the elements of a tensor to first, first + step, and so on. */
static bool count_from(conform *c, tn_tensor *x, float first, float step)
{
    float *values = malloc(COUNT * sizeof *values);
    bool well;

    for (int64_t i = 0; values != NULL && i < COUNT; i++)
        values[i] = first + step * (float)i;
    well = values != NULL && x != NULL &&
           tn_tensor_copy_in(x, values, COUNT * sizeof *values) == TN_OK;
    free(values);
    if (!well)
        conform_fail(c, "capture: a tensor cannot be created: %s", tn_error_text());
    return well;
}

static tn_tensor *tensor_of(conform *c)
{
    return tn_tensor_empty(TN_SHAPE(COUNT), TN_F32, c->plugin->device);
}

/* Records a copy from x to a temporary tensor, and from there to y. The temporary tensor is freed
 * before the capture ends. */
static tn_device_graph *record(conform *c, tn_stream *stream, tn_tensor *y, tn_tensor *x)
{
    tn_device_graph *graph;
    tn_tensor *between;
    uint64_t scope;

    if (tn_stream_capture_begin(stream) != TN_OK) {
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED)
            conform_skip(c, "the device does not record its work");
        else
            conform_fail(c, "capture_begin: %s", tn_error_text());
        return NULL;
    }
    scope = tn_scope_begin();
    between = tensor_of(c);
    if (between != NULL && tn_tensor_copy_async(between, x) == TN_OK)
        (void)tn_tensor_copy_async(y, between);
    tn_scope_end(scope);
    graph = tn_stream_capture_end(stream);
    if (graph == NULL)
        conform_fail(c, "capture of two copies: %s", tn_error_text());
    return graph;
}

static bool launch(conform *c, tn_device_graph *graph, tn_stream *stream, tn_tensor *y, float first,
                   float step, const char *when)
{
    c->checks++;
    if (tn_device_graph_launch(graph, stream) != TN_OK || tn_stream_sync(stream) != TN_OK)
        return conform_fail(c, "capture_launch: %s: %s", when, tn_error_text());
    return counts_from(c, y, first, step, when);
}

/* Checks that a launch does not change tensors that were created after the capture: they must not
 * use the memory of the temporary tensor. */
static bool leaves_others_alone(conform *c, tn_device_graph *graph, tn_stream *stream)
{
    tn_tensor *other[OTHERS];
    bool well = true;

    for (int i = 0; i < OTHERS && well; i++) {
        other[i] = tensor_of(c);
        well = count_from(c, other[i], (float)i, 1);
    }
    if (well && (tn_device_graph_launch(graph, stream) != TN_OK || tn_stream_sync(stream) != TN_OK))
        well = conform_fail(c, "capture_launch: %s", tn_error_text());
    for (int i = 0; i < OTHERS && well; i++)
        well = counts_from(c, other[i], (float)i, 1, "a tensor created after the capture");
    return well;
}

static void launches(conform *c, tn_device_graph *graph, tn_stream *stream, tn_tensor *y,
                     tn_tensor *x)
{
    tn_stream *second = tn_stream_new(c->plugin->device, NULL);

    if (second == NULL)
        conform_fail(c, "stream_new: %s", tn_error_text());
    else if (counts_from(c, y, 0, 0, "before its first launch") &&
             launch(c, graph, stream, y, 1, 2, "its first launch") && count_from(c, x, 5, 3) &&
             launch(c, graph, stream, y, 5, 3, "its second launch, with other values") &&
             count_from(c, y, 0, 0) && tn_device_sync(c->plugin->device) == TN_OK &&
             launch(c, graph, second, y, 5, 3, "a launch on another stream"))
        leaves_others_alone(c, graph, stream);
    tn_stream_drop(second);
}

void conform_device_captures(conform *c)
{
    uint64_t scope = tn_scope_begin();
    tn_stream *stream = tn_stream_new(c->plugin->device, NULL);
    tn_tensor *x, *y;
    tn_device_graph *graph = NULL;

    if (stream == NULL || tn_stream_begin(stream) != TN_OK) {
        conform_fail(c, "stream_new: %s", tn_error_text());
    } else {
        x = tensor_of(c); /* allocated on the current stream */
        y = tensor_of(c);
        if (count_from(c, x, 1, 2) && count_from(c, y, 0, 0))
            graph = record(c, stream, y, x);
        if (graph != NULL)
            launches(c, graph, stream, y, x);
        tn_stream_end();
    }
    tn_device_graph_drop(graph);
    tn_stream_drop(stream);
    tn_error_clear();
    tn_scope_end(scope);
}
