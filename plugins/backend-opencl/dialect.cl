/* SPDX-License-Identifier: MIT
 *
 * Defines for OpenCL C 1.2 the macros and types in which the kernel texts are written.
 * plugins/backend-cuda/dialect.cuh defines them for CUDA, tests/fake-cuda/dialect.h for a C
 * compiler. */
#ifdef TN_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;

#define GLOBAL __global
#define LOCAL __local
#define DEVICE static

/* KERNEL begins a kernel whose work items are independent. GROUP_KERNEL and TILE_KERNEL begin
 * kernels whose work items share local memory within a group: of GROUP items, and of
 * GROUP_X x GROUP_Y items. */
#define GROUP 256
#define GROUP_X 16
#define GROUP_Y 16
#define KERNEL __kernel void
#define GROUP_KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
#define TILE_KERNEL __kernel __attribute__((reqd_work_group_size(GROUP_X, GROUP_Y, 1))) void
#define ITEM() ((i64)get_global_id(0))
#define GROUP_ID() ((i64)get_group_id(0))
#define GROUP_ID_Z() ((i64)get_group_id(2))
#define LOCAL_ID() ((i32)get_local_id(0))
#define LOCAL_ID_Y() ((i32)get_local_id(1))
/* Prevents unrolling of a loop. It is used for loops over dimensions: there are few dimensions, so
 * unrolling makes the code larger but not faster. */
#define SHORT_LOOP _Pragma("unroll 1")
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define TAKE(flag) (atomic_cmpxchg((volatile __global i32 *)(flag), 0, 1) == 0)

#define F16_LOAD(p, i) vload_half((size_t)(i), (const __global half *)(p))
#define F16_STORE(p, i, v) vstore_half_rte((v), (size_t)(i), (__global half *)(p))
#define FLOAT_BITS(x) as_uint(x)
#define BITS_FLOAT(x) as_float(x)
