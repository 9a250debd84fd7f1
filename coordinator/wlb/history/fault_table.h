/* Prints faults and verdicts, as GET /v1/faults and GET /v1/runs/RUN have them, in one table. */
#ifndef COORDINATOR_WLB_HISTORY_FAULT_TABLE_H
#define COORDINATOR_WLB_HISTORY_FAULT_TABLE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* What rows name beside the time: the run and the date; the day; or nothing, where all are of one day of one run. */
enum wlb_fault_rows { WLB_FAULT_ROWS_OF_RUNS, WLB_FAULT_ROWS_OF_DAYS, WLB_FAULT_ROWS_OF_DAY };

/* Prints the entries from index `first` on, with their evidence below each, after two spaces and in lines of `columns`.
 * Returns -1 if out of memory. */
int wlb_fault_table_print(const json_t *entries, size_t first, enum wlb_fault_rows rows, int columns, FILE *out);

#endif
