/* SPDX-License-Identifier: MIT
 *
 * Tries every device of every driver in a child process, before the drivers are opened in this one.
 * A driver may call abort, end the process, print or never return: PoCL aborts where /sys is not
 * mounted. The child uses each function of OpenCL that the plugin uses, and checks the results. It
 * writes each step to a pipe before the step begins. If it dies, the device of its last step is
 * left out and another child tries the others.
 *
 * The child logs nothing: another thread may have held the lock of the log at fork. */
#include "opencl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1024, ITEMS = 256 };

/* ---- the child ------------------------------------------------------------------------------- */

static int told = -1; /* the pipe to the parent */
static int32_t device_now = OPENCL_NO_DEVICE;
static const char *step_now = "";

/* One line: S (a step begins), F (the device fails, the child goes on), or D (all is done). */
static void tell(char kind, const char *words)
{
    char line[256];
    int length = snprintf(line, sizeof line, "%c %d %s\n", kind, (int)device_now, words);

    if (write(told, line, (size_t)length) != length)
        _exit(1);
}

static void begin(const char *step)
{
    step_now = step;
    tell('S', step);
}

/* Says that the device fails in the current step. Returns false. */
static bool wrong(cl_int error, const char *what)
{
    char words[160];

    if (error != CL_SUCCESS)
        snprintf(words, sizeof words, "%s failed: %s (%d)", step_now, cl_api_error_name(error),
                 (int)error);
    else
        snprintf(words, sizeof words, "%s %s", step_now, what);
    tell('F', words);
    return false;
}

static bool good(cl_int error)
{
    return error == CL_SUCCESS || wrong(error, "");
}

static bool made(const void *object, cl_int error)
{
    return object ? good(error) : wrong(error, "returned NULL without an error");
}

struct trial {
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_mem a, b;
    cl_program program;
    cl_kernel kernel;
    cl_event event;
};

