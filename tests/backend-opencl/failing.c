/* SPDX-License-Identifier: MIT
 *
 * An OpenCL loader in which the step that TENON_TEST_OPENCL_FAILS names fails: queue (a queue is
 * created), buffer or write. All other functions are those of the real loader. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_HOST_MEMORY = -6, OUT_OF_RESOURCES = -5 };

static void *loader;

__attribute__((constructor)) static void open_loader(void)
{
    loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
}

static void *find(const char *name)
{
    return loader != NULL ? dlsym(loader, name) : NULL;
}

static int fails(const char *step)
{
    const char *wanted = getenv("TENON_TEST_OPENCL_FAILS");

    return wanted != NULL && strcmp(wanted, step) == 0;
}

/* ---- functions of the real loader ---------------------------------------------------------- */

/* clang-format off */
#define FORWARDED(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) \
    X(clCreateContext) X(clReleaseContext) X(clReleaseCommandQueue) \
    X(clRetainCommandQueue) X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject) X(clReleaseMemObject) \
    X(clEnqueueReadBuffer) X(clEnqueueCopyBuffer) X(clEnqueueFillBuffer) \
    X(clCreateProgramWithSource) X(clBuildProgram) X(clGetProgramBuildInfo) X(clReleaseProgram) \
    X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) X(clEnqueueNDRangeKernel) \
    X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) X(clWaitForEvents) \
    X(clRetainEvent) \
    X(clGetEventInfo) X(clReleaseEvent) X(clFlush) X(clFinish)
/* clang-format on */

typedef void function(void);

#define FORWARD(name)                                                                              \
    function name __attribute__((ifunc("find_" #name), visibility("default")));                    \
    __attribute__((used)) static function *find_##name(void)                                       \
    {                                                                                              \
        return (function *)find(#name);                                                            \
    }
FORWARDED(FORWARD)

/* ---- functions that can fail --------------------------------------------------------------- */

typedef void *make_queue(void *context, void *device, unsigned long properties, int *error);
typedef void *make_buffer(void *context, unsigned long flags, size_t size, void *host, int *error);
typedef int write_buffer(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size,
                         const void *from, unsigned n_events, const void *events, void *event);

__attribute__((visibility("default"))) make_queue clCreateCommandQueue;
__attribute__((visibility("default"))) make_buffer clCreateBuffer;
__attribute__((visibility("default"))) write_buffer clEnqueueWriteBuffer;

void *clCreateCommandQueue(void *context, void *device, unsigned long properties, int *error)
{
    if (!fails("queue"))
        return ((make_queue *)find("clCreateCommandQueue"))(context, device, properties, error);
    *error = OUT_OF_RESOURCES;
    return NULL;
}

void *clCreateBuffer(void *context, unsigned long flags, size_t size, void *host, int *error)
{
    if (!fails("buffer"))
        return ((make_buffer *)find("clCreateBuffer"))(context, flags, size, host, error);
    *error = OUT_OF_HOST_MEMORY;
    return NULL;
}

int clEnqueueWriteBuffer(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size,
                         const void *from, unsigned n_events, const void *events, void *event)
{
    if (fails("write"))
        return OUT_OF_RESOURCES;
    return ((write_buffer *)find("clEnqueueWriteBuffer"))(queue, buffer, blocking, offset, size,
                                                          from, n_events, events, event);
}
