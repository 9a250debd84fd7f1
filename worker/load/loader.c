#include "worker/load/loader.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/seconds.h"
#include "worker/data/file_thread.h"
#include "worker/load/prepare.h"

static const double CHECK_EVERY_S = 0.05;
static const long COPY_CHECK_NS = 100000;

/* A step in host and device memory. The thread uses host memory only, and only until the step is taken. */
struct buffer {
	struct wlb_prepared prepared;
	int32_t *device; /* of device_capacity elements */
	size_t device_capacity;
	int32_t *pinned;          /* the block of prepared.rows; NULL where it grows */
	struct wlb_event *used;   /* the end of what the compute queue does with the memory of the device */
	struct wlb_event *copied; /* the end of the copy to it */
};

struct wlb_loader {
	struct wlb_device *device;
	struct wlb_queue *copies; /* of the steps to the device, beside the compute queue */
	struct wlb_preparer preparer;
	struct buffer buffers[2]; /* step n of this loader, from 0 on, is in buffer n % 2 */
	struct wlb_file_thread thread;
	int has_thread;
	atomic_bool stopping;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	int64_t prepared; /* steps */
	int64_t taken;    /* the caller works on the last of these */
	int failed;
	struct wlb_error error; /* of the thread */
};

/* Makes the memory of the device that of `elements`. What is queued on the compute queue by now sets it to 0, and the
 * copy to it waits for that. */
static int allocate_device(struct wlb_loader *l, struct buffer *buffer, size_t elements, struct wlb_error *error)
{
	const struct wlb_ops *ops = l->device->ops;
	ops->release(l->device, buffer->device);
	buffer->device_capacity = 0;
	buffer->device = ops->alloc(l->device, elements * sizeof(*buffer->device), error);
	if (buffer->device == NULL)
		return -1;
	buffer->device_capacity = elements;
	ops->event_record(l->device, buffer->used, NULL);
	return 0;
}

/* A device with memory of its own gets all memory here, for the largest step, so that no step allocates and its copies
 * are from pinned memory. */
static int open_buffer(struct wlb_loader *l, struct buffer *buffer, struct wlb_error *error)
{
	const struct wlb_ops *ops = l->device->ops;
	const struct wlb_loader_options *options = &l->preparer.options;
	if (wlb_rows_init(&buffer->prepared.rows, wlb_loader_loaded_batches(options), error) < 0)
		return -1;
	buffer->used = ops->event_new(l->device, 0, error);
	buffer->copied = buffer->used != NULL ? ops->event_new(l->device, 0, error) : NULL;
	if (buffer->copied == NULL)
		return -1;
	if (l->device->host_memory)
		return 0;
	size_t most = wlb_rows_elements_max(options, l->preparer.tile_rows);
	buffer->pinned = ops->alloc_host(l->device, most * sizeof(*buffer->pinned), error);
	if (buffer->pinned == NULL || allocate_device(l, buffer, most, error) < 0)
		return wlb_fail_in(error, "the rows of a step");
	wlb_rows_use_block(&buffer->prepared.rows, buffer->pinned, most);
	return 0;
}

static void close_buffer(struct wlb_loader *l, struct buffer *buffer)
{
	const struct wlb_ops *ops = l->device->ops;
	wlb_prepared_free(&buffer->prepared);
	ops->release_host(l->device, buffer->pinned);
	ops->release(l->device, buffer->device);
	ops->event_free(l->device, buffer->used);
	ops->event_free(l->device, buffer->copied);
}

struct wlb_loader *wlb_loader_new(const struct wlb_dataset *dataset, const struct wlb_model *model,
                                  const struct wlb_loader_options *options, struct wlb_device *device,
                                  struct wlb_error *error)
{
	struct wlb_loader *l = calloc(1, sizeof(*l));
	if (l == NULL) {
		wlb_fail(error, "out of memory for the loader");
		return NULL;
	}
	l->device = device;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	int tile_rows = device->ops->attention_tile_rows(device, (int)model->head_dim, error);
	if (tile_rows >= 0 && wlb_preparer_init(&l->preparer, dataset, model, options, tile_rows, error) == 0)
		l->copies = device->ops->queue_new(device, 0, error);
	if (l->copies != NULL && open_buffer(l, &l->buffers[0], error) == 0 &&
	    open_buffer(l, &l->buffers[1], error) == 0)
		return l;
	wlb_loader_free(l);
	return NULL;
}

