/*
 * Declarations that the files of the CPU device share.
 *
 * The file of an operation is compiled once for every element type and instruction set (CMakeLists.txt): `real` is
 * the element type, VARIANT(name) the name of a function in this compilation, and the loops are plain C that the
 * compiler vectorises for the instruction set. device.c picks the table of operations that this processor can run.
 *
 * Work is cut into parts whose number depends on the device's thread count only, never on how many threads OpenMP
 * started or in which order they run, so that every run computes the same bits.
 */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include <cblas.h>

#include "kernels/ops.h"

/* The instruction sets that the operations are compiled for. */
enum wlb_cpu_isa { WLB_CPU_BASELINE, WLB_CPU_AVX2, WLB_CPU_AVX512, WLB_CPU_ISA_COUNT };

/* The functions of OpenBLAS that the device uses. */
struct wlb_cpu_blas {
	__typeof__(cblas_sgemm) *sgemm;
	__typeof__(cblas_dgemm) *dgemm;
};

struct wlb_cpu {
	int threads;
	struct wlb_cpu_blas blas;
	void *scratch; /* grows to the size that the largest operation needed */
	size_t scratch_bytes;
	int failed;
	struct wlb_error error; /* the first error since the last synchronize() */
};

static inline struct wlb_cpu *wlb_cpu_of(struct wlb_device *device)
{
	return device->state;
}

/* Keeps the first error until synchronize() reports it; may be called by any thread of a parallel region. */
void wlb_cpu_fail(struct wlb_device *device, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* At least `bytes` of 64-byte aligned memory, valid until the next call, not cleared. Returns NULL if out of memory:
 * the error is kept for synchronize(), and the operation must return without effect. */
void *wlb_cpu_scratch(struct wlb_device *device, size_t bytes);

/* -- memory.c: the same for every element type -- */
void *wlb_cpu_alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error);
void wlb_cpu_release(struct wlb_device *device, void *memory);
void *wlb_cpu_alloc_host(struct wlb_device *device, size_t bytes, struct wlb_error *error);
void wlb_cpu_release_host(struct wlb_device *device, void *memory);
void wlb_cpu_to_host(struct wlb_device *device, void *to_host, const void *from, size_t bytes);
void wlb_cpu_copy(struct wlb_device *device, void *to, const void *from, size_t bytes);
void wlb_cpu_zero(struct wlb_device *device, void *memory, size_t bytes);
int wlb_cpu_synchronize(struct wlb_device *device, struct wlb_error *error);
void wlb_cpu_close(struct wlb_device *device);

/* -- queue.c -- */
void wlb_cpu_to_device(struct wlb_device *device, struct wlb_queue *queue, void *to, const void *from_host,
                       size_t bytes);
void wlb_cpu_to_host_start(struct wlb_device *device, struct wlb_queue *queue, void *to_host, const void *from,
                           size_t bytes);
struct wlb_queue *wlb_cpu_queue_new(struct wlb_device *device, int high_priority, struct wlb_error *error);
void wlb_cpu_queue_free(struct wlb_device *device, struct wlb_queue *queue);
void *wlb_cpu_queue_handle(struct wlb_device *device, struct wlb_queue *queue);
struct wlb_event *wlb_cpu_event_new(struct wlb_device *device, int timed, struct wlb_error *error);
void wlb_cpu_event_free(struct wlb_device *device, struct wlb_event *event);
void wlb_cpu_event_record(struct wlb_device *device, struct wlb_event *event, struct wlb_queue *queue);
void wlb_cpu_queue_wait(struct wlb_device *device, struct wlb_queue *queue, struct wlb_event *event);
int wlb_cpu_event_wait(struct wlb_device *device, struct wlb_event *event, struct wlb_error *error);
int wlb_cpu_event_done(struct wlb_device *device, struct wlb_event *event);
double wlb_cpu_event_elapsed_s(struct wlb_device *device, struct wlb_event *from, struct wlb_event *to);
double wlb_cpu_busy_s(struct wlb_device *device);

/* -- blas.c -- returns 0, or -1 with the reason */
int wlb_cpu_load_blas(struct wlb_cpu_blas *blas, struct wlb_error *error);

/* -- key_groups.c --
 * Divides a list of segments into groups: no segment of one group shares a key with a segment of another. starts[0 ..
 * groups] receives the first segment of each group and, last, the count; it has space for count + 1. Returns the number
 * of groups. Where the segments are not in the order of their keys, groups may be larger than necessary. */
int wlb_cpu_key_groups(int32_t *starts, const struct wlb_segment *segments, int count);
/* 0: attention needs no other division. */
int wlb_cpu_attention_tile_rows(const struct wlb_device *device, int head_dim, struct wlb_error *error);

/* -- isa.c -- */
/* Returns 1 where this build has the variant and this processor can run it, else 0. */
int wlb_cpu_isa_usable(enum wlb_cpu_isa isa);
/* -- device.c: like wlb_device_open_cpu, with a given instruction set instead of the best one; for tests -- */
struct wlb_device *wlb_cpu_open_isa(enum wlb_dtype dtype, int threads, enum wlb_cpu_isa isa, struct wlb_error *error);

/* The range [begin, end) of `part` when `count` elements are cut into `parts` ranges at multiples of `grain`. */
struct wlb_range {
	int64_t begin;
	int64_t end;
};

static inline struct wlb_range wlb_cpu_part(int64_t count, int64_t grain, int part, int parts)
{
	int64_t grains = (count + grain - 1) / grain;
	int64_t begin = grains * part / parts * grain;
	int64_t end = grains * (part + 1) / parts * grain;
	return (struct wlb_range){begin < count ? begin : count, end < count ? end : count};
}

/* Below this many elements, or multiplications of a product, a parallel region costs more than it saves. */
enum { WLB_CPU_PARALLEL_ELEMENTS = 1 << 14, WLB_CPU_PARALLEL_MULTIPLICATIONS = 1 << 20 };

#endif