static bool open_all(struct trial *t)
{
    cl_int error = CL_SUCCESS;

    begin("clCreateContext");
    t->context = cl.clCreateContext(NULL, 1, &t->id, NULL, NULL, &error);
    if (!made(t->context, error))
        return false;
    begin("clCreateCommandQueue");
    t->queue = cl.clCreateCommandQueue(t->context, t->id, 0, &error);
    if (!made(t->queue, error))
        return false;
    begin("clRetainCommandQueue");
    if (!good(cl.clRetainCommandQueue(t->queue)))
        return false;
    begin("clReleaseCommandQueue");
    if (!good(cl.clReleaseCommandQueue(t->queue)))
        return false;
    begin("clCreateBuffer");
    t->a = cl.clCreateBuffer(t->context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
    if (!made(t->a, error))
        return false;
    t->b = cl.clCreateBuffer(t->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, BYTES, NULL,
                             &error);
    return made(t->b, error);
}

/* Fills, writes, copies and reads, and compares what comes back. */
static bool move_bytes(struct trial *t)
{
    unsigned char in[BYTES / 2], out[BYTES] = { 0 };
    const unsigned char seven = 7;
    cl_int error = CL_SUCCESS;

    memset(in, 9, sizeof in);
    begin("clEnqueueFillBuffer");
    if (!good(cl.clEnqueueFillBuffer(t->queue, t->a, &seven, 1, 0, BYTES, 0, NULL, NULL)))
        return false;
    begin("clEnqueueWriteBuffer");
    if (!good(cl.clEnqueueWriteBuffer(t->queue, t->a, CL_TRUE, 0, sizeof in, in, 0, NULL, NULL)))
        return false;
    begin("clEnqueueCopyBuffer");
    if (!good(cl.clEnqueueCopyBuffer(t->queue, t->a, t->b, 0, 0, BYTES, 0, NULL, NULL)))
        return false;
    begin("clFlush");
    if (!good(cl.clFlush(t->queue)))
        return false;
    begin("clFinish");
    if (!good(cl.clFinish(t->queue)))
        return false;
    begin("clEnqueueReadBuffer");
    if (!good(cl.clEnqueueReadBuffer(t->queue, t->b, CL_TRUE, 0, BYTES, out, 0, NULL, NULL)))
        return false;
    for (int i = 0; i < BYTES; i++)
        if (out[i] != (i < BYTES / 2 ? 9 : 7))
            return wrong(CL_SUCCESS, "gave other bytes than those that were written");
    begin("clEnqueueMapBuffer");
    unsigned char *mapped = cl.clEnqueueMapBuffer(
        t->queue, t->b, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES, 0, NULL, NULL, &error);
    if (!made(mapped, error))
        return false;
    if (mapped[0] != 9 || mapped[BYTES - 1] != 7)
        return wrong(CL_SUCCESS, "gave other bytes than those that were written");
    begin("clEnqueueUnmapMemObject");
    return good(cl.clEnqueueUnmapMemObject(t->queue, t->b, mapped, 0, NULL, NULL));
}

static bool compute(struct trial *t)
{
    static const char *const text =
        "__kernel void tn_try(__global int *x) { x[get_global_id(0)] = 3 * get_global_id(0); }";
    const size_t items = ITEMS;
    int32_t out[ITEMS] = { 0 };
    char log[16] = "";
    cl_int error = CL_SUCCESS;

    begin("clCreateProgramWithSource");
    t->program = cl.clCreateProgramWithSource(t->context, 1, (const char **)(uintptr_t)&text, NULL,
                                              &error);
    if (!made(t->program, error))
        return false;
    begin("clBuildProgram");
    if (!good(cl.clBuildProgram(t->program, 1, &t->id, "-cl-std=CL1.2 -w", NULL, NULL)))
        return false;
    begin("clGetProgramBuildInfo"); /* what it says does not matter */
    cl.clGetProgramBuildInfo(t->program, t->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    begin("clCreateKernel");
    t->kernel = cl.clCreateKernel(t->program, "tn_try", &error);
    if (!made(t->kernel, error))
        return false;
    begin("clSetKernelArg");
    if (!good(cl.clSetKernelArg(t->kernel, 0, sizeof t->a, &t->a)))
        return false;
    begin("clEnqueueNDRangeKernel");
    if (!good(cl.clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &items, &items, 0, NULL,
                                        NULL)) ||
        !good(cl.clEnqueueReadBuffer(t->queue, t->a, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL)))
        return false;
    for (int32_t i = 0; i < ITEMS; i++)
        if (out[i] != 3 * i)
            return wrong(CL_SUCCESS, "gave wrong results");
    return true;
}

static bool wait_for_events(struct trial *t)
{
    cl_int state = -1;

    begin("clEnqueueMarkerWithWaitList");
    if (!made(t, cl.clEnqueueMarkerWithWaitList(t->queue, 0, NULL, &t->event)) ||
        !made(t->event, CL_SUCCESS))
        return false;
    begin("clRetainEvent");
    if (!good(cl.clRetainEvent(t->event)))
        return false;
    begin("clReleaseEvent");
    if (!good(cl.clReleaseEvent(t->event)))
        return false;
    begin("clEnqueueBarrierWithWaitList");
    if (!good(cl.clEnqueueBarrierWithWaitList(t->queue, 1, &t->event, NULL)))
        return false;
    begin("clWaitForEvents");
    if (!good(cl.clWaitForEvents(1, &t->event)))
        return false;
    begin("clGetEventInfo");
    if (!good(cl.clGetEventInfo(t->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                                NULL)))
        return false;
    return state == CL_COMPLETE ||
           wrong(CL_SUCCESS, "gave another state than CL_COMPLETE after waiting");
}

static bool close_all(struct trial *t)
{
    begin("clReleaseEvent");
    if (!good(cl.clReleaseEvent(t->event)))
        return false;
    begin("clReleaseKernel");
    if (!good(cl.clReleaseKernel(t->kernel)))
        return false;
    begin("clReleaseProgram");
    if (!good(cl.clReleaseProgram(t->program)))
        return false;
    begin("clReleaseMemObject");
    if (!good(cl.clReleaseMemObject(t->a)) || !good(cl.clReleaseMemObject(t->b)))
        return false;
    begin("clReleaseCommandQueue");
    if (!good(cl.clReleaseCommandQueue(t->queue)))
        return false;
    begin("clReleaseContext");
    return good(cl.clReleaseContext(t->context));
}

static void ended(void)
{
    _exit(1);
}

static void try_all(const struct opencl_probe *results, const char *library)
{
    struct opencl_listed all[OPENCL_MAX_DEVICES];
    int32_t count;

    begin("opening the loader");
    if (cl_api_open(library) != TN_OK || opencl_list(all, &count, begin) != TN_OK)
        _exit(2); /* the parent does the same, and says why it fails */
    for (device_now = 0; device_now < count; device_now++) {
        struct trial t = { .id = all[device_now].id };

        if (!all[device_now].unusable && !results[device_now].failed && open_all(&t) &&
            move_bytes(&t) && compute(&t) && wait_for_events(&t))
            close_all(&t);
    }
    device_now = OPENCL_NO_DEVICE;
    tell('D', "");
    _exit(0);
}

/* Nothing of the program may run in the child: no handler of a signal, no function of atexit. What
 * the driver prints goes nowhere, and it leaves no core file. */
static void isolate(void)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR);

    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    atexit(ended); /* runs before the functions that the program registered */
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    setpgid(0, 0);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
}