static void stop(struct wlb_loader *l)
{
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->stopping, true);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	wlb_file_thread_join(&l->thread);
}

void wlb_loader_free(struct wlb_loader *l)
{
	if (l == NULL)
		return;
	if (l->has_thread)
		stop(l);
	for (int b = 0; b < 2; b++)
		close_buffer(l, &l->buffers[b]);
	l->device->ops->queue_free(l->device, l->copies);
	wlb_preparer_free(&l->preparer);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

int wlb_loader_check_state(const struct wlb_loader *l, const struct wlb_schedule_state *schedule,
                           struct wlb_error *error)
{
	return wlb_schedule_check_state(l->preparer.schedule, schedule, error);
}

int wlb_loader_restore(struct wlb_loader *l, const struct wlb_schedule_state *schedule, const void *packer_state,
                       size_t packer_state_bytes, struct wlb_error *error)
{
	if (l->has_thread)
		return wlb_fail(error, "a loader is restored before its first step: this one has given some");
	if (wlb_schedule_restore(l->preparer.schedule, schedule, error) < 0)
		return -1;
	if (packer_state == NULL)
		return 0;
	return wlb_packer_restore(l->preparer.packer, packer_state, packer_state_bytes, error);
}

int wlb_loader_begin_after(struct wlb_loader *l, int64_t step, int64_t windows, struct wlb_error *error)
{
	struct wlb_schedule_state first;
	wlb_schedule_save(l->preparer.schedule, &first);
	first.step = step;
	first.windows = windows;
	return wlb_loader_restore(l, &first, NULL, 0, error);
}

int wlb_loader_rewind(struct wlb_loader *l, struct wlb_error *error)
{
	if (!l->has_thread)
		return 0;
	stop(l);
	l->has_thread = 0;
	atomic_store(&l->stopping, false);
	l->prepared = l->taken = 0;
	l->failed = 0;
	return wlb_preparer_rewind(&l->preparer, error);
}

/* Waits until the newest step has been taken, so that the buffer of the step before it is free; returns 0 when the
 * thread must end. */
static int await_turn(struct wlb_loader *l)
{
	pthread_mutex_lock(&l->lock);
	while (!atomic_load(&l->stopping) && l->prepared > l->taken)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return !atomic_load(&l->stopping);
}

/* Waits until the block of host memory has been copied to the device, so that it can be written again; returns 0 when
 * the thread must end. */
static int await_copy(struct wlb_loader *l, const struct buffer *buffer)
{
	while (!l->device->ops->event_done(l->device, buffer->copied) && !atomic_load(&l->stopping))
		nanosleep(&(struct timespec){.tv_nsec = COPY_CHECK_NS}, NULL);
	return !atomic_load(&l->stopping);
}

static int prepare(struct wlb_loader *l, struct wlb_prepared *step, struct wlb_error *error)
{
	int64_t last = l->preparer.options.last_step;
	struct wlb_schedule_state before;
	wlb_schedule_save(l->preparer.schedule, &before);
	if (last > 0 && before.step >= last)
		return wlb_fail(error, "step %lld was asked for, the last of the run is %lld",
		                (long long)before.step + 1, (long long)last);
	wlb_file_report("reading", wlb_dataset_path(l->preparer.dataset));
	int rc = wlb_prepare(&l->preparer, step, &l->stopping, error);
	wlb_file_report_end();
	return rc;
}

static void prepare_steps(void *argument)
{
	struct wlb_loader *l = argument;
	struct wlb_error error;
	int failed = 0;
	for (int64_t n = 0; !failed && await_turn(l) && await_copy(l, &l->buffers[n % 2]); n++) {
		failed = prepare(l, &l->buffers[n % 2].prepared, &error) < 0;
		pthread_mutex_lock(&l->lock);
		l->failed = failed;
		if (failed)
			l->error = error;
		else
			l->prepared++;
		pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->lock);
	}
}

