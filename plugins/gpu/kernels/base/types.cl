/* SPDX-License-Identifier: MIT
 *
 * Macros for the dtype that kernels are compiled for, TN_TYPE (a number of tn_dtype):
 * S: type of an element in memory; C: type for computation; A: type in which sums are
 * accumulated; SUM: type of sums in memory; TN_WORDS: 32-bit words for one random number.
 * The file is included once per type, so each macro is undefined first. Macros that define kernels
 * use TYPED(tn_##op) and not NAME(op), because op may itself be a macro: exp is one in PoCL. */
#define NAME(op) TYPED(tn_##op)
#undef S
#undef C
#undef A
#undef SUM
#undef LOAD
#undef STORE
#undef STORE_SUM
#undef STORE_A
#undef TYPED
#undef TN_FLOATING
#undef TN_WORDS
#undef TN_COMPLEX
#undef TN_REAL
#undef BITS
#undef LOWEST
#undef HIGHEST

#if TN_TYPE == 0 /* bool */
#define S u8
#define C i32
#define TYPED(word) word##_bool
#define LOWEST 0
#define HIGHEST 1
#elif TN_TYPE == 1
#define S u8
#define C i32
#define TYPED(word) word##_u8
#define LOWEST 0
#define HIGHEST 255
#elif TN_TYPE == 2
#define S i8
#define C i32
#define TYPED(word) word##_i8
#define LOWEST (-128)
#define HIGHEST 127
#elif TN_TYPE == 3
#define S i16
#define C i32
#define TYPED(word) word##_i16
#define LOWEST (-32768)
#define HIGHEST 32767
#elif TN_TYPE == 4
#define S i32
#define C i32
#define TYPED(word) word##_i32
#define LOWEST (-2147483647 - 1)
#define HIGHEST 2147483647
#elif TN_TYPE == 5
#define S i64
#define C i64
#define TYPED(word) word##_i64
#define LOWEST (-9223372036854775807L - 1)
#define HIGHEST 9223372036854775807L
#elif TN_TYPE == 6
#define S u16
#define C float
#define TYPED(word) word##_f16
#define TN_FLOATING 1
#define TN_WORDS 1
#elif TN_TYPE == 7
#define S u16
#define C float
#define TYPED(word) word##_bf16
#define TN_FLOATING 1
#define TN_WORDS 1
#elif TN_TYPE == 8
#define S float
#define C float
#define TYPED(word) word##_f32
#define TN_FLOATING 1
#define TN_WORDS 1
#elif TN_TYPE == 9
#define S double
#define C double
#define TYPED(word) word##_f64
#define TN_FLOATING 1
#define TN_WORDS 2
#elif TN_TYPE == 10
#define S float
#define C float
#define TYPED(word) word##_c64
#define TN_COMPLEX 1
#elif TN_TYPE == 11
#define S double
#define C double
#define TYPED(word) word##_c128
#define TN_COMPLEX 1
#elif TN_TYPE == 12
#define S u16
#define C u32
#define TYPED(word) word##_u16
#elif TN_TYPE == 13
#define S u32
#define C u32
#define TYPED(word) word##_u32
#elif TN_TYPE == 14
#define S u64
#define C u64
#define TYPED(word) word##_u64
#endif

#if TN_TYPE == 6
#define LOAD(p, i) F16_LOAD(p, i)
#define STORE(p, i, v) F16_STORE(p, i, v)
#elif TN_TYPE == 7
#define LOAD(p, i) tn_from_bf16((p)[i])
#define STORE(p, i, v) ((p)[i] = tn_to_bf16(v))
#elif TN_TYPE == 0
#define LOAD(p, i) ((C)((p)[i] != 0))
#define STORE(p, i, v) ((p)[i] = (S)((v) != 0))
#else
#define LOAD(p, i) ((C)(p)[i])
#define STORE(p, i, v) ((p)[i] = (S)(v))
#endif

#ifdef TN_FLOATING
#define A C
#define SUM S
#define STORE_SUM(p, i, v) STORE(p, i, v)
#define LOWEST ((C)-INFINITY)
#define HIGHEST ((C)INFINITY)
#else
#define A i64
#define SUM i64
#define STORE_SUM(p, i, v) ((p)[i] = (v))
#endif

/* Defined for the types with which kernels can compute: bool, integers and floats. */
#if TN_TYPE <= 9
#define TN_REAL 1
#endif

/* Kernels that only move elements are compiled for one type of each size; only these types define
 * BITS. */
#if TN_TYPE == 11
#define BITS tn_wide
#elif TN_TYPE == 1 || TN_TYPE >= 12
#define BITS S
#endif
