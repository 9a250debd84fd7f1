/* Writes the file of a machine that was measured. */
#ifndef PLANNER_MACHINE_WRITE_H
#define PLANNER_MACHINE_WRITE_H

#include "libwlb/wlb.h"

/* The circumstances of a measurement. The caller owns the texts. */
struct wlb_measured {
	const char *at; /* UTC, such as 2026-11-22T06:00:00Z */
	const char *host;
	const char *device; /* "cpu", "cuda" */
	const char *dtype;
	const char *wlb; /* version */
	int ranks;
	int nodes;
};

/* Returns the text of the file, which wlb_machine_file_parse reads back to the same machine; the caller frees it. NULL
 * with the reason if out of memory, or where the machine does not pass wlb_machine_check. */
char *wlb_machine_text(const struct wlb_machine *machine, const struct wlb_measured *measured, struct wlb_error *error);

#endif
