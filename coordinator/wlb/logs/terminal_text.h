/*
 * The output of a program for a terminal: texts, ends of lines, returns, tabs and colours (ESC [ ... m) as they are, a
 * space for each other character that a terminal would act on, and U+FFFD for what is not UTF-8. Who looks at another
 * user's run must not have a terminal that this user's program controls. Pure, no I/O.
 */
#ifndef COORDINATOR_WLB_LOGS_TERMINAL_TEXT_H
#define COORDINATOR_WLB_LOGS_TERMINAL_TEXT_H

#include <stddef.h>

enum { WLB_TERMINAL_HELD_BYTES = 32 };

struct wlb_terminal_text {
	char held[WLB_TERMINAL_HELD_BYTES]; /* a character or a colour that has not come to its end */
	size_t held_bytes;
};

/* The room that `count` bytes need. */
#define WLB_TERMINAL_ROOM(count) (3 * ((count) + WLB_TERMINAL_HELD_BYTES))

/* Takes the next `count` bytes, and writes to `to`. Returns how many it wrote. */
size_t wlb_terminal_text_pass(struct wlb_terminal_text *text, const char *bytes, size_t count, char *to);

#endif