/* ---- the parent ------------------------------------------------------------------------------ */

struct follower {
    char text[512]; /* the part of a line that has arrived */
    size_t used;
    int32_t device; /* of the last step */
    char step[128];
    bool done;
};

static void take_line(struct follower *f, struct opencl_probe *results, const char *line)
{
    int device = OPENCL_NO_DEVICE, used = 0;
    char kind = 0;

    if (sscanf(line, "%c %d %n", &kind, &device, &used) < 2)
        return;
    if (kind == 'D')
        f->done = true;
    if (kind == 'S') {
        f->device = device;
        tn_snprint(f->step, sizeof f->step, "%s", line + used);
    }
    if (kind == 'F' && device >= 0 && device < OPENCL_MAX_DEVICES) {
        results[device].failed = true;
        tn_snprint(results[device].words, sizeof results[device].words, "%s", line + used);
    }
}

static void take_bytes(struct follower *f, struct opencl_probe *results, const char *bytes,
                       ssize_t count)
{
    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] != '\n') {
            if (f->used + 1 < sizeof f->text)
                f->text[f->used++] = bytes[i];
            continue;
        }
        f->text[f->used] = '\0';
        f->used = 0;
        take_line(f, results, f->text);
    }
}

static int64_t milliseconds(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* Reads until the child has ended or a step takes too long. Returns whether it hung. */
static bool follow(int fd, struct follower *f, struct opencl_probe *results)
{
    int64_t each = opencl_options.seconds * 1000, limit = milliseconds() + each;
    struct pollfd end = { fd, POLLIN, 0 };
    char bytes[512];

    while (!f->done) {
        int64_t left = limit - milliseconds();

        if (left <= 0)
            return true;
        if (poll(&end, 1, (int)(left < 1000 ? left : 1000)) <= 0)
            continue;
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        take_bytes(f, results, bytes, got);
        limit = milliseconds() + each;
    }
    return false;
}

/* Describes how the child ended. Its status is not known if the program ignores SIGCHLD. */
static void describe(char *words, size_t size, const struct follower *f, bool hung, bool known,
                     int status)
{
    if (hung)
        tn_snprint(words, size, "%s did not return within %lld s (TENON_OPENCL_SECONDS)", f->step,
                   (long long)opencl_options.seconds);
    else if (known && WIFSIGNALED(status))
        tn_snprint(words, size, "the driver ended the process with signal %d in %s",
                   WTERMSIG(status), f->step);
    else
        tn_snprint(words, size, "the driver ended the process in %s", f->step);
}

/* Runs one child. Returns TN_OK if all devices were tried or one more is known to fail. */
static tn_status try_once(const char *library, struct opencl_probe *results, bool *done)
{
    struct follower f = { .device = OPENCL_NO_DEVICE, .step = "the first step" };
    char words[200];
    int ends[2], status = 0;

    if (pipe2(ends, O_CLOEXEC))
        return tn_fail(TN_ERR_IO, "OpenCL: trying the drivers: no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        isolate();
        told = ends[1];
        try_all(results, library);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return tn_fail(TN_ERR_IO, "OpenCL: trying the drivers: no child process: %s",
                       strerror(errno));
    }
    bool hung = follow(ends[0], &f, results);
    close(ends[0]);
    /* A driver's threads or children must not outlive it, and its exit may hang. */
    kill(-pid, SIGKILL);
    if (f.done || hung)
        kill(pid, SIGKILL);
    pid_t got;
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    bool known = got == pid;
    *done = f.done || (known && WIFEXITED(status) && WEXITSTATUS(status) == 2);
    if (*done)
        return TN_OK;
    describe(words, sizeof words, &f, hung, known, status);
    if (f.device < 0 || f.device >= OPENCL_MAX_DEVICES)
        return tn_fail(TN_ERR_UNAVAILABLE,
                       "OpenCL: drivers tried in a child process: %s; remove the driver, or name "
                       "others in OCL_ICD_VENDORS",
                       words);
    results[f.device].failed = true;
    tn_snprint(results[f.device].words, sizeof results[f.device].words, "%s", words);
    return TN_OK;
}

tn_status opencl_probe_drivers(const char *library, struct opencl_probe *results)
{
    tn_status status = TN_OK;

    memset(results, 0, OPENCL_MAX_DEVICES * sizeof *results);
    /* One child more for each device that ends its child. */
    for (int32_t i = 0, done = 0; i <= OPENCL_MAX_DEVICES && !done && status == TN_OK; i++) {
        bool last = false;

        status = try_once(library, results, &last);
        done = last;
    }
    return status;
}
