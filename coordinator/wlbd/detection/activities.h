/*
 * What each rank of an attempt does, as the newest report of its node says. It is in memory alone: after a restart of
 * wlbd it is empty until nodes report. Looked up in O(1); the memory is charged to the user of the run.
 */
#ifndef COORDINATOR_WLBD_DETECTION_ACTIVITIES_H
#define COORDINATOR_WLBD_DETECTION_ACTIVITIES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wlbd_budget;

enum {
	WLBD_ACTIVITY_GROUPS_MAX = 16,
	WLBD_ACTIVITY_GROUP_NAME_SIZE = 16,
	WLBD_ACTIVITY_RANKS_MAX = 65536, /* of an attempt: of ranks above, nothing is kept */
	/* Of activities and of what is found from them. 16,384 ranks with eight communicators each hold 90 MiB. */
	WLBD_ACTIVITY_USER_BYTES = 192 << 20,
	WLBD_ACTIVITY_ALL_BYTES = 512 << 20,
};

enum wlbd_activity_process {
	WLBD_PROCESS_RUNNING,
	WLBD_PROCESS_STOPPED, /* by a signal, or by a debugger: is_traced */
	WLBD_PROCESS_GONE,
};

/* A group of ranks that communicate. A rank counts its calls in it from 1. */
struct wlbd_activity_group {
	char name[WLBD_ACTIVITY_GROUP_NAME_SIZE];
	int ranks;
	int64_t entered; /* the sequence number of the last call that the rank has entered; 0: none */
	int64_t left;    /* of the last call that it has left; at most `entered` */
};

/* The call in which a rank waits. */
struct wlbd_activity_call {
	int kind;  /* an index into wlbd_call_kind_names */
	int group; /* an index into the rank's groups */
	int64_t seq;
	int64_t bytes;
	double for_s;
};

/* What a check for silent data corruption has found of the rank: that it may have computed wrongly. */
struct wlbd_corruption {
	int64_t step;
	int suspects; /* ranks of which one is at fault; 0: nothing was found */
	int first;    /* the first of them */
	int other;    /* that computed other bits; the rank itself: it did so the second time */
};

struct wlbd_activity {
	int rank;
	int64_t step;
	double work; /* predicted for the rank in the step, in any unit; 0: not known */
	int kind;    /* enum wlb_activity of common/rank_trace.h */
	double for_s;
	enum wlbd_activity_process process;
	bool is_traced; /* a debugger has stopped it */
	bool is_in_call;
	struct wlbd_activity_call call;
	struct wlbd_corruption corruption;
	int group_count;
};

struct wlbd_kept_activity {
	int64_t arrived_ms;
	const char *node; /* that reported it; lives as long as the attempt */
	struct wlbd_activity activity;
	struct wlbd_activity_group groups[]; /* [activity.group_count] */
};

/* Begins as {.budget = ..., .uid = ...}. */
struct wlbd_activities {
	struct wlbd_budget *budget;
	uid_t uid;                           /* to whom the memory is charged */
	struct wlbd_kept_activity **of_rank; /* [size]; NULL: the rank was not reported */
	int size;
};

/* Keeps a copy of the activity and of its groups. An activity changes nothing if it was sent before the kept one, as
 * far as steps and sequence numbers show that. Returns -1 where the user's memory, or all, is used up. */
int wlbd_activities_keep(struct wlbd_activities *activities, const struct wlbd_activity *activity,
                         const struct wlbd_activity_group *groups, const char *node, int64_t now_ms);

/* Returns NULL where the rank was not reported. */
const struct wlbd_kept_activity *wlbd_activities_of(const struct wlbd_activities *activities, int rank);

void wlbd_activities_free(struct wlbd_activities *activities);

#endif
