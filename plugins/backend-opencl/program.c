/* SPDX-License-Identifier: MIT
 *
 * Builds OpenCL programs and makes kernel objects. The build embeds the kernel texts in the plugin.
 * A text is compiled for one device and one dtype when one of its kernels is first needed.
 * Each stream has its own kernel objects. */
#include "opencl.h"

#include <stdatomic.h>
#include <string.h>

#define TEXT_(name) extern const unsigned char tn_embed_##name[];
GPU_TEXTS(TEXT_)
TEXT_(dialect)
TEXT_(layout)
TEXT_(common)
TEXT_(types)
#undef TEXT_

static tn_status build_failed(struct opencl_device *device, cl_program program, cl_int error,
                              enum gpu_text text, tn_dtype type)
{
    static const char *const names[] = {
#define NAME_(name) #name,
        GPU_TEXTS(NAME_)
#undef NAME_
    };
    size_t size = 0;
    char *log = NULL;
    tn_status status;

    cl.clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (size > 1 && (log = tn_calloc(1, size + 1)))
        cl.clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    if (log)
        tn_log(TN_LOG_DEBUG, "compile log of %s.cl for %s: %s", names[text], device->name, log);
    status = tn_fail_native(TN_ERR_DEVICE, error,
                            "%s: %s.cl for %s does not compile: %s (%d)\n%.600s", device->name,
                            names[text], gpu_type_name(type), cl_api_error_name(error), (int)error,
                            log && *log ? log : "(the driver returned no log)");
    tn_free(log);
    return status;
}

static tn_status build(struct opencl_device *device, enum gpu_text text, tn_dtype type,
                       cl_program *out)
{
    static const unsigned char *const texts[] = {
#define AT_(name) tn_embed_##name,
        GPU_TEXTS(AT_)
#undef AT_
    };
    const char *parts[] = { (const char *)tn_embed_dialect, (const char *)tn_embed_layout,
                            (const char *)tn_embed_common, (const char *)tn_embed_types,
                            (const char *)texts[text] };
    char options[288];
    cl_int error = CL_SUCCESS;
    cl_program program = cl.clCreateProgramWithSource(device->context, 5, parts, NULL, &error);

    if (!program)
        return cl_api_fail(error, "making a program", device->name);
    tn_snprint(options, sizeof options, "-DTN_TYPE=%d %s", (int)type, device->build_options);
    error = cl.clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    if (error != CL_SUCCESS) {
        tn_status status = build_failed(device, program, error, text, type);

        cl.clReleaseProgram(program);
        return status;
    }
    *out = program;
    return TN_OK;
}

static tn_status program_get(struct opencl_device *device, enum gpu_text text, tn_dtype type,
                             cl_program *out)
{
    cl_program program = atomic_load_explicit(&device->programs[text][type], memory_order_acquire);
    tn_status status = TN_OK;

    if (!program) {
        pthread_mutex_lock(&device->lock);
        program = atomic_load_explicit(&device->programs[text][type], memory_order_relaxed);
        if (!program) {
            status = build(device, text, type, &program);
            if (!status)
                atomic_store_explicit(&device->programs[text][type], program, memory_order_release);
        }
        pthread_mutex_unlock(&device->lock);
    }
    *out = program;
    return status;
}

tn_status opencl_kernel(struct opencl_stream *stream, enum gpu_kernel kernel, tn_dtype type,
                        cl_kernel *out)
{
    cl_program program;
    char name[64];
    cl_int error = CL_SUCCESS;
    tn_status status;

    if ((size_t)type >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_TYPE,
                       "dtype: unknown, got %d; expected one that the device has kernels for",
                       (int)type);
    if (stream->kernels[kernel][type]) {
        *out = stream->kernels[kernel][type];
        return TN_OK;
    }
    status = program_get(stream->device, gpu_kernel_rows[kernel].text, type, &program);
    if (status)
        return status;
    gpu_kernel_text(name, sizeof name, kernel, type);
    *out = cl.clCreateKernel(program, name, &error);
    if (!*out) {
        char what[96];

        tn_snprint(what, sizeof what, "finding kernel %s", name);
        return cl_api_fail(error, what, stream->device->name);
    }
    stream->kernels[kernel][type] = *out;
    return TN_OK;
}

void opencl_programs_drop(struct opencl_device *device)
{
    for (int text = 0; text < GPU_TEXT_COUNT; text++)
        for (int type = 0; type < TN_DTYPE_COUNT; type++)
            if (device->programs[text][type])
                cl.clReleaseProgram(device->programs[text][type]);
}

void opencl_kernels_drop(struct opencl_stream *stream)
{
    for (int kernel = 0; kernel < GPU_KERNEL_COUNT; kernel++)
        for (int type = 0; type < TN_DTYPE_COUNT; type++)
            if (stream->kernels[kernel][type])
                cl.clReleaseKernel(stream->kernels[kernel][type]);
}
