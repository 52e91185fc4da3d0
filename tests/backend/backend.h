/* SPDX-License-Identifier: MIT
 *
 * Helpers of the tests of devices: the devices of this machine, tensors of any layout from numbers,
 * numbers from tensors, references in float64. Every test runs over the first device of each type
 * with memory that a plugin provides: cpu, the strict device of examples/ (built for the tests),
 * opencl and cuda if the machine has them, and the devices of plugins on TENON_PLUGIN_PATH_ADD. */
#ifndef TN_TESTS_BACKEND_BACKEND_H
#define TN_TESTS_BACKEND_BACKEND_H

#include "tests/libcheck.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

/* ---- devices ---- */

/* The devices with memory that work here; NULL ends the list. cpu and strict must be among them. */
const tn_device *const *devices(void);
/* Whether the device has the operator for the dtype, by a kernel or a decomposition. */
bool device_has(const tn_device *device, const char *op, tn_dtype dtype);
#define EACH_DEVICE(device)                                                                        \
    for (const tn_device *const *at_ = devices(), *device = *at_; device != NULL; device = *++at_)

/* Selects the loops of this instruction set (TENON_CPU_ISA); must be called before the device is
 * used. Returns false and prints a line SKIP if the processor does not have it. */
bool instruction_set(const char *name);

/* ---- tensors ---- */

enum layout { DENSE, REVERSED, EVERY_SECOND, LAYOUTS };

/* Returns a tensor on the device with these numbers (row-major), whose memory has one of several
 * layouts. The tensor belongs to the innermost scope. */
tn_tensor *put(const tn_device *device, tn_dtype dtype, tn_ints shape, const double *numbers,
               enum layout layout);
/* The same from a row of numbers in code. */
#define NUMBERS(...) ((const double[]){ __VA_ARGS__ })
/* The numbers of a tensor (real ones, or the real parts), row-major; freed at the end of the
 * test's process. */
double *get(tn_tensor *tensor);
/* Zeros for `count` numbers, freed at the end of the test's process, too. */
double *room(int64_t count);
int64_t count_of(tn_ints shape);

/* The number that is left when `x` is stored in a dtype. */
double stored(double x, tn_dtype dtype);
/* The distance between neighbours of 1. */
double epsilon(tn_dtype dtype);

/* Fills `out` with pseudorandom numbers between low and high, as stored in the dtype. The sequence
 * is the same in every run. */
void numbers(double *out, int64_t count, double low, double high, tn_dtype dtype);

/* Fails unless all numbers agree to `ulps` units of the dtype relative to the larger of
 * |expected| and `floor_`; NaN agrees with NaN. */
void same(const char *what, const tn_device *device, tn_dtype dtype, tn_tensor *got,
          const double *expected, double ulps, double floor_);

/* An operator of one input, its reference and the range of its inputs. */
struct unary {
    const char *op;
    double (*reference)(double);
    double low, high, ulps;
};
/* Fails unless the operator agrees with its reference for each float dtype for which the device has
 * it, in every layout, and in place if it has that form. Shapes have at most 60 elements; `floor_`
 * is that of same(). */
void unary_agrees(const struct unary *row, const tn_device *device, const tn_ints *shapes,
                  int64_t n_shapes, double floor_);

#define ok(call) ck_assert_msg((call) == TN_OK, "%s: %s", #call, tn_error_last()->message)
#define there(tensor) ck_assert_msg((tensor) != NULL, "%s: %s", #tensor, tn_error_last()->message)
/* Counts checks so that a test can tell that its loops ran. */
extern int64_t checks_made;

/* main: each test in a process of its own (the devices and the pool do not survive fork, so
 * nothing may be opened before). */
int run_suite(const char *name, const TTest *const *tests, int count);
#define RUN_SUITE(name, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = { __VA_ARGS__ };                                              \
        return run_suite(name, tests, (int)(sizeof tests / sizeof *tests));                        \
    }

#endif
