/* What is known of a checkpoint without reading its tensors. */
#ifndef WORKER_CHECKPOINT_CLI_SUMMARY_H
#define WORKER_CHECKPOINT_CLI_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "worker/checkpoint/checkpoint.h"

struct wlb_checkpoint_summary {
	char path[4096];
	int64_t step; /* of its manifest, else of its name; -1 where that says none */
	time_t saved; /* when its manifest was written; -1 where it has none */
	int state;    /* 0: complete; -1: it is not; WLB_UNREADABLE (worker/data/input.h): that cannot be known now */
	struct wlb_error why; /* where it is not complete */
	bool has_facts;       /* the members below are set: the manifest could be read */
	struct wlb_checkpoint_facts facts;
	int shards;
	int64_t bytes; /* of all its files */
	int tensors;
	int unsummed; /* tensors of which an earlier version kept neither checksum nor digest */
	int64_t elements;
	char dtype[16]; /* of the tensors, such as "F32"; empty where the first shard cannot be read */
};

void wlb_checkpoint_summarize(const char *path, struct wlb_checkpoint_summary *summary);
/* "complete", "not complete" or "cannot be read now" */
const char *wlb_checkpoint_state_name(const struct wlb_checkpoint_summary *summary);
/* "1.2 GiB in 8 shards" */
void wlb_checkpoint_size_format(const struct wlb_checkpoint_summary *summary, char *text, size_t size);
/* "2026-11-20 10:00:00", local time, or "-" where there is none. */
void wlb_checkpoint_time_format(time_t when, char *text, size_t size);
/* The time in UTC, ISO 8601, or null. Returns NULL if out of memory. */
json_t *wlb_checkpoint_time_json(time_t when);
/* One object: step, path, saved_at, complete, reason where it is not; and of the manifest bytes, shards, train_loss.
 * Returns NULL if out of memory. */
json_t *wlb_checkpoint_summary_json(const struct wlb_checkpoint_summary *summary);

#endif
