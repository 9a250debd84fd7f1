/*
 * Makes records of type followed (docs/api.md) of what an attempt's trainer says of its steps: the sources are merged
 * (follow/value_merge.h), and what counts is written, with its origin, by which the database decides again.
 *
 * The time from one step to the next is told with the step. Where the trainer logs each tenth step it is that of ten.
 * A record whose number of a step is not the trainer's own, or that has none, is written once a second at most.
 */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_MERGED_RECORDS_H
#define COORDINATOR_WLB_RUN_FOLLOW_MERGED_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "follow/followed.h"
#include "follow/value_merge.h"

/* Takes a record and releases `data`; NULL: out of memory. */
typedef void wlb_merged_write(void *context, const char *type, json_t *data, double time_s);

struct wlb_merged_records {
	struct wlb_merge *merge; /* owned */
	wlb_merged_write *write;
	void *context;
	bool has_step;
	int64_t step; /* at which training was last, of its own number */
	double step_s;
	double reported_s;       /* for which training stood still in saves since then, as the trainer said */
	double seen_s;           /* the same, as the hook saw */
	int64_t unnumbered_s;    /* the second of the last record without a number */
	json_t *held;            /* the last step of the attempt, not written yet; owned; NULL: none */
	double held_s;           /* when it was said */
	int64_t written_held_s;  /* the second in which one was written */
	int64_t save_s;          /* the second of the last event of a save */
	int64_t restarts;        /* of the ranks by their launcher, so far */
	int64_t left_out_values; /* without room or a usable name */
	int64_t left_out_records;
};

/* Returns -1 if out of memory. */
int wlb_merged_records_open(struct wlb_merged_records *records, wlb_merged_write *write, void *context);
/* Writes what is held. */
void wlb_merged_records_close(struct wlb_merged_records *records);

/* now_s: since 1970, for a record that does not say its time. */
void wlb_merged_records_take(struct wlb_merged_records *records, const struct wlb_origin *origin,
                             const struct wlb_followed *record, double now_s);

/* Takes a checkpoint that is complete, at the step of the record, else at that of training now; without any it is left
 * out. The record may say how long it took (save_s), for how much of that training stood still (stall_s; else for all
 * of it), and its size (bytes). Where the hook has seen a save, nobody has said that a run can go on from it: that is
 * an event, one a second at most. */
void wlb_merged_records_saved(struct wlb_merged_records *records, enum wlb_source source, const char *path,
                              const struct wlb_followed *record, double now_s);

/* The launcher of the ranks has started them again within the attempt, so many times: each is an event, once. */
void wlb_merged_records_restarted(struct wlb_merged_records *records, double restarts,
                                  const struct wlb_followed *record, double now_s);

#endif
