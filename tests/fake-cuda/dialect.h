/* SPDX-License-Identifier: MIT
 *
 * The words of the kernel text for a C compiler: a group is one work item that does everything, so barriers are nothing. The fake driver
 * counts items and groups up. Read by the preprocessor alone; kernels.pl turns the marks into functions that can be called by name. */
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

#include "../../plugins/backend-opencl/layout.cl"
#include "../../plugins/backend-opencl/common.cl"

#define TN_TEXT "../backend-opencl/elementwise.cl"
#define TN_TYPES 0x3ff
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/functions.cl"
#define TN_TYPES 0x3ff
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/copy.cl"
#define TN_TYPES 0x7fff
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/move.cl"
#define TN_TYPES (1 << 1 | 7 << 12 | 1 << 11)
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/reduce.cl"
#define TN_TYPES 0x3ff
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/matmul.cl"
#define TN_TYPES 0x3fe
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/softmax.cl"
#define TN_TYPES 0x3c0
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/loss.cl"
#define TN_TYPES 0x3c0
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/random.cl"
#define TN_TYPES 0x3c0
#include "../../plugins/backend-cuda/each.cuh"
#define TN_TEXT "../backend-opencl/along.cl"
#define TN_TYPES 0x3ff
#include "../../plugins/backend-cuda/each.cuh"
