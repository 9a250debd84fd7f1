/* The columns of `wlb runs`: of its table, of --csv, and by which --sort puts runs in order. */
#ifndef COORDINATOR_WLB_HISTORY_RUN_COLUMNS_H
#define COORDINATOR_WLB_HISTORY_RUN_COLUMNS_H

#include <jansson.h>

#include "common/output/table.h"
#include "libwlb/wlb.h"

/* All of them, for --help. */
#define WLB_RUN_COLUMNS                                                                                                \
	"run, name, user, state, nodes, layout, step, loss, attempts, started, elapsed, submitted, ended, job, "       \
	"account, "                                                                                                    \
	"model, "                                                                                                      \
	"ranks, gpus, sequence, batch, tokens, tokens_per_s, memory (the most that a rank of the newest attempt has "  \
	"allocated), mfu (of the newest attempt: what its plan predicts, at the measured step time), faults, tags "    \
	"and "                                                                                                         \
	"reason"

/* Those by which the coordinator puts runs in order. */
#define WLB_RUN_ORDERS                                                                                                 \
	"run, name, user, account, state, nodes, step, loss, attempts, started, elapsed, submitted, ended, tokens, "   \
	"tokens_per_s, memory, mfu or faults"

enum { WLB_RUN_FIELDS = 80 };

/* Columns in the order of a table. */
struct wlb_run_columns {
	int count;
	int columns[WLB_TABLE_COLUMNS];
	bool is_chosen; /* by the user: none is left out */
};

/* Those of the table, or with is_all every one, where `given` is NULL; else those that it names, with commas between
 * them. Returns -1 with the name and the rule. */
int wlb_run_columns_choose(const char *given, bool is_all, struct wlb_run_columns *chosen, struct wlb_error *error);

/* Checks the name of an order, which may begin with '-'. */
int wlb_run_order_check(const char *order, struct wlb_error *error);

/* Prints the first `limit` runs of the reply to GET /v1/runs, and, where not all of them fit the width, a line that
 * names the columns that are left out. Returns -1 if out of memory. */
int wlb_run_columns_print(const struct wlb_run_columns *chosen, const json_t *runs, size_t limit);

/* Sets `fields` to the members of a run that the columns show, for wlb_csv_print. */
void wlb_run_columns_fields(const struct wlb_run_columns *chosen, const char *fields[WLB_RUN_FIELDS]);

#endif
