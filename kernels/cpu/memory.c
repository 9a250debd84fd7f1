/* Allocates and copies memory of the CPU device, and keeps the first error until synchronize() reports it. */
#include "kernels/cpu/cpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { ALIGNMENT = 64, PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* From here on several threads are faster than one. */
enum { PARALLEL_BYTES = 1 << 20 };

/* Memory larger than this is evicted from the caches before it is read again. */
enum { STREAM_BYTES = 32 << 20 };

static size_t aligned(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

/* Before the memory of each allocation: malloc_usable_size would count what an alignment of a large page leaves unused.
 */
union head {
	size_t bytes; /* of the memory */
	char space[ALIGNMENT];
};

static union head *head_of(void *memory)
{
	return (union head *)memory - 1;
}

/* Large memory in large pages, where the kernel has some: it is touched first in a third of the time. */
static void *allocate(size_t bytes)
{
	size_t whole = aligned(bytes + sizeof(union head), bytes < STREAM_BYTES ? ALIGNMENT : HUGE_PAGE);
	union head *head = aligned_alloc(bytes < STREAM_BYTES ? ALIGNMENT : HUGE_PAGE, whole);
	if (head == NULL)
		return NULL;
	if (bytes >= STREAM_BYTES)
		madvise(head, whole, MADV_HUGEPAGE);
	head->bytes = bytes;
	return head + 1;
}

static void release(void *memory)
{
	if (memory != NULL)
		free(head_of(memory));
}

/* Writes past the caches, which would read every line first. */
static void stream_zeros(char *to, size_t bytes)
{
#ifdef __SSE2__
	const __m128i zeros = _mm_setzero_si128();
	size_t head = (ALIGNMENT - (uintptr_t)to % ALIGNMENT) % ALIGNMENT;
	size_t middle = bytes > head ? (bytes - head) / ALIGNMENT * ALIGNMENT : 0;
	if (middle > 0) {
		memset(to, 0, head);
		for (size_t offset = head; offset < head + middle; offset += sizeof(zeros))
			_mm_stream_si128((__m128i *)(to + offset), zeros);
		_mm_sfence();
		to += head + middle;
		bytes -= head + middle;
	}
#endif
	memset(to, 0, bytes);
}

/* In the parts in which the operations go over vectors: the thread that works on a part is then the first to touch
 * its pages, and they come from memory near its core. */
static void zero_parts(struct wlb_device *device, char *memory, size_t bytes)
{
	int parts = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (bytes >= PARALLEL_BYTES)
	for (int part = 0; part < parts; part++) {
		struct wlb_range range = wlb_cpu_part((int64_t)bytes, PAGE, part, parts);
		if (bytes >= STREAM_BYTES)
			stream_zeros(memory + range.begin, (size_t)(range.end - range.begin));
		else
			memset(memory + range.begin, 0, (size_t)(range.end - range.begin));
	}
}

/* Keeps how much memory the node had when `bytes` of it were refused. A limit of the process or its cgroup may be
 * lower. */
static void fail_for_memory(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	double free_bytes = page * (double)sysconf(_SC_AVPHYS_PAGES),
	       total_bytes = page * (double)sysconf(_SC_PHYS_PAGES);
	device->no_memory = (struct wlb_no_memory){
		.asked_bytes = bytes, .free_bytes = (size_t)free_bytes, .total_bytes = (size_t)total_bytes};
	wlb_fail(error,
	         "cannot allocate %.3f GB on the CPU device: out of memory: %.3f of the node's %.3f GB are free, and "
	         "limits (ulimit, cgroup) may be lower",
	         1e-9 * (double)bytes, 1e-9 * free_bytes, 1e-9 * total_bytes);
}

void *wlb_cpu_alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	void *memory = bytes > SIZE_MAX - 2 * HUGE_PAGE ? NULL : allocate(bytes);
	if (memory == NULL) {
		fail_for_memory(device, bytes, error);
		return NULL;
	}
	zero_parts(device, memory, bytes);
	__atomic_add_fetch(&device->allocated_bytes, (int64_t)head_of(memory)->bytes, __ATOMIC_RELAXED);
	return memory;
}

void wlb_cpu_release(struct wlb_device *device, void *memory)
{
	if (memory == NULL)
		return;
	__atomic_sub_fetch(&device->allocated_bytes, (int64_t)head_of(memory)->bytes, __ATOMIC_RELAXED);
	release(memory);
}

void *wlb_cpu_alloc_host(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	(void)device;
	void *memory = bytes > SIZE_MAX - 2 * HUGE_PAGE ? NULL : allocate(bytes);
	if (memory == NULL)
		wlb_fail(error, "cannot allocate %zu bytes on the host: out of memory", bytes);
	return memory;
}

void wlb_cpu_release_host(struct wlb_device *device, void *memory)
{
	(void)device;
	release(memory);
}

void wlb_cpu_copy(struct wlb_device *device, void *to, const void *from, size_t bytes)
{
	int parts = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (bytes >= PARALLEL_BYTES)
	for (int part = 0; part < parts; part++) {
		struct wlb_range range = wlb_cpu_part((int64_t)bytes, PAGE, part, parts);
		if (range.begin < range.end)
			memcpy((char *)to + range.begin, (const char *)from + range.begin,
			       (size_t)(range.end - range.begin));
	}
}

void wlb_cpu_zero(struct wlb_device *device, void *memory, size_t bytes)
{
	if (bytes > 0)
		zero_parts(device, memory, bytes);
}

void wlb_cpu_fail(struct wlb_device *device, const char *format, ...)
{
	struct wlb_cpu *cpu = wlb_cpu_of(device);
	va_list args;
	va_start(args, format);
#pragma omp critical(wlb_cpu_fail)
	if (!cpu->failed) {
		cpu->failed = 1;
		char message[sizeof(cpu->error.message)];
		vsnprintf(message, sizeof(message), format, args);
		wlb_fail(&cpu->error, "%s", message);
	}
	va_end(args);
}

static void count_host_wait(struct wlb_device *device)
{
	__atomic_add_fetch(&device->host_waits, 1, __ATOMIC_RELAXED);
}

void wlb_cpu_to_host(struct wlb_device *device, void *to_host, const void *from, size_t bytes)
{
	count_host_wait(device);
	wlb_cpu_copy(device, to_host, from, bytes);
}

int wlb_cpu_synchronize(struct wlb_device *device, struct wlb_error *error)
{
	struct wlb_cpu *cpu = wlb_cpu_of(device);
	count_host_wait(device);
	if (!cpu->failed)
		return 0;
	cpu->failed = 0;
	return wlb_fail(error, "%s", cpu->error.message);
}

void *wlb_cpu_scratch(struct wlb_device *device, size_t bytes)
{
	struct wlb_cpu *cpu = wlb_cpu_of(device);
	if (bytes <= cpu->scratch_bytes && cpu->scratch != NULL)
		return cpu->scratch;
	free(cpu->scratch);
	cpu->scratch_bytes = aligned(bytes ? bytes : 1, ALIGNMENT);
	cpu->scratch = aligned_alloc(ALIGNMENT, cpu->scratch_bytes);
	if (cpu->scratch == NULL) {
		cpu->scratch_bytes = 0;
		wlb_cpu_fail(device, "cannot allocate %zu bytes of scratch memory on the CPU device: out of memory",
		             bytes);
	}
	return cpu->scratch;
}

void wlb_cpu_close(struct wlb_device *device)
{
	struct wlb_cpu *cpu = wlb_cpu_of(device);
	free(cpu->scratch);
	free(cpu);
	free(device);
}
