/* SPDX-License-Identifier: MIT
 *
 * Refusal of everything in a plugin's struct that means nothing to this host: unknown bits of
 * flags and reserved members that are set. The message names the member (docs/abi.md, rule 23). A
 * bit that every host refuses can get a meaning later; a bit that some host once ignored cannot.
 * Masks of dtypes are the exception: a plugin of a newer ABI may name dtypes that this host does
 * not have, because its kernels are never called with such tensors. */
#include "core/plugin/private.h"

/* A member that contains flags, whose `known` bits are accepted, or a reserved member, which must
 * be 0 (`known` is 0). */
struct member {
    uint16_t kind;
    uint8_t width; /* bytes: 4 or 8 */
    bool dtypes;   /* the member is a mask of dtypes */
    uint32_t offset;
    uint64_t known;
    const char *name;
};

#define MEMBER_OF(type, member_, dtypes_, known_)                                                  \
    {                                                                                              \
        TN_KIND_##type, sizeof(((type *)0)->member_), dtypes_, offsetof(type, member_), known_,    \
            #member_                                                                               \
    }
#define MEMBER(type, member, known) MEMBER_OF(type, member, false, known)
#define MEMBER_DTYPES(type, member) MEMBER_OF(type, member, true, TN_MASK_ALL)

enum {
    BACKEND_FLAGS = TN_BACKEND_HOST_MEMORY | TN_BACKEND_NO_MEMORY | TN_BACKEND_ASYNC |
                    TN_BACKEND_AFTER_FORK | TN_BACKEND_PEER | TN_BACKEND_STREAM_ORDERED |
                    TN_BACKEND_CHANNELS_LAST,
    OP_FLAGS = TN_OP_PRIMITIVE | TN_OP_VIEW | TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT | TN_OP_INPLACE |
               TN_OP_RANDOM | TN_OP_INTO | TN_OP_BASIC | TN_OP_STRAIGHT_THROUGH | TN_OP_POINTWISE |
               TN_OP_READS | TN_OP_ORDERED | TN__OP_AUTOCAST,
    KERNEL_FLAGS = TN_KERNEL_OVERRIDE | TN_KERNEL_DETERMINISTIC | TN_KERNEL_CAPTURE_SAFE |
                   TN_KERNEL_CHANNELS_LAST | TN_KERNEL_CHANNELS_FIRST | TN_KERNEL_DECOMPOSE,
    LAYER_FLAGS = TN_LAYER_LIST | TN_LAYER_DICT | TN_LAYER_PARAMETERS | TN_LAYER_KEEP_KEYS |
                  TN_LAYER_COLLAPSE | TN_LAYER_LEAF | TN_LAYER_THROUGH | TN_LAYER_FUSE_NO_GRAD |
                  TN_LAYER_READS_INPUT,
    FORMAT_FLAGS = TN_FORMAT_TEXTS | TN_FORMAT_VALUES | TN_FORMAT_INDEX,
    OPERAND_FLAGS = TN_OPERAND_OPTIONAL | TN_OPERAND_NO_GRAD | TN_OPERAND_NO_PROMOTE |
                    TN_OPERAND_LIST | TN_OPERAND_ANY_DEVICE | TN_OPERAND_APART |
                    TN_OPERAND_WRITTEN | TN_OPERAND_UPDATED | TN_OPERAND_FROM_I32 |
                    TN_OPERAND_FROM_U8,
    OPTIMIZER_FLAGS = TN_OPTIMIZER_ELEMENTWISE | TN_OPTIMIZER_CLOSURE | TN_OPTIMIZER_MATRICES,
    PASS_FLAGS = TN_PASS_EXACT | TN_PASS_INFERENCE | TN_PASS_WEIGHTS | TN_PASS_SHAPES,
    COMPILER_FLAGS = TN_COMPILER_EXACT | TN_COMPILER_TRAINS | TN_COMPILER_CAPTURE_SAFE,
    TRANSFORM_FLAGS = TN_TRANSFORM_BATCH | TN_TRANSFORM_ENCODED
};

