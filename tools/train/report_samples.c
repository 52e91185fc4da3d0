/* SPDX-License-Identifier: MIT
 *
 * The worst samples of an epoch, with small pictures of them. */
#include "report_private.h"
#include "work.h"

#include <math.h>
#include <string.h>

enum { NAME_END = 36 }; /* bytes of a path that are shown */

bool report_can_draw(const tn_tensor *image)
{
    int32_t dims = image != NULL ? tn_tensor_ndim(image) : 0;
    uint64_t numbers = TN_BIT(TN_BOOL) | TN_MASK_INT | TN_MASK_FLOAT;
    if ((dims != 2 && dims != 3) || (TN_BIT(tn_tensor_dtype(image)) & numbers) == 0)
        return false;
    int64_t channels = dims == 3 ? tn_tensor_size(image, 0) : 1;
    return tn_tensor_numel(image) > 0 && (channels == 1 || channels == 3 || channels == 4) &&
           tn_tensor_size(image, -1) <= INT32_MAX && tn_tensor_size(image, -2) <= INT32_MAX;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Writes a shape such as "[3, 2]". */
static void shape_text(const tn_tensor *tensor, char *out, size_t size)
{
    int64_t length = tn_snprint(out, size, "[");
    for (int32_t i = 0; i < tn_tensor_ndim(tensor) && length < (int64_t)size; i++)
        length += tn_snprint(out + length, size - (size_t)length, i > 0 ? ", %lld" : "%lld",
                             (long long)tn_tensor_size(tensor, i));
    if (length < (int64_t)size)
        tn_snprint(out + length, size - (size_t)length, "]");
}

/* Finds what becomes black and white. */
static void find_range(const float *values, int64_t count, bool floats, double *low, double *high)
{
    *low = 0;
    *high = floats ? 1 : 255;
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        least = fmin(least, (double)values[i]);
        most = fmax(most, (double)values[i]);
    }
    if (least < *low || most > *high) {
        *low = least;
        *high = most;
    }
}

/* Returns the average of the values of a channel in a rectangle of pixels. */
static double average(const float *plane, int64_t width, int64_t top, int64_t bottom, int64_t left,
                      int64_t right)
{
    double sum = 0;
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++)
            sum += isfinite(plane[y * width + x]) ? (double)plane[y * width + x] : 0;
    return sum / (double)((bottom - top) * (right - left));
}

/* Fills the pixels; each is the average of those of the image that it covers. */
static void draw(report_picture *picture, const float *values, int64_t height, int64_t width,
                 double low, double high)
{
    double scale = high > low ? 255 / (high - low) : 0;
    unsigned char *out = picture->pixels;
    for (int64_t y = 0; y < picture->height; y++)
        for (int64_t x = 0; x < picture->width; x++)
            for (int64_t c = 0; c < picture->channels; c++) {
                double value = average(
                    values + c * height * width, width, y * height / picture->height,
                    (y + 1) * height / picture->height, x * width / picture->width,
                    (x + 1) * width / picture->width);
                *out++ = (unsigned char)fmax(0, fmin(255, floor((value - low) * scale + 0.5)));
            }
}

static tn_status take_picture(report_picture *picture, tn_tensor *image)
{
    TN_SCOPE;
    int64_t height = tn_tensor_size(image, -2), width = tn_tensor_size(image, -1);
    int64_t longer = height > width ? height : width, count = tn_tensor_numel(image);
    double shrink = longer > REPORT_SIDE ? (double)REPORT_SIDE / (double)longer : 1;
    double low, high;
    *picture = (report_picture){ .channels = tn_tensor_ndim(image) == 3
                                                 ? (int)tn_tensor_size(image, 0)
                                                 : 1,
                                 .height = (int)fmax(1, floor((double)height * shrink + 0.5)),
                                 .width = (int)fmax(1, floor((double)width * shrink + 0.5)) };
    tn_tensor *floats = tn_cast(tn_detach(image), TN_F32);
    float *values = floats != NULL ? tn_malloc((size_t)count * sizeof *values) : NULL;
    tn_status status = values != NULL ? TN_OK : tn_error_last_code();
    if (status == TN_OK)
        status = tn_tensor_copy_out(floats, values, (size_t)count * sizeof *values);
    if (status == TN_OK) {
        picture->pixels = tn_malloc((size_t)picture->height * (size_t)picture->width *
                                    (size_t)picture->channels);
        status = picture->pixels != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK) {
        bool whole = (TN_BIT(tn_tensor_dtype(image)) & TN_MASK_INT) != 0;
        find_range(values, count, !whole, &low, &high);
        draw(picture, values, height, width, low, high);
    }
    tn_free(values);
    return status;
}

/* ---- the worst ------------------------------------------------------------------------------- */

bool report_is_bad(const report *r, double loss)
{
    const report_shots *all = &r->shooting;
    return all->count < REPORT_WORST || work_is_larger(loss, all->shots[all->count - 1].loss);
}

static void drop_shot(report_shot *shot)
{
    tn_free(shot->picture.pixels);
    tn_free(shot->name);
}

