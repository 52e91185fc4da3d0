/* SPDX-License-Identifier: MIT
 *
 * Defines for CUDA the macros and types in which the kernel texts are written
 * (plugins/backend-opencl/dialect.cl defines them for OpenCL), and includes the files that every
 * text needs. */
#ifndef TN_CUDA_DIALECT
#define TN_CUDA_DIALECT

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#define TN_FP64 1
#define GLOBAL
#define LOCAL __shared__
#define DEVICE static __device__ __forceinline__

#define GROUP 256
#define GROUP_X 16
#define GROUP_Y 16
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define GROUP_KERNEL extern "C" __global__ void __launch_bounds__(GROUP)
#define TILE_KERNEL extern "C" __global__ void __launch_bounds__(GROUP_X * GROUP_Y)
#define ITEM() ((i64)blockIdx.x * 256 + threadIdx.x)
#define GROUP_ID() ((i64)blockIdx.x)
#define GROUP_ID_Z() ((i64)blockIdx.z)
#define LOCAL_ID() ((i32)threadIdx.x)
#define LOCAL_ID_Y() ((i32)threadIdx.y)
#define SHORT_LOOP _Pragma("unroll 1")
#define BARRIER() __syncthreads()
#define TAKE(flag) (atomicCAS((int *)(flag), 0, 1) == 0)
#define FLOAT_BITS(x) __float_as_uint(x)
#define BITS_FLOAT(x) __uint_as_float(x)

DEVICE float tn_from_f16(u16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

DEVICE u16 tn_to_f16(float x)
{
    u16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}

#define F16_LOAD(p, i) tn_from_f16(((const u16 *)(p))[i])
#define F16_STORE(p, i, v) (((u16 *)(p))[i] = tn_to_f16(v))

#include "../gpu/kernels/base/layout.cl"
#include "../gpu/kernels/base/common.cl"
#endif
