/* SPDX-License-Identifier: MIT
 *
 * Names of the types of JSON values, for messages. */
#ifndef TN_FORMATS_JSON_H
#define TN_FORMATS_JSON_H

#include <jansson.h>

/* Returns the name of a value's type; "nothing" for NULL, a value that is not there. */
static inline const char *json_type_name(const json_t *value)
{
    if (value == NULL)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a bool";
    case JSON_NULL: return "null";
    }
    return "a value of unknown type";
}

#endif