static const struct member members[] = {
    MEMBER(tn_plugin, flags, TN_PLUGIN_OWN_THREADS),
    MEMBER(tn_backend_def, flags, BACKEND_FLAGS),
    MEMBER(tn_op_def, flags, OP_FLAGS),
    MEMBER(tn_kernel_def, flags, KERNEL_FLAGS),
    MEMBER(tn_layer_def, flags, LAYER_FLAGS),
    MEMBER(tn_scheduler_def, flags, TN_SCHEDULER_METRIC),
    MEMBER(tn_optimizer_def, flags, OPTIMIZER_FLAGS),
    MEMBER(tn_format_def, flags, FORMAT_FLAGS),
    MEMBER(tn_observer_def, flags, TN_OBSERVER_PROFILER),
    MEMBER(tn_pass_def, flags, PASS_FLAGS),
    MEMBER(tn_compiler_def, flags, COMPILER_FLAGS),
    MEMBER(tn_comm_def, flags, 0),
    MEMBER(tn_dataset_def, flags, 0),
    MEMBER(tn_transform_def, flags, TRANSFORM_FLAGS),
    MEMBER(tn_backend_def, reserved, 0),
    MEMBER(tn_kernel_def, reserved, 0),
    MEMBER(tn_layer_def, reserved32, 0),
    MEMBER(tn_prune_def, reserved, 0),
    MEMBER(tn_format_def, reserved, 0),
    MEMBER_DTYPES(tn_op_def, decompose_dtypes),
    MEMBER_DTYPES(tn_kernel_def, dtypes),
    MEMBER_DTYPES(tn_comm_def, dtypes),
};

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

static uint64_t member_value(const tn_head *copy, const struct member *member)
{
    const char *at = (const char *)copy + member->offset;
    uint64_t wide = 0;
    uint32_t word = 0;

    if (member->width == sizeof word) {
        memcpy(&word, at, sizeof word);
        return word;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static tn_status head_known(const tn_head *head, const char *what)
{
    if (head->flags)
        return refused(what, "head.flags", head->flags, 0);
    if (head->reserved)
        return refused(what, "head.reserved", head->reserved, 0);
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

static tn_status operands_known(const tn_operand *rows, int64_t count, bool newer,
                                const char *which, const char *what)
{
    char name[160];

    for (int64_t i = 0; rows && i < count && i < TN_MAX_OPERANDS; i++) {
        tn_snprint(name, sizeof name, "%s: %s %lld", what, which, (long long)i + 1);
        if (rows[i].flags & ~(uint64_t)OPERAND_FLAGS)
            return refused(name, "flags", rows[i].flags, OPERAND_FLAGS);
        if (!newer && rows[i].dtypes & ~TN_MASK_ALL)
            return refused(name, "dtypes", rows[i].dtypes, TN_MASK_ALL);
    }
    return TN_OK;
}

tn_status tn__reserved_check(const tn_head *copy, const char *what)
{
    tn_status status = head_known(copy, what);

    for (size_t i = 0; i < sizeof members / sizeof *members && status == TN_OK; i++) {
        const struct member *member = &members[i];
        uint64_t value = member->kind == copy->kind ? member_value(copy, member) : 0;
        bool ignored = member->dtypes && is_newer(copy);
        if (value & ~member->known && !ignored)
            status = refused(what, member->name, value, member->known);
    }
    if (status == TN_OK && copy->kind == TN_KIND_tn_op_def) {
        const tn_op_def *op = (const tn_op_def *)copy;
        status = operands_known(op->inputs, op->n_inputs, is_newer(copy), "input", what);
        if (status == TN_OK)
            status = operands_known(op->outputs, op->n_outputs, is_newer(copy), "output", what);
    }
    return status;
}
