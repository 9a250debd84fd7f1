/* Which bytes of which file are asked for, from the reply of GET /v1/runs/RUN. Pure, no I/O. */
#ifndef COORDINATOR_WLB_LOGS_OUTPUT_CHOICE_H
#define COORDINATOR_WLB_LOGS_OUTPUT_CHOICE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "libwlb/wlb.h"

struct wlb_output_asked {
	int rank;       /* -1: all */
	int attempt;    /* 0: the newest, and what its file has of those before */
	bool is_stderr; /* the file of standard error, where it is another one */
};

struct wlb_output_choice {
	char path[PATH_MAX];
	int64_t begin; /* bytes */
	int64_t end;   /* -1: where the file ends */
	int attempt;
	bool is_filtered; /* the lines of the rank are chosen by their labels */
};

/* Returns -1 with what cannot be told, and the remedy. */
int wlb_output_choose(const json_t *run, const struct wlb_output_asked *asked, struct wlb_output_choice *choice,
                      struct wlb_error *error);

#endif
