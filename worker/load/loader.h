/*
 * What this rank trains in each step, prepared while the step before is computed.
 *
 * The schedule (worker/data/schedule.h) gives the documents of a global batch; libwlb's packer decides which of their
 * spans enter the step, from seed, data, sequence length and global batch alone; from here on the layout decides: the
 * spans are assigned to dp x micro_batches micro-batches of equal predicted work, those of a replica are shared out to
 * its context-parallel ranks, and this rank's tokens are read from the dataset. All of that happens in a thread;
 * every rank finds the same without asking the others.
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

/* dataset and device stay the caller's and must outlive the loader. `model` is copied. Nothing is loaded before the
 * first wlb_loader_next, which starts the thread. NULL with the reason where the options are refused. */
struct wlb_loader *wlb_loader_new(const struct wlb_dataset *dataset, const struct wlb_model *model,
                                  const struct wlb_loader_options *options, struct wlb_device *device,
                                  struct wlb_error *error);
/* NULL allowed. Ends the thread: waits, without a bound, for the call on a file that is under way. */
void wlb_loader_free(struct wlb_loader *loader);

/* Goes on where a run stopped; before the first wlb_loader_next. What was made with other options is refused. */
int wlb_loader_restore(struct wlb_loader *loader, const struct wlb_schedule_state *schedule, const void *packer_state,
                       size_t packer_state_bytes, struct wlb_error *error);

/* The next step, uploaded to the device; valid until the next call, when the device must be done with it. *waited_s:
 * how long the caller was held up, uploading included. To be called by the thread that uses the device. A token id that
 * is not below vocab_size is an error that names dataset, id and limit. An error too: a step after the last, and files
 * that made no progress for storage_timeout_s; then the thread is still in a call on the file that the message names,
 * wlb_loader_free would wait for it, and the process should end without. */
int wlb_loader_next(struct wlb_loader *loader, const struct wlb_loaded_step **step, double *waited_s,
                    struct wlb_error *error);

#endif
