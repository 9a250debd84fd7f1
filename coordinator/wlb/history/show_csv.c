#include "coordinator/wlb/history/show_csv.h"

#include <stdio.h>
#include <string.h>

#include "common/output/csv.h"

enum { FIELDS_MOST = 32 };

struct list {
	const char *name; /* of the member of the run */
	const char *fields[FIELDS_MOST];
};

static const struct list lists[] = {
	{"attempts", {"attempt",    "state",      "reason",    "nodes",      "node_count",  "layout.tp",
                      "layout.cp",  "layout.pp",  "layout.dp", "world_size", "device",      "dtype",
                      "created_at", "started_at", "ended_at",  "first_step", "last_step",   "resumed_step",
                      "checkpoint", "exit_code",  "step_s",    "mfu",        "memory_bytes"}},
	{"faults",
         {"attempt", "time", "kind", "rank", "node", "peer_rank", "collective", "step", "cost_s", "cause", "detail"}},
	{"verdicts",
         {"attempt", "kind", "state", "ranks", "rank_count", "nodes", "collective", "sequence", "step", "cost_percent",
          "certainty", "action", "began_at", "found_at", "confirmed_at", "over_at", "evidence"}},
	{"checkpoints", {"attempt", "time", "step", "path", "bytes", "duration_s", "stall_s", "is_seen"}},
	{"evaluations", {"attempt", "time", "step", "loss", "tokens", "duration_s"}},
	{"events", {"attempt", "time", "kind", "detail"}},
	{"values", {"name", "attempt", "step", "is_of_attempt", "value", "source"}},
	{"time_lost", {"cause", "seconds", "share"}},
};

int wlb_show_csv(json_t *run, const char *list)
{
	size_t i = 0;
	while (strcmp(lists[i].name, list) != 0)
		i++;
	json_t *rows = json_object_get(run, list);
	if (json_is_object(rows)) /* the time lost */
		rows = json_object_get(rows, "causes");
	return wlb_csv_print(rows, lists[i].fields, true, stdout);
}