tn_status report_worst(report *r, const report_sample *sample)
{
    report_shots *all = &r->shooting;
    if (sample->truth >= r->class_count || sample->predicted >= r->class_count)
        return tn_fail(
            TN_ERR_INDEX, "report: sample: got class %lld; expected one of %lld classes",
            (long long)(sample->truth >= r->class_count ? sample->truth : sample->predicted),
            (long long)r->class_count);
    if (sample->image != NULL && !report_can_draw(sample->image)) {
        char shape[96];
        shape_text(sample->image, shape, sizeof shape);
        return tn_fail(TN_ERR_VALUE,
                       "report: sample: image: it is no picture, got %s; expected "
                       "[H, W] or [C, H, W] with C 1, 3 or 4",
                       shape);
    }
    if (!report_is_bad(r, sample->loss))
        return TN_OK;
    report_shot shot = { .index = sample->index,
                         .truth = sample->truth,
                         .predicted = sample->predicted,
                         .loss = sample->loss };
    if (sample->image != NULL) {
        tn_status status = take_picture(&shot.picture, sample->image);
        if (status != TN_OK)
            return status;
    }
    if (all->count == REPORT_WORST)
        drop_shot(&all->shots[--all->count]);
    int at = all->count++;
    for (; at > 0 && work_is_larger(shot.loss, all->shots[at - 1].loss); at--)
        all->shots[at] = all->shots[at - 1];
    all->shots[at] = shot;
    return TN_OK;
}

void report_samples_drop(report_shots *shots)
{
    for (int i = 0; i < shots->count; i++)
        drop_shot(&shots->shots[i]);
    *shots = (report_shots){ .count = 0 };
}

tn_status report_name_worst(report *r,
                            bool (*name)(void *user, int64_t index, char *out, size_t size),
                            void *user)
{
    report_shots *all = &r->shooting;

    for (int i = 0; i < all->count; i++) {
        report_shot *shot = &all->shots[i];
        char text[4096];

        if (shot->name != NULL || shot->index < 0 || !name(user, shot->index, text, sizeof text))
            continue;
        shot->name = tn_strdup(text);
        if (shot->name == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_picture(report_text *page, const report_picture *picture)
{
    report_text png = { .status = TN_OK };
    tn_status status = report_png(&png, picture);
    if (status == TN_OK) {
        /* Small pictures are enlarged by a whole number, so that their pixels stay square. */
        int longer = picture->width > picture->height ? picture->width : picture->height;
        int scale = longer < REPORT_SIDE ? REPORT_SIDE / longer : 1;
        report_text_add(page,
                        "<img alt=\"\" width=\"%d\" height=\"%d\" src=\"data:image/png;base64,",
                        picture->width * scale, picture->height * scale);
        report_base64(page, png.bytes, png.size);
        report_text_put(page, "\">");
    } else {
        page->status = page->status != TN_OK ? page->status : status;
    }
    report_text_drop(&png);
}

static void put_class(report_text *page, const report *r, const char *what, int64_t class)
{
    if (class < 0)
        return;
    report_text_add(page, "<span>%s <b>", what);
    report_text_short(page, r->classes[class], 40);
    report_text_put(page, "</b></span>");
}

/* Adds the end of a path, which tells files apart; the whole path is its title. */
static void put_name(report_text *page, const char *name)
{
    const char *end = name + strlen(name);

    while (end > name && strlen(end) < NAME_END)
        end--;
    while (end > name && ((unsigned char)*end & 0xC0) == 0x80) /* not within a character */
        end--;
    report_text_put(page, "<span title=\"");
    report_text_html(page, name);
    report_text_put(page, end > name ? "\">\xe2\x80\xa6" : "\">");
    report_text_html(page, end);
    report_text_put(page, "</span>");
}

void report_samples_section(const report *r, report_text *page)
{
    const report_shots *all = &r->shots;
    if (all->count == 0)
        return;
    report_text_add(page,
                    "<section id=\"worst\" aria-labelledby=\"h-worst\"><h2 id=\"h-worst\">Worst "
                    "samples</h2><p>The %d samples of validation with the largest loss in epoch "
                    "%lld.</p><div class=\"gallery\">",
                    all->count, (long long)all->epoch);
    for (int i = 0; i < all->count; i++) {
        const report_shot *shot = &all->shots[i];
        report_text_put(page, "<figure class=\"card\"><div>");
        if (shot->picture.pixels != NULL)
            put_picture(page, &shot->picture);
        report_text_put(page, "</div><figcaption>");
        put_class(page, r, "true", shot->truth);
        put_class(page, r, "predicted", shot->predicted);
        report_text_put(page, "<span>loss ");
        report_text_number(page, shot->loss);
        report_text_put(page, "</span>");
        if (shot->name != NULL)
            put_name(page, shot->name);
        if (shot->index >= 0) {
            report_text_put(page, "<span>sample ");
            report_text_whole(page, (double)shot->index);
            report_text_put(page, "</span>");
        }
        report_text_put(page, "</figcaption></figure>");
    }
    report_text_put(page, "</div></section>");
}
