/* SPDX-License-Identifier: MIT
 *
 * Loads CUDA modules and finds their kernels. A module contains the kernels of one text; it is
 * loaded when one of its kernels is first needed, from the fatbin that the build embedded or from a
 * file in the folder TENON_CUDA_KERNELS. */
#include "cuda.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef TN_WITH_CUDA_KERNELS
#define IMAGE_(name) extern const unsigned char tn_embed_##name[];
GPU_TEXTS(IMAGE_)
#undef IMAGE_
#endif

static const struct {
    const char *name;
    const unsigned char *image;
} texts[] = {
#ifdef TN_WITH_CUDA_KERNELS
#define TEXT_(name) { #name, tn_embed_##name },
#else
#define TEXT_(name) { #name, NULL },
#endif
    GPU_TEXTS(TEXT_)
#undef TEXT_
};

bool cuda_kernels_found(void)
{
    return texts[0].image || (cuda_options.kernels && *cuda_options.kernels);
}

/* Reads a file of TENON_CUDA_KERNELS into memory that the caller frees. */
static tn_status image_read(const char *path, void **out)
{
    /* O_NONBLOCK, because opening a FIFO would otherwise wait for a writer. */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = opened >= 0 ? fdopen(opened, "rb") : NULL;
    long size = -1;
    char *image = NULL;

    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size > 0 && fseek(file, 0, SEEK_SET) == 0 && (image = tn_malloc((size_t)size + 1)) &&
        fread(image, 1, (size_t)size, file) != (size_t)size) {
        tn_free(image);
        image = NULL;
    }
    if (file)
        fclose(file);
    else if (opened >= 0)
        close(opened);
    if (!image)
        return tn_fail(
            TN_ERR_IO,
            "CUDA: kernels: cannot read the file %q; expected TENON_CUDA_KERNELS to be a folder "
            "with NAME.fatbin files",
            path);
    image[size] = '\0';
    *out = image;
    return TN_OK;
}

static tn_status module_load(struct cuda_device *device, enum gpu_text text)
{
    const void *image = texts[text].image;
    void *read = NULL;
    char what[128];
    CUresult error;

    if (cuda_options.kernels && *cuda_options.kernels) {
        char path[PATH_MAX];
        tn_status status;

        if (tn_snprint(path, sizeof path, "%s/%s.fatbin", cuda_options.kernels, texts[text].name) >=
            (int64_t)sizeof path)
            return tn_fail(TN_ERR_VALUE,
                           "CUDA: TENON_CUDA_KERNELS: path too long; expected at most %d bytes",
                           PATH_MAX - 1);
        status = image_read(path, &read);
        if (status)
            return status;
        image = read;
    }
    error = cu.cuModuleLoadData(&device->modules[text], image);
    tn_free(read);
    if (error == CUDA_SUCCESS)
        return TN_OK;
    device->modules[text] = NULL;
    if (error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
        error == CUDA_ERROR_INVALID_IMAGE) {
        int version = 0;

        cu.cuDriverGetVersion(&version);
        return tn_fail_native(
            TN_ERR_UNAVAILABLE, error,
            "CUDA: kernels of %s: do not run on %s (compute capability %d.%d, driver for CUDA "
            "%d.%d): %s (%d); use a newer driver, or build Tenon with another nvcc",
            texts[text].name, device->name, (int)device->capability[0], (int)device->capability[1],
            version / 1000, version % 1000 / 10, cu_api_error_name(error), (int)error);
    }
    tn_snprint(what, sizeof what, "loading the kernels of %s", texts[text].name);
    return cuda_fail(device, error, what);
}

tn_status cuda_function(struct cuda_device *device, enum gpu_kernel kernel, tn_dtype type,
                        CUfunction *out)
{
    enum gpu_text text = (enum gpu_text)gpu_kernel_rows[kernel].text;
    tn_status status = TN_OK;
    char name[64], what[96];
    CUresult error;

    if ((size_t)type >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_TYPE,
                       "dtype: unknown, got %d; expected one that the device has kernels for",
                       (int)type);
    *out = atomic_load_explicit(&device->functions[kernel][type], memory_order_acquire);
    if (*out)
        return TN_OK;
    pthread_mutex_lock(&device->lock);
    if (!device->modules[text])
        status = module_load(device, text);
    if (!status) {
        gpu_kernel_text(name, sizeof name, kernel, type);
        error = cu.cuModuleGetFunction(out, device->modules[text], name);
        if (error == CUDA_SUCCESS) {
            atomic_store_explicit(&device->functions[kernel][type], *out, memory_order_release);
        } else {
            tn_snprint(what, sizeof what, "finding kernel %s", name);
            status = cuda_fail(device, error, what);
        }
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

void cuda_modules_drop(struct cuda_device *device)
{
    for (int text = 0; text < GPU_TEXT_COUNT; text++)
        if (device->modules[text])
            cu.cuModuleUnload(device->modules[text]);
}
