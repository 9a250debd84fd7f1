/* A set of names, such as the nodes of a job: sorted, looked up in O(log n). */
#ifndef COORDINATOR_WLBD_ATTEMPTS_NAMES_H
#define COORDINATOR_WLBD_ATTEMPTS_NAMES_H

#include <jansson.h>
#include <stdbool.h>

struct wlbd_names {
	char **list; /* sorted, each once */
	int count;
};

/* Replaces the set with the texts of a JSON array. Returns -1 if out of memory; `names` is unchanged then. */
int wlbd_names_from_json(struct wlbd_names *names, const json_t *array);

/* The same from "n[1-3]". Returns -1 also where Slurm cannot read that. */
int wlbd_names_from_hostlist(struct wlbd_names *names, const char *expression);

/* Returns -1 if out of memory; `names` is unchanged then. */
int wlbd_names_copy(struct wlbd_names *names, const struct wlbd_names *from);

void wlbd_names_remove(struct wlbd_names *names, int index);
void wlbd_names_free(struct wlbd_names *names); /* leaves an empty set */

size_t wlbd_names_bytes(const struct wlbd_names *names); /* of memory that it holds */

/* Returns the index of a name in `list`; -1: it is not there. */
int wlbd_names_find(const struct wlbd_names *names, const char *name);

#endif
