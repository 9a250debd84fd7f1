/* A page of text for a terminal: lines that are never wider than it, or more than it has. */
#ifndef COORDINATOR_WLB_TOP_FRAME_H
#define COORDINATOR_WLB_TOP_FRAME_H

#include <stdbool.h>
#include <stdio.h>

enum wlb_top_style {
	WLB_TOP_PLAIN,
	WLB_TOP_STRONG,
	WLB_TOP_FAINT,
	WLB_TOP_YELLOW,
	WLB_TOP_MAGENTA,
	WLB_TOP_RED,
};

struct wlb_top_frame {
	FILE *out;
	int columns;
	int rows; /* 0: no limit */
	bool is_coloured;
	bool is_live; /* it replaces the page before it on the screen */
	int line;     /* that is being written, from 0 */
	int column;
	bool is_begun; /* the line */
};

/* Adds text, UTF-8 without control characters, to the line; what does not fit is left out. */
void wlb_top_put(struct wlb_top_frame *frame, enum wlb_top_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds the text in exactly `width` columns: cut, or filled with spaces. */
void wlb_top_put_padded(struct wlb_top_frame *frame, enum wlb_top_style style, const char *text, int width);

void wlb_top_end_line(struct wlb_top_frame *frame);

/* Returns how many more lines fit; INT_MAX where there is no limit. */
int wlb_top_lines_left(const struct wlb_top_frame *frame);

/* Ends the page: of a live one, the rest of the screen is cleared. */
void wlb_top_end_page(struct wlb_top_frame *frame);

#endif
