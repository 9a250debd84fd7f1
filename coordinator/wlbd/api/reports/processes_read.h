/* The field 'processes' of a report: which of the node's ranks run, and which cannot go on. Pure: no I/O. */
#ifndef COORDINATOR_WLBD_API_REPORTS_PROCESSES_READ_H
#define COORDINATOR_WLBD_API_REPORTS_PROCESSES_READ_H

#include <jansson.h>

#include "coordinator/wlbd/detection/processes.h"
#include "libwlb/wlb.h"

/* Sets *processes to the field, NULL where it is absent, and *faulty to its list, whose entries have their 'task', a
 * rank of the step. Returns -1 with the member that is wrong. */
int wlbd_processes_check(const json_t *body, const json_t **processes, const json_t **faulty, struct wlb_error *error);

/* Reads the field, which was checked. */
void wlbd_processes_read(const json_t *field, struct wlbd_node_processes *processes);

#endif
