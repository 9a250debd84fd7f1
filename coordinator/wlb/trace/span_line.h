/*
 * Reads a line of a rank's file of spans (worker/record/span_file.h). The file may be of anybody: every member is
 * checked, and a name has no character that JSON would escape.
 */
#ifndef COORDINATOR_WLB_TRACE_SPAN_LINE_H
#define COORDINATOR_WLB_TRACE_SPAN_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum {
	WLB_SPAN_RANK_MOST = (1 << 20) - 1,
	WLB_SPAN_TRACK_MOST = 1000,
};
#define WLB_SPAN_US_MOST 1e15 /* thirty years */

enum wlb_span_kind {
	WLB_SPAN_RANK,  /* names the rank */
	WLB_SPAN_TRACK, /* names a track */
	WLB_SPAN_TIME,  /* is a span */
};

struct wlb_span_line {
	enum wlb_span_kind kind;
	int rank;
	int ranks; /* RANK: of the run */
	char node[256];
	char name[400]; /* of rank, track or span; that of a rank may have any characters */
	int track;
	double at_us, took_us;
	int64_t step;
	uint64_t seq, bytes; /* of a call; seq 0: it is none */
};

/* Reads a line without its end. Returns -1 with the reason. */
int wlb_span_line_read(const char *text, size_t length, struct wlb_span_line *line, struct wlb_error *error);

#endif
