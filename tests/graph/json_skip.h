/* SPDX-License-Identifier: MIT
 *
 * Skips a JSON value. What is no JSON fails the test that includes this file. */
#ifndef TN_TESTS_GRAPH_JSON_SKIP_H
#define TN_TESTS_GRAPH_JSON_SKIP_H

static const char *json_value(const char *at);

static const char *json_space(const char *at)
{
    return at + strspn(at, " \n\t\r");
}

static const char *json_string(const char *at)
{
    for (at++; *at != '"'; at++) {
        ck_assert_int_ge((unsigned char)*at, 0x20);
        if (*at == '\\') {
            at++;
            ck_assert(strchr("\"\\/bfnrtu", *at) != NULL);
        }
    }
    return at + 1;
}

/* Skips a list or an object. */
static const char *json_row(const char *at)
{
    char end = *at == '[' ? ']' : '}';

    at = json_space(at + 1);
    while (*at != end) {
        if (end == '}') {
            ck_assert_int_eq(*at, '"');
            at = json_space(json_string(at));
            ck_assert_int_eq(*at++, ':');
        }
        at = json_space(json_value(json_space(at)));
        ck_assert_msg(*at == ',' || *at == end, "JSON: %.60s", at);
        if (*at == ',')
            at = json_space(at + 1);
    }
    return at + 1;
}

/* Returns the position after the value at `at`, which must be JSON. */
static const char *json_value(const char *at)
{
    size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789.+-E");

    if (*at == '"')
        return json_string(at);
    if (*at == '[' || *at == '{')
        return json_row(at);
    ck_assert_msg(word > 0, "JSON: %.60s", at);
    return at + word;
}

#endif
