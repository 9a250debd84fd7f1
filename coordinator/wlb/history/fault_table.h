/* Prints faults and verdicts, as GET /v1/faults and GET /v1/runs/RUN have them, in one table. */
#ifndef COORDINATOR_WLB_HISTORY_FAULT_TABLE_H
#define COORDINATOR_WLB_HISTORY_FAULT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Prints the entries from index `first` on, with their evidence below each, after two spaces and in lines of `columns`.
 * With `has_run` each names its run and day. Returns -1 if out of memory. */
int wlb_fault_table_print(const json_t *entries, size_t first, bool has_run, int columns, FILE *out);

#endif
