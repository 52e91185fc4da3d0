/* SPDX-License-Identifier: MIT
 *
 * The event file for TensorBoard: records with checksums, each an Event of protocol buffers. Only
 * the fields that are needed are written:
 *
 *   Event           1 wall_time double, 2 step varint, 3 file_version string, 5 summary Summary
 *   Summary         1 value Value, repeated
 *   Value           1 tag string, 2 simple_value float, 4 image Image, 5 histo Histogram
 *   Image           1 height, 2 width, 3 colorspace (channels) varint, 4 encoded_image_string bytes
 *   Histogram       1 min, 2 max, 3 num, 4 sum, 5 sum_squares double, 6 bucket_limit, 7 bucket
 *                   packed double */
#include "report_private.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* ---- checksums ------------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli), four bits at a time. */
static uint32_t crc32c(const unsigned char *bytes, size_t size)
{
    static const uint32_t table[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc = table[(crc ^ bytes[i]) & 15] ^ (crc >> 4);
        crc = table[(crc ^ (bytes[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

/* The checksum as a record has it: rotated by 15 bits, plus a constant. A plain checksum would
 * detect less in data that contains checksums itself. */
uint32_t report_event_sum(const void *bytes, size_t size)
{
    uint32_t crc = crc32c(bytes, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

/* ---- protocol buffers ------------------------------------------------------------------------ */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_little(report_text *t, uint64_t number, int bytes)
{
    unsigned char out[8];
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(number >> (8 * i));
    report_text_bytes(t, out, (size_t)bytes);
}

static void put_varint(report_text *t, uint64_t number)
{
    unsigned char out[10];
    size_t size = 0;
    for (; number >= 0x80; number >>= 7)
        out[size++] = (unsigned char)(number | 0x80);
    out[size++] = (unsigned char)number;
    report_text_bytes(t, out, size);
}

static void put_key(report_text *t, int field, int type)
{
    put_varint(t, (uint64_t)(field << 3 | type));
}

static void put_number(report_text *t, int field, uint64_t number)
{
    put_key(t, field, VARINT);
    put_varint(t, number);
}

static void put_double(report_text *t, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(t, field, FIXED64);
    put_little(t, bits, 8);
}

static void put_float(report_text *t, int field, double value)
{
    uint32_t bits;
    /* The result of converting a double that is too large is undefined in C. */
    float narrow = value > FLT_MAX ? INFINITY : value < -FLT_MAX ? -INFINITY : (float)value;
    memcpy(&bits, &narrow, sizeof bits);
    put_key(t, field, FIXED32);
    put_little(t, bits, 4);
}

static void put_bytes(report_text *t, int field, const void *bytes, size_t size)
{
    put_key(t, field, BYTES);
    put_varint(t, size);
    report_text_bytes(t, bytes, size);
}

static void put_doubles(report_text *t, int field, const double *values, int64_t count)
{
    put_key(t, field, BYTES);
    put_varint(t, 8 * (uint64_t)count);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        put_little(t, bits, 8);
    }
}

/* Adds a Value to the values of the current row; `content` has the bytes of the Value after its
 * tag. */
static tn_status put_value(report *r, const char *tag, report_text *content)
{
    report_text value = { .status = TN_OK };
    size_t before = r->values.size;
    put_bytes(&value, 1, tag, strlen(tag));
    report_text_bytes(&value, content->bytes, content->size);
    tn_status status = content->status != TN_OK ? content->status : value.status;
    if (status == TN_OK)
        put_bytes(&r->values, 1, value.bytes, value.size);
    if (status == TN_OK && r->values.status != TN_OK) {
        status = r->values.status;
        r->values.status = TN_OK;
        r->values.size = before;
    }
    report_text_drop(&value);
    report_text_drop(content);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

tn_status report_event_scalar(report *r, const char *tag, double value)
{
    report_text content = { .status = TN_OK };
    put_float(&content, 2, value);
    return put_value(r, tag, &content);
}

tn_status report_event_bins(report *r, const char *tag, const report_bins *bins)
{
    report_text histogram = { .status = TN_OK }, content = { .status = TN_OK };
    put_double(&histogram, 1, bins->low);
    put_double(&histogram, 2, bins->high);
    put_double(&histogram, 3, bins->number);
    put_double(&histogram, 4, bins->sum);
    put_double(&histogram, 5, bins->squares);
    put_doubles(&histogram, 6, bins->limits, bins->count);
    put_doubles(&histogram, 7, bins->counts, bins->count);
    content.status = histogram.status;
    if (content.status == TN_OK)
        put_bytes(&content, 5, histogram.bytes, histogram.size);
    report_text_drop(&histogram);
    return put_value(r, tag, &content);
}

tn_status report_event_picture(report *r, const char *tag, const report_picture *picture,
                               const report_text *png)
{
    report_text image = { .status = TN_OK }, content = { .status = TN_OK };
    put_number(&image, 1, (uint64_t)picture->height);
    put_number(&image, 2, (uint64_t)picture->width);
    put_number(&image, 3, (uint64_t)picture->channels);
    put_bytes(&image, 4, png->bytes, png->size);
    content.status = image.status;
    if (content.status == TN_OK)
        put_bytes(&content, 4, image.bytes, image.size);
    report_text_drop(&image);
    return put_value(r, tag, &content);
}

/* ---- records --------------------------------------------------------------------------------- */

static double wall_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Appends an event as a record: its size, the checksum of the size, the event, its checksum. */
static tn_status append(report *r, const report_text *event)
{
    report_text record = { .status = TN_OK };
    put_little(&record, event->size, 8);
    put_little(&record, record.status == TN_OK ? report_event_sum(record.bytes, 8) : 0, 4);
    report_text_bytes(&record, event->bytes, event->size);
    put_little(&record, report_event_sum(event->bytes, event->size), 4);
    tn_status status = record.status;
    if (status == TN_OK)
        status = report_file_append(&r->events, record.bytes, record.size);
    report_text_drop(&record);
    return status;
}

tn_status report_events_write(report *r)
{
    report_text event = { .status = TN_OK };
    if (r->values.size == 0)
        return TN_OK;
    put_double(&event, 1, wall_time());
    put_number(&event, 2, (uint64_t)r->row_step);
    put_bytes(&event, 5, r->values.bytes, r->values.size);
    r->values.size = 0;
    tn_status status = event.status != TN_OK ? event.status : append(r, &event);
    report_text_drop(&event);
    return status;
}

static tn_status write_version(report *r)
{
    static const char version[] = "brain.Event:2";
    report_text event = { .status = TN_OK };
    put_double(&event, 1, wall_time());
    put_bytes(&event, 3, version, sizeof version - 1);
    tn_status status = event.status != TN_OK ? event.status : append(r, &event);
    report_text_drop(&event);
    return status;
}

tn_status report_events_open(report *r, const report_setup *setup)
{
    int64_t kept = 0;
    tn_status status = report_file_open(
        &r->events, report_file_path(setup->folder, "events.out.tfevents.tenon"));
    if (status == TN_OK && setup->how == REPORT_RESUME)
        status = report_replay(r, setup->resume_step, &kept);
    if (status == TN_OK && r->events.size > kept)
        status = report_file_cut(&r->events, kept);
    return status == TN_OK && kept == 0 ? write_version(r) : status;
}
