/* SPDX-License-Identifier: MIT
 *
 * An OpenCL driver without a device. It computes nothing but what plugins/backend-opencl/probe.c
 * asks for. At the function that TENON_TEST_FAKE names as `MODE:FUNCTION` it aborts, exits, hangs,
 * prints and aborts, fails (-9999), or lies: returns success and does nothing.
 * TENON_TEST_FAKE_DEVICES is the number of devices; only the first misbehaves. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS 1
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wunused-parameter" /* of the functions that only misbehave */

static char objects[16][64]; /* devices, and everything else */
static char *const other = objects[15];
static cl_device_id current;

static cl_uint devices(void)
{
    const char *text = getenv("TENON_TEST_FAKE_DEVICES");

    return text ? (cl_uint)atoi(text) : 1;
}

/* Misbehaves if the environment says so. Returns 0 to go on, 1 to fail, 2 to lie. */
static int act(const char *function)
{
    const char *text = getenv("TENON_TEST_FAKE"), *colon = text ? strchr(text, ':') : NULL;

    if (!colon || strcmp(colon + 1, function) || (current && current != (void *)objects[0]))
        return 0;
    switch (text[0]) {
    case 'a': abort();
    case 'e': exit(0);
    case 'h':
        for (;;)
            pause();
    case 'p':
        fprintf(stderr, "a driver that prints\n");
        printf("a driver that prints\n");
        fflush(stdout);
        abort();
    case 'f': return 1;
    default: return 2;
    }
}

#define SIMPLE(name, ...)                                                                          \
    SHOWN cl_int name(__VA_ARGS__)                                                                 \
    {                                                                                              \
        return act(#name) == 1 ? -9999 : CL_SUCCESS;                                               \
    }
#define MAKES(type, name, ...)                                                                     \
    SHOWN type name(__VA_ARGS__, cl_int *error)                                                    \
    {                                                                                              \
        int how = act(#name);                                                                      \
        if (how == 1)                                                                              \
            *error = -9999;                                                                        \
        return how ? NULL : (type)other;                                                           \
    }

/* ---- devices --------------------------------------------------------------------------------- */

SHOWN cl_int clGetPlatformIDs(cl_uint size, cl_platform_id *ids, cl_uint *count)
{
    int how = act("clGetPlatformIDs");

    if (how == 0 && size > 0)
        ids[0] = (cl_platform_id)other;
    *count = how == 2 ? UINT32_MAX : 1;
    return how == 1 ? -9999 : CL_SUCCESS;
}

static cl_int text(const char *words, size_t size, void *out)
{
    snprintf(out, size, "%s", words);
    return CL_SUCCESS;
}

SHOWN cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t size, void *out,
                               size_t *length)
{
    (void)id, (void)what, (void)length;
    int how = act("clGetPlatformInfo");

    return how == 1 ? -9999 : how == 2 ? CL_SUCCESS : text("fake platform", size, out);
}

SHOWN cl_int clGetDeviceIDs(cl_platform_id id, cl_device_type type, cl_uint size, cl_device_id *ids,
                            cl_uint *count)
{
    (void)id, (void)type;
    int how = act("clGetDeviceIDs");

    for (cl_uint i = 0; how == 0 && i < devices() && i < size; i++)
        ids[i] = (cl_device_id)objects[i];
    *count = how == 2 ? UINT32_MAX : devices();
    return how == 1 ? -9999 : CL_SUCCESS;
}

SHOWN cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t size, void *out,
                             size_t *length)
{
    (void)id, (void)length;
    size_t value = what == CL_DEVICE_TYPE ? CL_DEVICE_TYPE_GPU : 1024;
    int how = act("clGetDeviceInfo");

    if (how)
        return how == 1 ? -9999 : CL_SUCCESS;
    if (what == CL_DEVICE_NAME || what == CL_DRIVER_VERSION || what == CL_DEVICE_EXTENSIONS ||
        what == CL_DEVICE_VENDOR || what == CL_DEVICE_VERSION)
        return text("fake", size, out);
    memcpy(out, &value, size < sizeof value ? size : sizeof value);
    return CL_SUCCESS;
}

SHOWN cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                                 const cl_device_id *ids,
                                 void(CL_CALLBACK *notify)(const char *, const void *, size_t,
                                                           void *),
                                 void *user, cl_int *error)
{
    (void)properties, (void)count, (void)notify, (void)user;
    current = ids[0];
    int how = act("clCreateContext");

    if (how == 1)
        *error = -9999;
    return how ? NULL : (cl_context)other;
}

SIMPLE(clReleaseContext, cl_context c)
MAKES(cl_command_queue, clCreateCommandQueue, cl_context c, cl_device_id d,
      cl_command_queue_properties p)
SIMPLE(clRetainCommandQueue, cl_command_queue q)
SIMPLE(clReleaseCommandQueue, cl_command_queue q)
SIMPLE(clFlush, cl_command_queue q)
SIMPLE(clFinish, cl_command_queue q)

/* ---- memory ---------------------------------------------------------------------------------- */

static unsigned char buffers[2][8192];
static int next;

SHOWN cl_mem clCreateBuffer(cl_context c, cl_mem_flags flags, size_t size, void *host,
                            cl_int *error)
{
    (void)c, (void)flags, (void)host;
    int how = act("clCreateBuffer");

    if (how == 1 || size > sizeof buffers[0])
        *error = how == 1 ? -9999 : CL_OUT_OF_HOST_MEMORY;
    return how || size > sizeof buffers[0] ? NULL : (cl_mem)(void *)buffers[next++ % 2];
}

