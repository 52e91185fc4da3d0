/* SPDX-License-Identifier: MIT
 *
 * Refusal of everything in a plugin's struct that means nothing to this host: unknown bits of
 * flags and reserved members that are set. The message names the member (docs/abi.md, rule 23). A
 * bit that every host refuses can get a meaning later; a bit that some host once ignored cannot.
 * Masks of dtypes are the exception: a plugin of a newer ABI may name dtypes that this host does
 * not have, because its kernels are never called with such tensors. */
#include "core/plugin/private.h"

static tn_status refused(const char *what, const char *member, uint64_t value, uint64_t known)
{
    if (known == 0)
        return tn_fail(TN_ERR_VERSION, "%s: %s: reserved in Tenon %s, got 0x%llx; expected 0", what,
                       member, tn_version(), (unsigned long long)value);
    return tn_fail(TN_ERR_VERSION,
                   "%s: %s: bits 0x%llx are unknown to Tenon %s, got 0x%llx; expected bits of "
                   "0x%llx (does the plugin need a newer Tenon?)",
                   what, member, (unsigned long long)(value & ~known), tn_version(),
                   (unsigned long long)value, (unsigned long long)known);
}

static uint64_t value_of(const void *at, const tn__kind_member *member)
{
    uint64_t wide = 0;
    uint32_t word = 0;

    if (member->width == sizeof word) {
        memcpy(&word, (const char *)at + member->offset, sizeof word);
        return word;
    }
    memcpy(&wide, (const char *)at + member->offset, sizeof wide);
    return wide;
}

static tn_status head_known(const tn_head *head, const char *what)
{
    if (head->flags)
        return refused(what, "head.flags", head->flags, 0);
    if (head->target > UINT16_MAX)
        return refused(what, "head.target", head->target, UINT16_MAX);
    if (head->destroy)
        return tn_fail(TN_ERR_VERSION,
                       "%s: head.destroy: a descriptor is never destroyed, got a function; "
                       "expected NULL",
                       what);
    return TN_OK;
}

static bool is_newer(const tn_head *head)
{
    return head->abi_major > TN_ABI_MAJOR || head->abi_minor > TN_ABI_MINOR;
}

tn_status tn__reserved_member(const tn_head *copy, const void *at, const tn__kind_member *member,
                              const char *what)
{
    uint64_t value = value_of(at, member);

    if (!(value & ~member->known) || (member->dtypes && is_newer(copy)))
        return TN_OK;
    return refused(what, member->name, value, member->known);
}

tn_status tn__reserved_check(const tn_head *copy, const tn__kind_member *members, const char *what)
{
    tn_status status = head_known(copy, what);

    for (; members && members->name && status == TN_OK; members++)
        status = tn__reserved_member(copy, copy, members, what);
    return status;
}
