/* SPDX-License-Identifier: MIT
 *
 * Names of status codes. */
#include "core/base/internal.h"

static const char *const names[TN_ERR_COUNT] = {
    [TN_OK] = "TN_OK",
    [TN_ERR_TYPE] = "TN_ERR_TYPE",
    [TN_ERR_KEY] = "TN_ERR_KEY",
    [TN_ERR_ATTR] = "TN_ERR_ATTR",
    [TN_ERR_VALUE] = "TN_ERR_VALUE",
    [TN_ERR_RUNTIME] = "TN_ERR_RUNTIME",
    [TN_ERR_INDEX] = "TN_ERR_INDEX",
    [TN_ERR_NOT_IMPLEMENTED] = "TN_ERR_NOT_IMPLEMENTED",
    [TN_ERR_ASSERT] = "TN_ERR_ASSERT",
    [TN_ERR_MEMORY] = "TN_ERR_MEMORY",
    [TN_ERR_IO] = "TN_ERR_IO",
    [TN_ERR_FORMAT] = "TN_ERR_FORMAT",
    [TN_ERR_DEVICE] = "TN_ERR_DEVICE",
    [TN_ERR_LOST] = "TN_ERR_LOST",
    [TN_ERR_VERSION] = "TN_ERR_VERSION",
    [TN_ERR_REFUSED] = "TN_ERR_REFUSED",
    [TN_ERR_UNAVAILABLE] = "TN_ERR_UNAVAILABLE",
    [TN_ERR_CANCELLED] = "TN_ERR_CANCELLED",
    [TN_ERR_TIMEOUT] = "TN_ERR_TIMEOUT",
    [TN_ERR_PEER] = "TN_ERR_PEER",
};

const char *tn_status_name(tn_status code)
{
    if (code < 0 || code >= TN_ERR_COUNT)
        return "TN_ERR_?";
    return names[code];
}
