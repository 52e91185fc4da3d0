/* SPDX-License-Identifier: MIT
 *
 * The progress of a training run on a terminal. */
#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { WIDEST = 400, BAR = 24, NAMES = 8 };

struct progress {
    progress_setup setup;
    bool line;     /* a line is updated */
    bool terminal; /* lines must fit its width */
    bool shown;    /* the line that is updated is on the terminal */
    int64_t lines; /* that stay, counted */
    char phase[24];
    int64_t epoch, steps, step, samples;
    double began;       /* when the phase began */
    double epoch_began; /* when the first phase of the epoch began */
    double written;     /* when the terminal was written to; negative: not in this phase */
    int64_t epochs_done;
    double epochs_took;
};

static double system_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool can_update(FILE *to)
{
    const char *plain = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(to)) && (plain == NULL || *plain == '\0') &&
           (term == NULL || (strcmp(term, "dumb") != 0 && *term != '\0'));
}

progress *progress_new(const progress_setup *setup)
{
    progress *p = tn_calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->setup = *setup;
    p->setup.clock = setup->clock != NULL ? setup->clock : system_clock;
    p->setup.interval = setup->interval > 0 ? setup->interval : 10;
    p->line = setup->style == PROGRESS_LINE ||
              (setup->style == PROGRESS_AUTO && can_update(setup->to));
    p->terminal = p->line || (setup->style == PROGRESS_AUTO && isatty(fileno(setup->to)));
    return p;
}

