/* What the planner is given for a row of the table. */
#ifndef TESTS_BENCH_PLANNER_OPTIONS_H
#define TESTS_BENCH_PLANNER_OPTIONS_H

#include <stddef.h>

#include "tests/bench/planner/table.h"

/* Returns `made`; ends the program with the message where it is NULL. */
void *bench_must(void *made, const struct wlb_error *error);

/* Returns NULL and reads the machine, or returns why the planner cannot express the row. `text` has space for that. */
const char *bench_inexpressible(const struct published_row *row, struct wlb_machine *machine, char *text, size_t size);

/* In how many bits the row's products are. */
enum wlb_fp8 bench_fp8(const struct published_row *row);

/* Sets the options of the row's trainer, with what the row tells otherwise; the machine gets the rates of the trainer.
 */
void bench_options(const struct published_row *row, struct wlb_machine *machine, struct wlb_cost_options *options);

#endif
