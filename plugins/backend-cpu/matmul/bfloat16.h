/* SPDX-License-Identifier: MIT
 *
 * Products of bfloat16 by instructions that multiply pairs: AVX512-BF16 and AMX. */
#ifndef TN_BACKEND_CPU_MATMUL_BFLOAT16_H
#define TN_BACKEND_CPU_MATMUL_BFLOAT16_H

#include "matmul/matmul.h"

/* A block of a product has SIDE x SIDE elements. The depth is divided into steps of DEEP elements.
 * A panel of b has WIDE columns: [steps][DEEP / 2][WIDE] pairs of neighbours along the depth. */
enum {
    TN__BF16_SIDE = 32,
    TN__BF16_DEEP = 32,
    TN__BF16_WIDE = 16,
    TN__BF16_PANEL = TN__BF16_DEEP * TN__BF16_WIDE * 2 /* bytes of a step of a panel */
};

/* One block: c[SIDE][SIDE] = a b, or c += a b with `add`. In a, rows are `a_row` bytes apart and
 * steps `a_step` bytes. b has `panels` panels (1 or 2), which are `b_panel` bytes apart. With one
 * panel, only the first WIDE columns of c are written. */
struct tn__bfloat16_block {
    int64_t steps, panels;
    bool add;
    const char *a;
    int64_t a_row, a_step;
    const char *b;
    int64_t b_panel;
    float *c;
};

/* Where a block goes. `rows` and `columns` of c exist in the result; `turned`: the result is
 * transposed, c[i][j] is column i of row j. Rows of y, of bfloat16, are contiguous and `y_row`
 * bytes apart. `bias` has SIDE numbers of float32, one for each column of the result; NULL: none.
 */
struct tn__bfloat16_store {
    const float *c;
    int64_t rows, columns;
    bool turned;
    const float *bias;
    char *y;
    int64_t y_row;
};

struct tn__bfloat16_unit {
    const char *name;
    /* The thread that calls `run` calls `begin` before and `end` after some blocks. */
    void (*begin)(void);
    void (*run)(const struct tn__bfloat16_block *block);
    void (*end)(void);
    void (*store)(const struct tn__bfloat16_store *store);
};

/* Returns the name of the unit of this processor whose products are faster than those in float32;
 * NULL: none. */
const char *tn__bfloat16_best(void);
/* Sets the unit that may be used, "amx" or "avx512_bf16"; NULL: none. Returns false if the
 * processor does not have this unit; then none is used. */
bool tn__bfloat16_allow(const char *name);
/* Returns the best unit that is allowed, NULL if there is none. The first call asks the kernel of
 * the system for the permission to use AMX. */
const struct tn__bfloat16_unit *tn__bfloat16_unit(void);
/* Returns the name of what tn__bfloat16_unit() would return, without asking the system; NULL: none.
 */
const char *tn__bfloat16_name(void);

/* Returns whether bfloat16.c can compute this product, and computes it. */
bool tn__bfloat16_take(const struct tn__product *p);
tn_status tn__bfloat16_run(const struct tn__product *p);

#endif