SIMPLE(clReleaseMemObject, cl_mem m)

/* Copies, unless the driver fails or lies. */
static cl_int moved(const char *function, void *to, const void *from, size_t size)
{
    int how = act(function);

    if (how == 0)
        memmove(to, from, size);
    return how == 1 ? -9999 : CL_SUCCESS;
}

#define AT(memory, offset) ((unsigned char *)(memory) + (offset))

SHOWN cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t offset,
                                  size_t size, const void *from, cl_uint n, const cl_event *events,
                                  cl_event *event)
{
    (void)q, (void)wait, (void)n, (void)events, (void)event;
    return moved("clEnqueueWriteBuffer", AT(m, offset), from, size);
}

SHOWN cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t offset,
                                 size_t size, void *to, cl_uint n, const cl_event *events,
                                 cl_event *event)
{
    (void)q, (void)wait, (void)n, (void)events, (void)event;
    return moved("clEnqueueReadBuffer", to, AT(m, offset), size);
}

SHOWN cl_int clEnqueueCopyBuffer(cl_command_queue q, cl_mem from, cl_mem to, size_t from_offset,
                                 size_t to_offset, size_t size, cl_uint n, const cl_event *events,
                                 cl_event *event)
{
    (void)q, (void)n, (void)events, (void)event;
    return moved("clEnqueueCopyBuffer", AT(to, to_offset), AT(from, from_offset), size);
}

SHOWN cl_int clEnqueueFillBuffer(cl_command_queue q, cl_mem m, const void *pattern,
                                 size_t pattern_size, size_t offset, size_t size, cl_uint n,
                                 const cl_event *events, cl_event *event)
{
    (void)q, (void)pattern_size, (void)n, (void)events, (void)event;
    int how = act("clEnqueueFillBuffer");

    if (how == 0)
        memset(AT(m, offset), *(const unsigned char *)pattern, size);
    return how == 1 ? -9999 : CL_SUCCESS;
}

SHOWN void *clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool wait, cl_map_flags flags,
                               size_t offset, size_t size, cl_uint n, const cl_event *events,
                               cl_event *event, cl_int *error)
{
    (void)q, (void)wait, (void)flags, (void)size, (void)n, (void)events, (void)event;
    int how = act("clEnqueueMapBuffer");

    if (how == 1)
        *error = -9999;
    return how ? NULL : AT(m, offset);
}

SIMPLE(clEnqueueUnmapMemObject, cl_command_queue q, cl_mem m, void *at, cl_uint n,
       const cl_event *events, cl_event *event)

/* ---- programs, events ------------------------------------------------------------------------ */

MAKES(cl_program, clCreateProgramWithSource, cl_context c, cl_uint n, const char **texts,
      const size_t *lengths)
SIMPLE(clBuildProgram, cl_program p, cl_uint n, const cl_device_id *ids, const char *options,
       void(CL_CALLBACK *notify)(cl_program, void *), void *user)
SIMPLE(clGetProgramBuildInfo, cl_program p, cl_device_id d, cl_program_build_info what, size_t size,
       void *out, size_t *length)
SIMPLE(clReleaseProgram, cl_program p)
MAKES(cl_kernel, clCreateKernel, cl_program p, const char *name)
SIMPLE(clReleaseKernel, cl_kernel k)

static void *argument;

SHOWN cl_int clSetKernelArg(cl_kernel k, cl_uint index, size_t size, const void *at)
{
    (void)k, (void)index, (void)size;
    int how = act("clSetKernelArg");

    argument = how == 0 ? *(void *const *)at : NULL;
    return how == 1 ? -9999 : CL_SUCCESS;
}

SHOWN cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dims,
                                    const size_t *offset, const size_t *global, const size_t *local,
                                    cl_uint n, const cl_event *events, cl_event *event)
{
    (void)q, (void)k, (void)dims, (void)offset, (void)local, (void)n, (void)events, (void)event;
    int how = act("clEnqueueNDRangeKernel");

    for (size_t i = 0; how == 0 && argument && i < global[0]; i++)
        ((int *)argument)[i] = (int)(3 * i);
    return how == 1 ? -9999 : CL_SUCCESS;
}

SHOWN cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n, const cl_event *events,
                                         cl_event *event)
{
    (void)q, (void)n, (void)events;
    int how = act("clEnqueueMarkerWithWaitList");

    if (how == 0)
        *event = (cl_event)other;
    return how == 1 ? -9999 : CL_SUCCESS;
}

SIMPLE(clEnqueueBarrierWithWaitList, cl_command_queue q, cl_uint n, const cl_event *events,
       cl_event *event)
SIMPLE(clWaitForEvents, cl_uint n, const cl_event *events)
SIMPLE(clRetainEvent, cl_event e)
SIMPLE(clReleaseEvent, cl_event e)

SHOWN cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t size, void *out, size_t *length)
{
    (void)e, (void)what, (void)length;
    int how = act("clGetEventInfo");

    if (how == 0)
        memset(out, 0, size); /* CL_COMPLETE */
    return how == 1 ? -9999 : CL_SUCCESS;
}
