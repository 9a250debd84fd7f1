/* The path of an output of srun, with what srun replaces in it (srun(1), "filename pattern"). Pure, no I/O. */
#ifndef COORDINATOR_WLB_LOGS_OUTPUT_PATH_H
#define COORDINATOR_WLB_LOGS_OUTPUT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_output_facts {
	int64_t job_id;
	const char *alias; /* "15_2" of an array; NULL: none */
	const char *step;  /* "12.0"; NULL: not known */
	const char *user;
	const char *job_name;
	int rank;         /* -1: none is asked for */
	const char *node; /* of the rank; NULL: not known */
	int node_number;  /* of that node among the attempt's */
};

/* Whether each rank has a file of its own (%t), or each node (%N, %n). */
bool wlb_output_is_of_rank(const char *pattern);
bool wlb_output_is_of_node(const char *pattern);

/* Writes the path. Returns -1 with the reason where it depends on what is not known, or is too long. */
int wlb_output_path(const char *pattern, const struct wlb_output_facts *facts, char *path, size_t size,
                    struct wlb_error *error);

#endif
