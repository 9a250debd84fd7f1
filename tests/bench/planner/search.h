/* Holds the search against a published layout. */
#ifndef TESTS_BENCH_PLANNER_SEARCH_H
#define TESTS_BENCH_PLANNER_SEARCH_H

#include "tests/bench/planner/table.h"

/* Searches the plan of a row that the planner can express, with all that the row tells fixed and with nothing fixed.
 * Sets *told_s and *found_s to the least step times; *told_s to 0 where no plan of the row is admissible: it does not
 * fit in memory, or breaks a rule of the search. */
void bench_search(const struct published_row *row, const struct wlb_machine *machine, double *told_s, double *found_s);

#endif
