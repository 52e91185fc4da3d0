/* SPDX-License-Identifier: MIT
 *
 * The values of a sweep: what --set gives, what its name stands for, and which values a trial gets.
 * They depend on the seed and the place of the trial alone, so a sweep that continues, also with
 * more trials, has the same ones. */
#include "sweep.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum {
    POINTS_MOST = 1000,
    COUNTED = 1 << 20 /* combinations among which none is drawn twice */
};

/* ---- texts ----------------------------------------------------------------------------------- */

static tn_status wrong(const sweep_range *g, const char *what)
{
    return tn_fail(TN_ERR_VALUE,
                   "--set: %s, got %q; expected NAME=LOW:HIGH with two numbers and perhaps log, "
                   "linear or a number of points (lr=1e-4:1e-2:log:5), or a list NAME=A,B,C",
                   what, g->text);
}

/* Returns the comma that ends the first entry of a list, or the end of the text: commas in brackets
 * and quotes are those of a spec. */
static const char *end_of_entry(const char *text)
{
    int depth = 0;
    char quote = '\0';

    for (; *text != '\0'; text++) {
        if (quote != '\0') {
            quote = *text == quote ? '\0' : quote;
            continue;
        }
        if (*text == ',' && depth <= 0)
            break;
        quote = *text == '"' || *text == '\'' ? *text : '\0';
        depth += strchr("([{", *text) != NULL;
        depth -= strchr(")]}", *text) != NULL;
    }
    return text;
}

/* Adds a value to the list of a range; one that is there already is left out. */
static tn_status add_value(sweep_range *g, const char *text, size_t size)
{
    char **more = tn_realloc(g->values, (size_t)(g->count + 1) * sizeof *more);
    char *value = tn_malloc(size + 1);

    if (more != NULL)
        g->values = more;
    if (more == NULL || value == NULL) {
        tn_free(value);
        return TN_ERR_MEMORY;
    }
    memcpy(value, text, size);
    value[size] = '\0';
    for (int64_t i = 0; i < g->count; i++)
        if (strcmp(g->values[i], value) == 0) {
            tn_free(value);
            return TN_OK;
        }
    g->values[g->count++] = value;
    return TN_OK;
}

