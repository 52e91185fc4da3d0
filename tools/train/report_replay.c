/* SPDX-License-Identifier: MIT
 *
 * Reads the event file of a run that is resumed: which events to keep, and their histograms. The
 * file may end anywhere, and is not trusted. report_events.c lists the fields. */
#include "report_private.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 1 << 28 }; /* bytes of an event; a larger size is one of a damaged file */

/* The part of a message that has not been read, and the field that was read last. */
typedef struct cursor {
    const unsigned char *at, *end;
    uint64_t field, type;
    uint64_t number;            /* of a varint, or the bits of a fixed number */
    const unsigned char *bytes; /* of a field of bytes */
    size_t size;
} cursor;

static uint64_t little(const unsigned char *bytes, int count)
{
    uint64_t number = 0;
    for (int i = 0; i < count; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

static double real(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool varint(cursor *c, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        *out |= (uint64_t)(*c->at & 0x7f) << shift;
        if ((*c->at++ & 0x80) == 0)
            return true;
    }
    return false;
}

/* Reads a field. Returns false at the end and where the message is malformed. */
static bool next(cursor *c)
{
    uint64_t key, size = 0;
    if (!varint(c, &key))
        return false;
    c->field = key >> 3;
    c->type = key & 7;
    c->bytes = NULL;
    switch (c->type) {
    case 0: return varint(c, &c->number);
    case 1: size = 8; break;
    case 5: size = 4; break;
    case 2:
        if (!varint(c, &size))
            return false;
        break;
    default: return false;
    }
    if (size > (uint64_t)(c->end - c->at))
        return false;
    if (c->type == 2) {
        c->bytes = c->at;
        c->size = (size_t)size;
    } else {
        c->number = little(c->at, (int)size);
    }
    c->at += size;
    return true;
}

static void read_doubles(const cursor *c, double *out, int64_t *count)
{
    size_t found = c->size / 8;
    found = found < REPORT_BINS + 2 ? found : REPORT_BINS + 2;
    for (size_t i = 0; i < found; i++)
        out[i] = real(little(c->bytes + 8 * i, 8));
    *count = (int64_t)found;
}

/* Reads a Histogram. Returns false if it is not one that the report wrote. */
static bool read_bins(const unsigned char *bytes, size_t size, report_bins *bins)
{
    cursor c = { .at = bytes, .end = bytes + size };
    int64_t limits = 0, counts = 0;
    while (next(&c)) {
        if (c.field == 1 && c.type == 1)
            bins->low = real(c.number);
        else if (c.field == 2 && c.type == 1)
            bins->high = real(c.number);
        else if (c.field == 3 && c.type == 1)
            bins->number = real(c.number);
        else if (c.field == 4 && c.type == 1)
            bins->sum = real(c.number);
        else if (c.field == 5 && c.type == 1)
            bins->squares = real(c.number);
        else if (c.field == 6 && c.type == 2)
            read_doubles(&c, bins->limits, &limits);
        else if (c.field == 7 && c.type == 2)
            read_doubles(&c, bins->counts, &counts);
    }
    bins->count = limits;
    bool good = limits == counts && limits > 0 && bins->low <= bins->high && isfinite(bins->low) &&
                isfinite(bins->high) && bins->number > 0;
    for (int64_t i = 0; i < limits && good; i++)
        good = isfinite(bins->limits[i]) && bins->counts[i] >= 0 &&
               bins->limits[i] >= (i > 0 ? bins->limits[i - 1] : bins->low);
    return good;
}

static tn_status keep_bins(report *r, const cursor *tag, const cursor *histogram, int64_t step)
{
    char name[REPORT_NAME];
    report_bins bins = { .step = step };
    for (int kind = 0; kind < 2; kind++) {
        const char *start = report_histogram_tags[kind];
        size_t length = strlen(start);
        if (tag->size <= length || tag->size - length >= sizeof name ||
            memcmp(tag->bytes, start, length) != 0)
            continue;
        memcpy(name, tag->bytes + length, tag->size - length);
        name[tag->size - length] = '\0';
        if (strlen(name) == tag->size - length &&
            read_bins(histogram->bytes, histogram->size, &bins))
            return report_histogram_keep(&r->spreads, kind, name, &bins);
    }
    return TN_OK;
}

static tn_status read_summary(report *r, const cursor *summary, int64_t step)
{
    cursor values = { .at = summary->bytes, .end = summary->bytes + summary->size };
    tn_status status = TN_OK;
    while (status == TN_OK && next(&values)) {
        if (values.field != 1 || values.type != 2)
            continue;
        cursor c = { .at = values.bytes, .end = values.bytes + values.size };
        cursor tag = { .bytes = NULL }, histogram = { .bytes = NULL };
        while (next(&c)) {
            if (c.field == 1 && c.type == 2)
                tag = c;
            if (c.field == 5 && c.type == 2)
                histogram = c;
        }
        if (tag.bytes != NULL && histogram.bytes != NULL)
            status = keep_bins(r, &tag, &histogram, step);
    }
    return status;
}

/* Reads an event. Sets *past if its step is after the one to resume at. */
static tn_status read_event(report *r, const unsigned char *bytes, size_t size, int64_t resume,
                            bool *past)
{
    cursor c = { .at = bytes, .end = bytes + size }, summary = { .bytes = NULL };
    int64_t step = 0;
    while (next(&c)) {
        if (c.field == 2 && c.type == 0)
            step = (int64_t)c.number;
        if (c.field == 5 && c.type == 2)
            summary = c;
    }
    *past = step > resume;
    return *past || summary.bytes == NULL ? TN_OK : read_summary(r, &summary, step);
}

/* Reads bytes at an offset. Returns false with *status TN_OK if the file ends before. */
static bool read_at(const report_file *f, void *to, size_t size, int64_t offset, tn_status *status)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = pread(f->fd, (char *)to + done, size - done, offset + (int64_t)done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            *status = tn_fail_native(TN_ERR_IO, errno, "report: %q: it cannot be read, got %s",
                                     f->path, strerror(errno));
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

/* Reads the record at an offset into `*event`, which has `*room` bytes. Returns its size, 0 if
 * there is no whole and undamaged one. */
static size_t read_record(const report_file *f, int64_t offset, unsigned char **event, size_t *room,
                          tn_status *status)
{
    unsigned char head[12];
    if (!read_at(f, head, sizeof head, offset, status) ||
        little(head + 8, 4) != report_event_sum(head, 8) || little(head, 8) > LARGEST)
        return 0;
    size_t size = (size_t)little(head, 8);
    if (size + 4 > *room) {
        unsigned char *grown = tn_realloc(*event, size + 4);
        if (grown == NULL) {
            *status = tn_error_last_code();
            return 0;
        }
        *event = grown;
        *room = size + 4;
    }
    if (!read_at(f, *event, size + 4, offset + 12, status) ||
        little(*event + size, 4) != report_event_sum(*event, size))
        return 0;
    return size + 16;
}

tn_status report_replay(report *r, int64_t resume_step, int64_t *kept)
{
    const report_file *f = &r->events;
    unsigned char *event = NULL;
    size_t room = 0;
    tn_status status = TN_OK;
    bool past = false;
    *kept = 0;
    while (status == TN_OK && !past && *kept < f->size) {
        size_t size = read_record(f, *kept, &event, &room, &status);
        if (size == 0) {
            if (status == TN_OK)
                tn_log(TN_LOG_WARNING,
                       "report: %q: the event at byte %lld is damaged or not "
                       "complete; %lld bytes from there on are removed",
                       f->path, (long long)*kept, (long long)(f->size - *kept));
            break;
        }
        status = read_event(r, event, size - 16, resume_step, &past);
        *kept += past ? 0 : (int64_t)size;
    }
    tn_free(event);
    return status;
}
