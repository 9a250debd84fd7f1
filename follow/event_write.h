/*
 * Writes an event of TensorBoard as a record of its file: the fields that event_message.h reads, and those by which a
 * reader knows where a run began or went on (tensorboard/compat/proto/event.proto):
 *
 *     Event:      string file_version = 3, SessionLog session_log = 7
 *     SessionLog: status = 1, where START is 1
 *
 * An event is begun, given its scalars, and ended. Pure: no I/O, no allocation.
 */
#ifndef FOLLOW_EVENT_WRITE_H
#define FOLLOW_EVENT_WRITE_H

#include <stddef.h>
#include <stdint.h>

enum {
	WLB_EVENT_TAG_MOST = 63, /* bytes of a tag; the rest is cut off */
	WLB_EVENT_SCALARS_MOST = 32,
	WLB_EVENT_RECORD_MOST = 4096, /* more than a record of so many scalars takes */
};

/* Its members are private. */
struct wlb_event_write {
	unsigned char record[WLB_EVENT_RECORD_MOST];
	size_t used, summary_at; /* bytes of the record; where the scalars begin */
	int scalars;
};

/* Begins the event of a step, of so many seconds since 1970. */
void wlb_event_begin(struct wlb_event_write *event, double time_s, int64_t step);
/* The first event of a file. */
void wlb_event_set_version(struct wlb_event_write *event);
/* A run begins or goes on with this step: readers leave out what earlier files say of it and of later ones. */
void wlb_event_set_start(struct wlb_event_write *event);
/* Adds a scalar behind what was set; beyond WLB_EVENT_SCALARS_MOST it is left out. */
void wlb_event_add(struct wlb_event_write *event, const char *tag, double value);
/* Returns the record, valid until the event begins again, and its length in *bytes. */
const unsigned char *wlb_event_end(struct wlb_event_write *event, size_t *bytes);

#endif
