/* Reads the scalars that a trainer writes for TensorBoard (follow/event_files.h), below the folder that its command
 * names, or --follow-tensorboard. */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_EVENT_SOURCE_H
#define COORDINATOR_WLB_RUN_FOLLOW_EVENT_SOURCE_H

#include "coordinator/wlb/run/follow/merged_records.h"
#include "follow/event_files.h"
#include "libwlb/wlb.h"

/* The folder that a command gives its trainer for TensorBoard, as Megatron-LM, Hugging Face's Trainer and others call
 * the option; NULL: it names none. Points into the words. */
const char *wlb_event_folder_of(char *const *words);

struct wlb_event_source {
	struct wlb_event_files *files; /* NULL: none is followed */
	double since_s;                /* files that were not changed since then are of earlier attempts */
	double searched_s;
	struct wlb_followed record;
};

/* `folder` NULL: none. */
int wlb_event_source_open(struct wlb_event_source *source, const char *folder, double since_s, struct wlb_error *error);
void wlb_event_source_close(struct wlb_event_source *source);

/* Reads what is new; `is_last`: the attempt has ended. */
void wlb_event_source_poll(struct wlb_event_source *source, struct wlb_merged_records *records, double now_s,
                           bool is_last);

#endif