void progress_drop(progress *p)
{
    progress_clear(p);
    tn_free(p);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Columns of the terminal; if it does not tell, those of COLUMNS, or 80. */
static int columns_of(const progress *p)
{
    struct winsize size;
    if (ioctl(fileno(p->setup.to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col < WIDEST ? size.ws_col : WIDEST;
    const char *columns = getenv("COLUMNS");
    int64_t number;
    if (columns != NULL && tn_read_int(columns, &number) && number > 0)
        return number < WIDEST ? (int)number : WIDEST;
    return 80;
}

int progress_room(const progress *p)
{
    struct winsize size;

    if (p == NULL || !p->terminal || ioctl(fileno(p->setup.to), TIOCGWINSZ, &size) != 0 ||
        size.ws_row == 0)
        return -1;
    return p->lines < size.ws_row ? (int)(size.ws_row - p->lines) : 0;
}

/* Returns the columns that a line that stays may have. */
static int room_of(const progress *p)
{
    return p->terminal ? columns_of(p) : WIDEST;
}

/* A line that is being put together. */
typedef struct line {
    char text[WIDEST + 1];
    int length, most;
} line;

/* Adds a part if the line has room for all of it. Returns false if not. */
static bool add(line *l, const char *format, ...)
{
    char part[256];
    va_list args;
    va_start(args, format);
    int64_t length = tn_snprintv(part, sizeof part, format, args);
    va_end(args);
    if (length < 0 || length >= (int64_t)sizeof part || l->length + length > l->most)
        return false;
    /* Names come from the program that is trained; a control character would move the cursor. A
     * character beyond ASCII has several bytes, and so takes less room than is counted. */
    for (int i = 0; i < length; i++) {
        unsigned char c = (unsigned char)part[i];
        l->text[l->length++] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
    }
    l->text[l->length] = '\0';
    return true;
}

/* Writes a duration; a short one with a tenth if it has been measured. */
static void duration_text(double seconds, bool measured, char *out, size_t size)
{
    if (!(seconds >= 0 && seconds < 1e9))
        tn_snprint(out, size, "?");
    else if (seconds < 60)
        tn_snprint(out, size, measured && seconds < 10 ? "%.1fs" : "%.0fs", seconds);
    else if (seconds < 3600)
        tn_snprint(out, size, "%.0fm%02.0fs", floor(seconds / 60), floor(fmod(seconds, 60)));
    else
        tn_snprint(out, size, "%.0fh%02.0fm", floor(seconds / 3600),
                   floor(fmod(seconds, 3600) / 60));
}

const char *progress_number(double number, int digits, char *out, size_t size)
{
    char rounded[64];
    long exponent;

    snprintf(rounded, sizeof rounded, "%.*e", digits - 1, number);
    if (!isfinite(number)) {
        snprintf(out, size, "%f", number);
        return out;
    }
    exponent = strtol(strchr(rounded, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 6)
        snprintf(out, size, "%s", rounded);
    else
        snprintf(out, size, "%.*f", exponent < digits - 1 ? digits - 1 - (int)exponent : 0, number);
    return out;
}

/* Losses have four significant digits, shares four decimals. With `shorter`, "accuracy" is "acc".
 * Returns false if the line has no room for all metrics. */
static bool add_metrics(line *l, const progress_metric *metrics, int64_t count, bool shorter)
{
    static const char word[] = "accuracy";
    char number[32];

    for (int64_t i = 0; i < count && i < NAMES; i++) {
        const char *name = metrics[i].name, *end = shorter ? strstr(name, word) : NULL;
        int kept = end != NULL && end[sizeof word - 1] == '\0' ? (int)(end + 3 - name)
                                                               : (int)strlen(name);

        if (metrics[i].is_share)
            snprintf(number, sizeof number, "%.4f", metrics[i].value);
        else
            progress_number(metrics[i].value, 4, number, sizeof number);
        if (!add(l, "  %.*s %s", kept, name, number))
            return false;
    }
    return true;
}

static void add_epoch(line *l, const progress *p)
{
    if (p->epoch <= p->setup.epochs) /* more were trained than --resume --epochs asks for */
        add(l, "epoch %lld/%lld", (long long)p->epoch, (long long)p->setup.epochs);
    else
        add(l, "epoch %lld", (long long)p->epoch);
}

/* Returns the seconds that are left, negative if unknown. */
static double left(const progress *p, double now)
{
    if (p->steps <= 0 || p->step <= 0 || p->step > p->steps)
        return -1;
    double phase = (now - p->began) * (double)(p->steps - p->step) / (double)p->step;
    int64_t epochs = p->setup.epochs - p->epoch;
    if (strcmp(p->phase, "train") != 0 || epochs <= 0)
        return phase;
    /* The duration of an epoch that has ended includes its validation. Before the first one has
     * ended, the time is estimated from the steps. */
    double epoch = p->epochs_done > 0 ? p->epochs_took / (double)p->epochs_done
                                      : (now - p->began) * (double)p->steps / (double)p->step;
    return phase + epoch * (double)epochs;
}

static void add_bar(line *l, double share)
{
    char bar[BAR + 1];
    int full = (int)floor(share * BAR + 1e-9);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[BAR] = '\0';
    add(l, " [%s]", bar);
}

static void make_line(const progress *p, line *l, double now, const progress_metric *metrics,
                      int64_t count)
{
    char time[24];
    double passed = now - p->began, rest = left(p, now);
    add_epoch(l, p);
    if (p->steps > 0)
        add(l, "  %s %lld/%lld", p->phase, (long long)p->step, (long long)p->steps);
    else
        add(l, "  %s %lld", p->phase, (long long)p->step);
    /* The bar is left out on a narrow terminal: numbers say more. */
    if (p->line && p->steps > 0 && l->most >= 100)
        add_bar(l, p->step < p->steps ? (double)p->step / (double)p->steps : 1);
    if (passed > 0 && p->samples > 0)
        add(l, "  %.0f samples/s", (double)p->samples / passed);
    if (rest >= 0) {
        duration_text(rest, false, time, sizeof time);
        add(l, "  %s left", time);
    }
    add_metrics(l, metrics, count, false);
}

static void write_line(progress *p, const line *l)
{
    if (p->line)
        fprintf(p->setup.to, "\r%s\x1b[K", l->text);
    else
        fprintf(p->setup.to, "%s\n", l->text);
    fflush(p->setup.to);
    p->shown = p->line;
}

/* ---- the run --------------------------------------------------------------------------------- */

void progress_begin(progress *p, int64_t epoch, const char *phase, int64_t steps)
{
    if (p == NULL)
        return;
    double now = p->setup.clock();
    if (epoch != p->epoch)
        p->epoch_began = now;
    p->epoch = epoch;
    tn_snprint(p->phase, sizeof p->phase, "%s", phase);
    p->steps = steps;
    p->step = p->samples = 0;
    p->began = now;
    /* The first plain line of a phase comes after an interval; a terminal shows at once. */
    p->written = p->line ? -1 : now;
}

void progress_step(progress *p, int64_t step, int64_t samples, const progress_metric *metrics,
                   int64_t count)
{
    if (p == NULL)
        return;
    p->step = step;
    p->samples = samples;
    if (p->setup.style == PROGRESS_OFF)
        return;
    double now = p->setup.clock();
    if (p->written >= 0 && now - p->written < (p->line ? 0.1 : p->setup.interval))
        return;
    /* One column less: a full line makes some terminals begin another. */
    line l = { .most = p->line ? columns_of(p) - 1 : WIDEST };
    make_line(p, &l, now, metrics, count);
    write_line(p, &l);
    p->written = now;
}

void progress_epoch(progress *p, const progress_metric *metrics, int64_t count)
{
    char time[24];
    if (p == NULL)
        return;
    double took = p->setup.clock() - p->epoch_began;
    p->epochs_done++;
    p->epochs_took += took;
    if (p->setup.style == PROGRESS_OFF)
        return;
    line l = { .most = room_of(p) };
    duration_text(took, true, time, sizeof time);
    /* If the line is too long for the terminal, first words become shorter, then the duration is
     * left out. */
    for (int shorter = 0; shorter < 3; shorter++) {
        l.length = 0;
        l.text[0] = '\0';
        add_epoch(&l, p);
        if (shorter < 2)
            add(&l, "  %s", time);
        if (add_metrics(&l, metrics, count, shorter > 0))
            break;
    }
    progress_say(p, "%s", l.text);
}

void progress_clear(progress *p)
{
    if (p == NULL || !p->shown)
        return;
    fputs("\r\x1b[K", p->setup.to);
    fflush(p->setup.to);
    p->shown = false;
}

void progress_say(progress *p, const char *format, ...)
{
    char text[2048];
    va_list args;
    if (p == NULL)
        return;
    progress_clear(p);
    va_start(args, format);
    tn_snprintv(text, sizeof text, format, args);
    va_end(args);
    fprintf(p->setup.to, "%s\n", text);
    fflush(p->setup.to);
    p->lines++;
    /* The line that is updated comes back with the next step. */
    p->written = p->line ? -1 : p->written;
}
