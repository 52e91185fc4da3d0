/* SPDX-License-Identifier: MIT
 *
 * Writes files of pictures. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "predict.h"
#include "report_private.h"

#include "sdk/conform/conform.h"

enum { BYTES_MOST = 1 << 28 };

static tn_status write_bytes(const char *path, const report_text *png)
{
    const char *why = NULL;
    FILE *file = conform_create(path, &why);
    bool failed;
    int code;

    if (file == NULL)
        return tn_fail_native(TN_ERR_IO, errno, "%s: cannot be written: %s", path, why);
    failed = fwrite(png->bytes, 1, png->size, file) != png->size;
    code = errno;
    if (fclose(file) != 0 && !failed) {
        failed = true;
        code = errno;
    }
    if (!failed)
        return TN_OK;
    remove(path);
    return tn_fail_native(TN_ERR_IO, code, "%s: cannot be written: %s", path, strerror(code));
}

tn_status png_write(const char *path, unsigned char *pixels, int64_t width, int64_t height,
                    int channels)
{
    report_text png = { .status = TN_OK };
    tn_status status;

    if (width < 1 || height < 1 || width > BYTES_MOST / channels ||
        height > BYTES_MOST / (width * channels + 1))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: wrong size, got %lld x %lld pixels; expected at least 1 x 1, and at most "
            "256 MiB in all",
            path, (long long)width, (long long)height);
    status = report_png(&png, &(report_picture){ (int)width, (int)height, channels, pixels });
    if (status == TN_OK)
        status = write_bytes(path, &png);
    report_text_drop(&png);
    return status;
}
