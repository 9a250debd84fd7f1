#include "worker/train/rank_gpus.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "worker/train/device.h"
#include "worker/train/gpus.h"

enum {
	BYTES_OF_DOUBLE = 6, /* that a double holds exactly, and a sum with zeros leaves as they are */
	NUMBERS = (sizeof(struct wlb_gpu) + BYTES_OF_DOUBLE - 1) / BYTES_OF_DOUBLE + 1,
	KINDS_MAX = 16,
};

/* The GPU of a rank, as it sees it. */
struct rank_gpu {
	struct wlb_gpu gpu;
	int number; /* among those that the rank sees */
	int node;
};

/* Ranks exchange numbers: bytes are packed into them. */
static void pack(const struct rank_gpu *own, double *numbers)
{
	unsigned char bytes[(NUMBERS - 1) * BYTES_OF_DOUBLE] = {0};
	memcpy(bytes, &own->gpu, sizeof(own->gpu));
	for (int i = 0; i < NUMBERS - 1; i++) {
		int64_t packed = 0;
		for (int b = 0; b < BYTES_OF_DOUBLE; b++)
			packed = packed << 8 | bytes[i * BYTES_OF_DOUBLE + b];
		numbers[i] = (double)packed;
	}
	numbers[NUMBERS - 1] = own->number;
}

static void unpack(const double *numbers, struct rank_gpu *of_rank)
{
	unsigned char bytes[(NUMBERS - 1) * BYTES_OF_DOUBLE];
	for (int i = 0; i < NUMBERS - 1; i++) {
		int64_t packed = (int64_t)numbers[i];
		for (int b = BYTES_OF_DOUBLE - 1; b >= 0; b--, packed >>= 8)
			bytes[i * BYTES_OF_DOUBLE + b] = (unsigned char)(packed & 0xff);
	}
	memcpy(&of_rank->gpu, bytes, sizeof(of_rank->gpu));
	of_rank->number = (int)numbers[NUMBERS - 1];
}

/* Returns the GPU of each rank, which the caller frees, or NULL. */
static struct rank_gpu *exchange(const struct wlb_launch *l, struct wlb_comm *world, struct wlb_error *error)
{
	size_t ranks = (size_t)l->size;
	double *numbers = calloc(ranks * NUMBERS, sizeof(*numbers));
	struct rank_gpu *gpus = calloc(ranks, sizeof(*gpus)), own = {.number = wlb_own_gpu(l)};
	struct wlb_error none; /* the device is open, so a GPU that is not described is one without a name */
	int rc = numbers != NULL && gpus != NULL ? 0
	                                         : wlb_fail(error, "out of memory for the GPUs of %d ranks", l->size);
	if (rc == 0) {
		wlb_cuda_describe(own.number, &own.gpu, &none);
		pack(&own, numbers + (size_t)l->rank * NUMBERS);
		rc = wlb_comm_all_reduce_double(world, numbers, ranks * NUMBERS, WLB_SUM, error);
	}
	for (size_t rank = 0; rc == 0 && rank < ranks; rank++) {
		unpack(numbers + rank * NUMBERS, &gpus[rank]);
		gpus[rank].node = l->node_of[rank];
	}
	free(numbers);
	if (rc == 0)
		return gpus;
	free(gpus);
	return NULL;
}

static int compare_places(const void *a, const void *b)
{
	const struct rank_gpu *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return strcmp(x->gpu.address, y->gpu.address);
}

static int same_kind(const struct wlb_gpu *a, const struct wlb_gpu *b)
{
	return strcmp(a->model, b->model) == 0 && strcmp(a->driver, b->driver) == 0 &&
	       a->memory_bytes == b->memory_bytes && a->driver_cuda == b->driver_cuda && a->cuda == b->cuda;
}

/* Adds a GPU to its kind; those of further kinds than the most are counted nowhere. */
static void count_kind(json_t *kinds, struct wlb_gpu *seen, const struct wlb_gpu *gpu)
{
	size_t count = json_array_size(kinds), i = 0;
	while (i < count && !same_kind(&seen[i], gpu))
		i++;
	if (i == KINDS_MAX)
		return;
	if (i == count) {
		seen[i] = *gpu;
		json_array_append_new(kinds, wlb_gpu_json(gpu));
	}
	json_t *kind = json_array_get(kinds, i);
	json_object_set_new(kind, "gpus", json_integer(json_integer_value(json_object_get(kind, "gpus")) + 1));
}

/* Makes the record. `gpus` is sorted by place. */
static char *record_of(struct rank_gpu *gpus, int ranks)
{
	struct wlb_gpu seen[KINDS_MAX] = {0};
	json_t *kinds = json_array(), *devices = json_array();
	int most = 0, sharing = 0;
	for (int rank = 0; rank < ranks; rank++)
		json_array_append_new(devices, json_integer(gpus[rank].number));
	qsort(gpus, (size_t)ranks, sizeof(*gpus), compare_places);
	for (int i = 0; i < ranks; i++) {
		int is_new = i == 0 || compare_places(&gpus[i], &gpus[i - 1]) != 0;
		if (is_new)
			count_kind(kinds, seen, &gpus[i].gpu);
		sharing = is_new ? 1 : sharing + 1;
		most = sharing > most ? sharing : most;
	}
	json_t *record = json_pack("{s:o, s:o, s:i}", "kinds", kinds, "devices", devices, "ranks_per_gpu", most);
	char *text = record != NULL ? json_dumps(record, JSON_COMPACT) : NULL;
	json_decref(record);
	return text;
}

int wlb_record_rank_gpus(const struct wlb_launch *launch, const struct wlb_device *device, struct wlb_comm *world,
                         struct wlb_recorder *recorder, struct wlb_error *error)
{
	int ranks_here = 0;
	if (device->host_memory)
		return 0;
	struct rank_gpu *gpus = exchange(launch, world, error);
	if (gpus == NULL)
		return -1;
	for (int rank = 0; rank < launch->size; rank++)
		ranks_here += compare_places(&gpus[rank], &gpus[launch->rank]) == 0;
	char *record = launch->rank == 0 ? record_of(gpus, launch->size) : NULL;
	if (record != NULL)
		wlb_record_gpus(recorder, record);
	free(record);
	free(gpus);
	return ranks_here;
}
