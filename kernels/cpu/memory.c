#include "kernels/cpu/cpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void *wlb_cpu_alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	(void)device;
	void *memory = bytes > SIZE_MAX - ALIGNMENT ? NULL : aligned_alloc(ALIGNMENT, aligned(bytes ? bytes : 1));
	if (memory == NULL) {
		wlb_fail(error,
		         "cannot allocate %zu bytes on the CPU device: out of memory; use more ranks or a "
		         "smaller micro-batch",
		         bytes);
		return NULL;
	}
	memset(memory, 0, bytes);
	return memory;
}

void wlb_cpu_release(struct wlb_device *device, void *memory)
{
	(void)device;
	free(memory);
}

void wlb_cpu_copy(struct wlb_device *device, void *to, const void *from, size_t bytes)
{
	(void)device;
	if (bytes > 0)
		memmove(to, from, bytes);
}

void wlb_cpu_zero(struct wlb_device *device, void *memory, size_t bytes)
{
	(void)device;
	if (bytes > 0)
		memset(memory, 0, bytes);
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

int wlb_cpu_synchronize(struct wlb_device *device, struct wlb_error *error)
{
	struct wlb_cpu *cpu = wlb_cpu_of(device);
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
	cpu->scratch_bytes = aligned(bytes ? bytes : 1);
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