static tn_status read_list(sweep_range *g, const char *text)
{
    tn_status status = TN_OK;

    for (const char *end; status == TN_OK; text = end + 1) {
        size_t size;

        text += strspn(text, " ");
        end = end_of_entry(text);
        size = (size_t)(end - text);
        while (size > 0 && text[size - 1] == ' ')
            size--;
        if (size == 0)
            return wrong(g, "an entry of the list is empty");
        if (g->count == POINTS_MOST)
            return wrong(g, "more than 1000 values");
        status = add_value(g, text, size);
        if (*end == '\0')
            break;
    }
    return status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Writes a number of a range with six digits, or with all if these are outside. */
static void write_number(const sweep_range *g, double number, char *out, size_t size)
{
    double read;

    tn_snprint(out, size, g->whole ? "%.0f" : "%.6g", number);
    if (!tn_read_float(out, &read) || read < g->low || read > g->high)
        tn_snprint(out, size, "%g", number);
}

/* Replaces a range by a list of numbers at equal distances. */
static tn_status list_points(sweep_range *g, int64_t points)
{
    char text[64];
    tn_status status = TN_OK;

    for (int64_t i = 0; i < points && status == TN_OK; i++) {
        double share = (double)i / (double)(points - 1);
        double number = g->logarithmic ? exp(log(g->low) + share * (log(g->high) - log(g->low)))
                                       : g->low + share * (g->high - g->low);

        number = i == 0 ? g->low : i == points - 1 ? g->high : number;
        number = g->whole ? floor(number + 0.5) : number;
        write_number(g, fmin(fmax(number, g->low), g->high), text, sizeof text);
        status = add_value(g, text, strlen(text));
    }
    return status;
}

/* Reads the words after LOW:HIGH, each of which begins with a colon. */
static tn_status read_words(sweep_range *g, const char *text, int64_t *points)
{
    bool scaled = false;

    while (*text == ':') {
        char word[24];
        size_t size = strcspn(++text, ":");

        tn_snprint(word, sizeof word, "%.*s", (int)(size < sizeof word ? size : sizeof word - 1),
                   text);
        text += size;
        if (!scaled && (strcmp(word, "log") == 0 || strcmp(word, "linear") == 0)) {
            g->logarithmic = strcmp(word, "log") == 0;
            scaled = true;
        } else if (*points != 0 || !tn_read_int(word, points) || *points < 2 ||
                   *points > POINTS_MOST) {
            return wrong(g, "wrong word after the numbers");
        }
    }
    if (g->logarithmic && g->low <= 0)
        return wrong(g, "log, but not above 0");
    return TN_OK;
}

static tn_status read_numbers(sweep_range *g, const char *text)
{
    char ends[2][64];
    double numbers[2];
    int64_t whole[2], points = 0;
    tn_status status;

    for (int i = 0; i < 2; i++) {
        size_t size = strcspn(text, ":");

        if (size >= sizeof ends[i] || (i == 0 && text[size] != ':'))
            return wrong(g, "no range of numbers and no list");
        tn_snprint(ends[i], sizeof ends[i], "%.*s", (int)size, text);
        text += size + (i == 0 ? 1 : 0);
        if (!tn_read_float(ends[i], &numbers[i]) || !isfinite(numbers[i]))
            return wrong(g, "an end of the range is no number");
    }
    g->low = numbers[0];
    g->high = numbers[1];
    if (!(g->low < g->high) || !isfinite(g->high - g->low))
        return wrong(g, "the first number is not below the second");
    g->whole = tn_read_int(ends[0], &whole[0]) && tn_read_int(ends[1], &whole[1]) &&
               fmax(fabs(g->low), fabs(g->high)) < 1e15;
    g->logarithmic = g->low > 0 && g->high >= 10 * g->low;
    status = read_words(g, text, &points);
    return status == TN_OK && points > 0 ? list_points(g, points) : status;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The settings with specs whose options can be set, and the registries of these. */
static const struct {
    setting which;
    uint32_t kind;
} specs[] = {
    { SET_OPTIM, TN_KIND_tn_optimizer_def },    { SET_MODEL, TN_KIND_tn_layer_def },
    { SET_SCHEDULE, TN_KIND_tn_scheduler_def }, { SET_LOSS, TN_KIND_tn_layer_def },
    { SET_AUGMENT, TN_KIND_tn_transform_def },  { SET_TRANSFORM, TN_KIND_tn_transform_def },
    { SET_MIX, TN_KIND_tn_transform_def },      { SET_DATA, TN_KIND_tn_dataset_def }
};
enum { SPECS = sizeof specs / sizeof *specs, PLAIN = 2 /* whose options need no prefix */ };

/* The name that is most similar to another one. */
typedef struct likeness {
    const char *name;
    int apart;
} likeness;

static void liken(likeness *nearest, const char *wanted, const char *name)
{
    int apart = tool_distance(wanted, name);

    if (apart < nearest->apart) {
        nearest->apart = apart;
        nearest->name = name;
    }
}

/* Returns whether the descriptor that a spec names has an option; its options are compared for
 * `nearest`. */
static bool spec_has(uint32_t kind, const char *spec, const char *option, likeness *nearest)
{
    char name[TOOL_NAME * 2];
    size_t size = strcspn(spec, "( \t");
    uint64_t mark = tn_error_mark();
    const tn_head *head;
    const tn_option *options;

    if (size == 0 || size >= sizeof name)
        return false;
    tn_snprint(name, sizeof name, "%.*s", (int)size, spec);
    head = tn_registry_find(kind, name);
    tn_error_restore(mark);
    options = head != NULL ? tn_contribution_options(head) : NULL;
    for (; options != NULL && options->kind != 0; options++) {
        if (strcmp(options->name, option) == 0)
            return true;
        liken(nearest, option, options->name);
    }
    return false;
}

/* The same for the specs that a setting has in any trial. */
static bool setting_has(const sweep *s, int spec, const char *option, likeness *nearest)
{
    const char *text = setting_text(&s->set, specs[spec].which);
    bool has = text != NULL && spec_has(specs[spec].kind, text, option, nearest);

    for (int i = 0; i < s->n_sets && !has; i++) {
        const sweep_range *g = &s->ranges[i];

        for (int64_t k = 0; k < g->count && !has; k++)
            has = strcmp(g->name, settings_row(specs[spec].which)->name) == 0 &&
                  spec_has(specs[spec].kind, g->values[k], option, nearest);
    }
    return has;
}

static bool has_place(const sweep *s, const char *name)
{
    char place[SWEEP_NAME + 2];

    tn_snprint(place, sizeof place, "{%s}", name);
    for (int i = 0; i < SETTINGS; i++)
        if (settings_row((setting)i)->kind == SETTING_TEXT &&
            setting_text(&s->set, (setting)i) != NULL &&
            strstr(setting_text(&s->set, (setting)i), place) != NULL)
            return true;
    return false;
}

static tn_status unknown(const sweep_range *g, const likeness *nearest)
{
    if (nearest->name != NULL && 2 * nearest->apart <= (int)strlen(g->name))
        return tn_fail(TN_ERR_KEY, "--set: unknown name, got %q; did you mean \"%s\"?", g->name,
                       nearest->name);
    return tn_fail(
        TN_ERR_KEY,
        "--set: unknown name, got %q; expected an option of tenon train such as batch-size, "
        "one of the optimizer or of the model such as lr, one in another spec such as "
        "loss.label_smoothing, or a name for which a spec has {%s}",
        g->name, g->name);
}

/* Finds what a name without a point stands for. */
static tn_status find_plain(const sweep *s, sweep_range *g)
{
    likeness nearest = { NULL, 4 };
    uint64_t mark = tn_error_mark();

    g->which = settings_find(&s->set, g->name);
    tn_error_restore(mark);
    if (g->which != SETTINGS) {
        /* one spelling, so that a setting that is given twice is noticed */
        tn_snprint(g->name, sizeof g->name, "%s", settings_row(g->which)->name);
        return TN_OK;
    }
    for (int i = 0; i < PLAIN; i++)
        if (setting_has(s, i, g->name, &nearest)) {
            g->kind = SWEEP_OPTION;
            g->which = specs[i].which;
            g->option = g->name;
            return TN_OK;
        }
    for (int i = 0; i < SETTINGS; i++)
        if (!(settings_row((setting)i)->flags & (SETTING_TUNE | SETTING_ALONE)))
            liken(&nearest, g->name, settings_row((setting)i)->name);
    return unknown(g, &nearest);
}

/* Finds what a name such as loss.label_smoothing stands for. */
static tn_status find_dotted(const sweep *s, sweep_range *g)
{
    const char *point = strchr(g->name, '.');
    likeness nearest = { NULL, 4 };
    bool known = false;

    g->option = point + 1;
    g->kind = SWEEP_OPTION;
    for (int i = 0; i < SPECS && !known; i++) {
        const char *name = settings_row(specs[i].which)->name;

        if (strlen(name) != (size_t)(point - g->name) || strncmp(name, g->name, strlen(name)) != 0)
            continue;
        known = true;
        g->which = specs[i].which;
        if (setting_has(s, i, g->option, &nearest))
            return TN_OK;
    }
    if (known && nearest.name != NULL && 2 * nearest.apart <= (int)strlen(g->option))
        return tn_fail(TN_ERR_KEY, "--set: unknown name, got %q; did you mean \"%s.%s\"?", g->name,
                       settings_row(g->which)->name, nearest.name);
    if (known)
        return tn_fail(TN_ERR_KEY,
                       "--set: unknown name, got %q; expected --%s with a spec that has %s",
                       g->name, settings_row(g->which)->name, g->option);
    return unknown(g, &nearest);
}

static tn_status find_name(const sweep *s, sweep_range *g)
{
    static const setting same[] = { SET_OUT, SET_RESUME, SET_CONFIG, SET_BEST };
    tn_status status = TN_OK;

    if (has_place(s, g->name))
        g->kind = SWEEP_PLACE;
    else
        status = strchr(g->name, '.') != NULL ? find_dotted(s, g) : find_plain(s, g);
    for (size_t i = 0; status == TN_OK && i < sizeof same / sizeof *same; i++)
        if (g->kind == SWEEP_SETTING && g->which == same[i])
            status = tn_fail(TN_ERR_VALUE,
                             "--set: %s cannot change from trial to trial; expected another name",
                             g->name);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tn_status read_one(const sweep *s, sweep_range *g, const char *text)
{
    size_t name = strcspn(text, "=");
    tn_status status;

    *g = (sweep_range){ .text = text, .which = SETTINGS };
    if (text[name] != '=' || name == 0 || name >= sizeof g->name || text[name + 1] == '\0')
        return wrong(g, "no NAME=VALUES");
    tn_snprint(g->name, sizeof g->name, "%.*s", (int)name, text);
    for (const char *c = g->name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("_-.", *c) == NULL)
            return wrong(g, "wrong name");
    status = *end_of_entry(text + name + 1) == ',' ? read_list(g, text + name + 1)
                                                   : read_numbers(g, text + name + 1);
    if (status == TN_OK && s->grid && g->count == 0)
        return tn_fail(TN_ERR_VALUE,
                       "--set: a range in a grid needs a number of points, got %q; expected a "
                       "number at the end, such as %s:5, or a list",
                       text, text);
    return status;
}

tn_status sweep_range_read(sweep *s)
{
    tn_status status = TN_OK;

    if (s->n_sets == 0)
        return tn_fail(TN_ERR_VALUE, "--set: it is missing; expected NAME=LOW:HIGH or NAME=A,B,C");
    for (int i = 0; i < s->n_sets && status == TN_OK; i++)
        status = read_one(s, &s->ranges[i], s->sets[i]);
    for (int i = 0; i < s->n_sets && status == TN_OK; i++) {
        status = find_name(s, &s->ranges[i]);
        for (int k = 0; k < i && status == TN_OK; k++)
            if (strcmp(s->ranges[i].name, s->ranges[k].name) == 0)
                status = tn_fail(TN_ERR_VALUE, "--set: %s is given twice; expected one --set of it",
                                 s->ranges[i].name);
    }
    return status;
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* Returns the number of combinations; INT64_MAX if there are too many to count, or with ranges. */
static int64_t combinations(const sweep *s)
{
    int64_t all = 1;

    for (int i = 0; i < s->n_sets; i++) {
        if (s->ranges[i].count == 0 || all > COUNTED)
            return INT64_MAX;
        all *= s->ranges[i].count;
    }
    return all;
}

static tn_random_key key_of(const sweep *s, int64_t at, int place)
{
    tn_random_key key = { (uint64_t)setting_count(&s->set, SET_SEED), 0 };

    key.seed = tn_random_bits(&key) ^ (uint64_t)at * 0xD6E8FEB86659FD93u;
    key.seed = tn_random_bits(&key) ^ (uint64_t)place * 0xD6E8FEB86659FD93u;
    return key;
}

static double draw_number(const sweep_range *g, tn_random_key *key)
{
    double number;

    if (g->whole && g->logarithmic) /* the ends get a share like that of the others */
        number = floor(exp(tn_random_between(key, log(g->low - 0.5), log(g->high + 0.5))) + 0.5);
    else if (g->whole)
        number = floor(tn_random_between(key, g->low, g->high + 1));
    else if (g->logarithmic)
        number = exp(tn_random_between(key, log(g->low), log(g->high)));
    else
        number = tn_random_between(key, g->low, g->high);
    return fmin(fmax(number, g->low), g->high);
}

/* Gives a trial its values. `chosen` is the number of its combination, -1: none was chosen. */
static tn_status give_values(const sweep *s, int64_t at, int64_t chosen)
{
    sweep_trial *one = &s->trials[at];

    for (int i = s->n_sets - 1; i >= 0; i--) {
        const sweep_range *g = &s->ranges[i];
        tn_random_key key = key_of(s, at, i);
        char text[64];

        if (g->count == 0)
            write_number(g, draw_number(g, &key), text, sizeof text);
        one->values[i] = tn_strdup(
            g->count == 0
                ? text
                : g->values[chosen >= 0 ? chosen % g->count : tn_random_below(&key, g->count)]);
        if (one->values[i] == NULL)
            return TN_ERR_MEMORY;
        chosen = chosen >= 0 ? chosen / g->count : -1;
    }
    return TN_OK;
}

tn_status sweep_range_draw(sweep *s)
{
    int64_t all = combinations(s);
    bool *used = NULL;
    tn_status status = TN_OK;

    if (s->grid && all > SWEEP_TRIALS)
        return tn_fail(TN_ERR_VALUE,
                       "--grid: too many combinations; expected at most %d, or --trials without "
                       "--grid",
                       SWEEP_TRIALS);
    s->n_trials = s->grid || all < s->n_trials ? all : s->n_trials;
    s->trials = tn_calloc((size_t)s->n_trials, sizeof *s->trials);
    if (!s->grid && all <= COUNTED)
        used = tn_calloc((size_t)all, sizeof *used);
    if (s->trials == NULL || (!s->grid && all <= COUNTED && used == NULL))
        status = TN_ERR_MEMORY;
    for (int64_t i = 0; i < s->n_trials && status == TN_OK; i++) {
        tn_random_key key = key_of(s, i, SWEEP_SETS);
        int64_t chosen = s->grid ? i : used != NULL ? tn_random_below(&key, all) : -1;

        while (used != NULL && used[chosen])
            chosen = (chosen + 1) % all;
        if (used != NULL)
            used[chosen] = true;
        status = give_values(s, i, chosen);
    }
    tn_free(used);
    return status;
}

void sweep_range_drop(sweep *s)
{
    for (int i = 0; i < s->n_sets; i++) {
        for (int64_t k = 0; k < s->ranges[i].count; k++)
            tn_free(s->ranges[i].values[k]);
        tn_free(s->ranges[i].values);
    }
    for (int64_t i = 0; s->trials != NULL && i < s->n_trials; i++)
        for (int k = 0; k < s->n_sets; k++)
            tn_free(s->trials[i].values[k]);
    tn_free(s->trials);
}