static int start(struct wlb_loader *l, struct wlb_error *error)
{
	if (wlb_file_thread_start(&l->thread, "the loader", prepare_steps, l, error) < 0)
		return -1;
	l->has_thread = 1;
	return 0;
}

/* Waits for at most `seconds` until a step is prepared or none will be; the caller holds the lock. Returns 1, 0 after
 * `seconds`, or -1 where the files made no progress. */
static int await_step(struct wlb_loader *l, double seconds, struct wlb_error *error)
{
	double end_s = wlb_now_s() + seconds;
	while (l->prepared == l->taken && !l->failed) {
		double left_s = end_s - wlb_now_s();
		if (wlb_file_progress_check(&l->thread.progress, l->preparer.options.storage_timeout_s, error) < 0)
			return -1;
		if (left_s <= 0.0)
			return 0;
		struct timespec until = wlb_after_s(fmin(left_s, CHECK_EVERY_S));
		pthread_cond_clockwait(&l->changed, &l->lock, CLOCK_MONOTONIC, &until);
	}
	return 1;
}

/* Waits for the next step and returns the buffer of the step before to the thread. */
static struct buffer *take(struct wlb_loader *l, struct wlb_error *error)
{
	struct buffer *buffer = NULL;
	pthread_mutex_lock(&l->lock);
	if (await_step(l, INFINITY, error) < 0) {
		buffer = NULL;
	} else if (l->prepared == l->taken) {
		wlb_fail(error, "%s", l->error.message);
	} else {
		buffer = &l->buffers[l->taken % 2];
		l->taken++;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return buffer;
}

/* Queues the copy behind the work of the step before the last, which used the same memory, and the work that is queued
 * from now on behind the copy. */
static int upload(struct wlb_loader *l, struct buffer *buffer, struct wlb_error *error)
{
	const struct wlb_ops *ops = l->device->ops;
	struct wlb_rows *rows = &buffer->prepared.rows;
	if (rows->used > buffer->device_capacity && allocate_device(l, buffer, rows->capacity, error) < 0)
		return wlb_fail_in(error, "documents of a step");
	ops->queue_wait(l->device, l->copies, buffer->used);
	if (rows->used > 0)
		ops->to_device(l->device, l->copies, buffer->device, rows->host, rows->used * sizeof(*rows->host));
	ops->event_record(l->device, buffer->copied, l->copies);
	ops->queue_wait(l->device, NULL, buffer->copied);
	wlb_rows_set_pointers(rows, buffer->device);
	return 0;
}

int wlb_loader_await(struct wlb_loader *l, double seconds, struct wlb_error *error)
{
	if (!l->has_thread && start(l, error) < 0)
		return -1;
	pthread_mutex_lock(&l->lock);
	int rc = await_step(l, seconds, error);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

double wlb_loader_read_s(struct wlb_loader *l)
{
	return l->has_thread ? wlb_file_progress_read_s(&l->thread.progress) : 0.0;
}

int wlb_loader_next(struct wlb_loader *l, const struct wlb_loaded_step **step, double *waited_s,
                    struct wlb_error *error)
{
	double from_s = wlb_now_s();
	if (!l->has_thread && start(l, error) < 0)
		return -1;
	if (l->taken > 0) /* all work of the step before is queued */
		l->device->ops->event_record(l->device, l->buffers[(l->taken - 1) % 2].used, NULL);
	struct buffer *buffer = take(l, error);
	if (buffer == NULL || upload(l, buffer, error) < 0)
		return -1;
	*step = &buffer->prepared.step;
	*waited_s = wlb_now_s() - from_s;
	return 0;
}

int wlb_loader_has_wrong_id(struct wlb_loader *l)
{
	pthread_mutex_lock(&l->lock);
	int has_wrong_id = l->failed && l->preparer.has_wrong_id;
	pthread_mutex_unlock(&l->lock);
	return has_wrong_id;
}
