/* SPDX-License-Identifier: MIT
 *
 * The language of the kernel texts for a C compiler. A group is one work item, so barriers are
 * empty; the fake driver calls a kernel once per item or group. Only the preprocessor reads this
 * file: kernels.pl turns FAKE_KERNEL into functions that can be called by name. */
#define TN_FP64 1
#define GLOBAL
#define LOCAL
#define DEVICE static inline
#define SHORT_LOOP

#define GROUP 1
#define GROUP_X 1
#define GROUP_Y 1
#define KERNEL FAKE_KERNEL 0
#define GROUP_KERNEL FAKE_KERNEL 1
#define TILE_KERNEL FAKE_KERNEL 2
#define ITEM() fake_item
#define GROUP_ID() fake_group
#define GROUP_ID_Z() fake_z
#define LOCAL_ID() 0
#define LOCAL_ID_Y() 0
#define BARRIER() ((void)0)
#define TAKE(flag) (*(flag) == 0 && (*(flag) = 1))
#define FLOAT_BITS(x) fake_bits(x)
#define BITS_FLOAT(x) fake_float(x)
#define F16_LOAD(p, i) fake_from_f16(((const u16 *)(p))[i])
#define F16_STORE(p, i, v) (((u16 *)(p))[i] = fake_to_f16(v))

#include "../../plugins/gpu/kernels/base/layout.cl"
#include "../../plugins/gpu/kernels/base/common.cl"

#define TN_TEXT "../activation.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../arithmetic.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../compare.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../copy.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../creation.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../index.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../loss.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../matmul.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../random.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../reduction.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../scan.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../softmax.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../sort.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
#define TN_TEXT "../unary.cl"
#include "../../plugins/gpu/kernels/base/each_type.cl"
#undef TN_TEXT
