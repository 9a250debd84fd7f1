/*
 * Loads the data that this rank trains in each step, while the step before is computed.
 *
 * The schedule (worker/data/schedule.h) returns the documents of a global batch; libwlb's packer decides which of their
 * spans enter the step. Both depend only on seed, data, sequence length and global batch. The rest depends on the
 * layout: the spans are assigned to dp x micro_batches micro-batches of equal predicted work, the micro-batches of a
 * replica are sharded over its context-parallel ranks, and this rank's tokens are read from the dataset. With dynamic
 * packing a micro-batch is one of all replicas, and each span is on as many of their ranks as it needs. A thread does
 * all of that; every rank computes the same without communication.
 */
#ifndef WORKER_LOAD_LOADER_H
#define WORKER_LOAD_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/dataset.h"
#include "worker/data/schedule.h"
#include "worker/load/loaded_step.h"
#include "worker/load/options.h"

struct wlb_loader;

/* The caller owns dataset and device, which must outlive the loader. `model` is copied. Nothing is loaded before the
 * first wlb_loader_next, which starts the thread. Returns NULL with the reason where the options are refused. */
struct wlb_loader *wlb_loader_new(const struct wlb_dataset *dataset, const struct wlb_model *model,
                                  const struct wlb_loader_options *options, struct wlb_device *device,
                                  struct wlb_error *error);
/* NULL allowed. Ends the thread: waits, without a bound, for the file call in progress. */
void wlb_loader_free(struct wlb_loader *loader);

/* Returns -1 where the state is of another dataset, seed or sequence length. */
int wlb_loader_check_state(const struct wlb_loader *loader, const struct wlb_schedule_state *schedule,
                           struct wlb_error *error);
/* Continues from the state of an earlier run; to be called before the first wlb_loader_next. States made with other
 * options are refused. */
/* packer_state NULL: what the packer held is left out. */
int wlb_loader_restore(struct wlb_loader *loader, const struct wlb_schedule_state *schedule, const void *packer_state,
                       size_t packer_state_bytes, struct wlb_error *error);

/* Begins the order of documents where the steps up to this one, of so many windows, were trained with another: to be
 * called before the first wlb_loader_next. */
int wlb_loader_begin_after(struct wlb_loader *loader, int64_t step, int64_t windows, struct wlb_error *error);

/* Begins again at the first step, for a loader whose steps are all taken and computed. Waits for the thread, which has
 * nothing left to read then. */
int wlb_loader_rewind(struct wlb_loader *loader, struct wlb_error *error);

/* Waits for at most `seconds` until wlb_loader_next would return without waiting. Returns 1 then, also where it would
 * fail; 0 after `seconds`; -1 where the thread cannot be started or the files made no progress for storage_timeout_s,
 * as in wlb_loader_next. */
int wlb_loader_await(struct wlb_loader *loader, double seconds, struct wlb_error *error);

/* Returns the seconds that the thread has spent in calls that read files, with the one in progress. */
double wlb_loader_read_s(struct wlb_loader *loader);

/* Sets *step to the next step, which what is queued on the compute queue from now on finds on the device: a queue of
 * its own copies it, beside the step before. It is valid until the next call, before which all work on it must be
 * queued. *waited_s: how long the caller was blocked; where the host's memory is the device's, the copy is in it. The
 * thread that uses the device must call it. A token id that is not below vocab_size is an error that names dataset, id
 * and limit. A step after the last is an error. Files that made no progress for storage_timeout_s are an error: the
 * thread is then still in a call on the file that the message names, wlb_loader_free would wait for it, and the process
 * should end without calling it. */
int wlb_loader_next(struct wlb_loader *loader, const struct wlb_loaded_step **step, double *waited_s,
                    struct wlb_error *error);

/* Whether wlb_loader_next has failed for a token id that is not below vocab_size: the same data would fail again. */
int wlb_loader_has_wrong_id(struct wlb_loader *loader);

#endif
