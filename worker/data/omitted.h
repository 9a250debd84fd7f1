/* What a build leaves out, counted, with the first of each kind. */
#ifndef WORKER_DATA_OMITTED_H
#define WORKER_DATA_OMITTED_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_omitted {
	int64_t too_short;  /* documents below min_bytes */
	int64_t no_text;    /* JSON objects whose text is null */
	int64_t not_text;   /* files */
	int64_t unreadable; /* files and folders */
};

struct wlb_omitted_first {
	struct wlb_error refused; /* conversation; empty where none is, and of all others where their number is 0 */
	struct wlb_error no_text;
	struct wlb_error not_text;
	struct wlb_error unreadable;
};

#endif
