/* SPDX-License-Identifier: MIT
 *
 * The OpenCL functions that this plugin uses. Types come from the Khronos headers, functions from
 * the ICD loader, which is opened when the plugin is activated. The plugin is not linked with the
 * loader, because drivers start threads when they are loaded; rule 1 of docs/abi.md forbids this
 * when a plugin is loaded. */
#ifndef TN_BACKEND_OPENCL_CL_API_H
#define TN_BACKEND_OPENCL_CL_API_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS 1
#include <CL/cl.h>
#include <tenon/plugin.h>

/* clang-format off */
#define CL_FUNCTIONS(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) \
    X(clCreateContext) X(clReleaseContext) X(clCreateCommandQueue) X(clReleaseCommandQueue) \
    X(clRetainCommandQueue) X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject) \
    X(clCreateBuffer) X(clReleaseMemObject) X(clEnqueueWriteBuffer) X(clEnqueueReadBuffer) \
    X(clEnqueueCopyBuffer) X(clEnqueueFillBuffer) X(clCreateProgramWithSource) X(clBuildProgram) \
    X(clGetProgramBuildInfo) X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel) \
    X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueMarkerWithWaitList) \
    X(clEnqueueBarrierWithWaitList) X(clWaitForEvents) X(clGetEventInfo) X(clReleaseEvent) \
    X(clRetainEvent) X(clFlush) X(clFinish)
/* clang-format on */

struct cl_api {
    void *library;
#define CL_MEMBER_(name) __typeof__(name) *name;
    CL_FUNCTIONS(CL_MEMBER_)
#undef CL_MEMBER_
};

/* Filled by cl_api_open(). */
extern struct cl_api cl;

/* Opens the loader (a name or a path). Returns TN_ERR_UNAVAILABLE if the loader is missing or too
 * old. */
tn_status cl_api_open(const char *library);
/* Returns the name of an error, such as "CL_OUT_OF_RESOURCES"; "?" if it is unknown. */
const char *cl_api_error_name(cl_int error);
/* Sets the error "DEVICE: WHAT failed: ..."; `what` names the failed action. Returns TN_ERR_MEMORY,
 * TN_ERR_LOST or TN_ERR_DEVICE. */
tn_status cl_api_fail(cl_int error, const char *what, const char *device);

#endif
