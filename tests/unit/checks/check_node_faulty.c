/*
 * wlb-check-node on a node with one fault, on CPU FAULTY_CPU. The linker calls the function below in place of that
 * which opens the CPU device (--wrap). FAULT is
 *  - product: the last bit of one number is flipped in the tenth product
 *  - addition: one number of a vector is not added
 *  - memory: a bit of what is written in blocks of 1 MiB is flipped
 *  - slow: each product but every FAULT_FAST-th takes FAULT_S of processor time longer
 *  - slow_memory: each addition but every FAULT_FAST-th does
 *  - crash, hang: of the tenth product; killed: by SIGKILL
 *  - refuse: the device cannot be opened
 * FREE_BYTES is how much memory is free, instead of what the kernel says.
 * Where FAULT_FILE is set, each process that opens the device adds a line to it, with the seconds of the monotonic
 * clock; only the first FAULT_SLOW are slow.
 */
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checks/node/node_load.h"
#include "common/seconds.h"
#include "kernels/ops.h"

enum { MIB = 1 << 20, TENTH = 10 };

static const struct wlb_ops *real;
static struct wlb_ops faulty;
static int is_slow;

struct wlb_device *__real_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error);
struct wlb_device *__wrap_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error);

double __real_wlb_free_memory_bytes(void);
double __wrap_wlb_free_memory_bytes(void);

double __wrap_wlb_free_memory_bytes(void)
{
	const char *bytes = getenv("FREE_BYTES");
	return bytes != NULL ? atof(bytes) : __real_wlb_free_memory_bytes();
}

static int is(const char *fault)
{
	const char *named = getenv("FAULT");
	return named != NULL && strcmp(named, fault) == 0;
}

static double thread_s(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);
	return text != NULL ? atoi(text) : otherwise;
}

/* Computes for FAULT_S where the device is slow, but not in every FAULT_FAST-th call. */
static void slow_down(int call)
{
	if (!is_slow || call % number("FAULT_FAST", INT_MAX) == 0)
		return;
	double until_s = thread_s() + atof(getenv("FAULT_S"));
	while (thread_s() < until_s)
		;
}

static void linear(struct wlb_device *device, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                   const struct wlb_weight *weight, const void *residual, int64_t n)
{
	static int calls;
	real->linear(device, y, y_stride, x, x_stride, weight, residual, n);
	int tenth = ++calls == TENTH;
	if (tenth && is("product"))
		((uint32_t *)y)[5] ^= 1u;
	if (tenth && is("crash")) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer has another */
		raise(SIGSEGV);
	}
	if (tenth && is("killed"))
		raise(SIGKILL);
	while (tenth && is("hang"))
		pause();
	if (is("slow"))
		slow_down(calls);
}

static void add(struct wlb_device *device, void *y, const void *x, int64_t n)
{
	static int calls;
	real->add(device, y, x, is("addition") ? n - 1 : n);
	calls++;
	if (is("slow_memory"))
		slow_down(calls);
}

/* Adds a line to FAULT_FILE. Returns how many it has then; 0 if it is not set. */
static long count_process(void)
{
	const char *path = getenv("FAULT_FILE");
	if (path == NULL)
		return 0;
	FILE *file = fopen(path, "ab");
	int bytes = fprintf(file, "%15.3f\n", wlb_now_s());
	long count = ftell(file) / bytes;
	fclose(file);
	return count;
}

static void to_device(struct wlb_device *device, struct wlb_queue *queue, void *to, const void *from_host, size_t bytes)
{
	real->to_device(device, queue, to, from_host, bytes);
	if (is("memory") && bytes == MIB)
		((char *)to)[12345] ^= 8;
}

struct wlb_device *__wrap_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error)
{
	const char *cpu = getenv("FAULTY_CPU");
	struct wlb_device *device = __real_wlb_device_open_cpu(dtype, threads, error);
	if (device == NULL || cpu == NULL || sched_getcpu() != atoi(cpu))
		return device;
	if (is("refuse")) {
		wlb_fail(error, "no device is planned");
		return NULL;
	}
	is_slow = count_process() <= number("FAULT_SLOW", INT_MAX);
	real = device->ops;
	faulty = *real;
	faulty.linear = linear;
	faulty.add = add;
	faulty.to_device = to_device;
	device->ops = &faulty;
	return device;
}
