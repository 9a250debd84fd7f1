#include "tests/unit/wlb/top_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const columns[] = {"rank",   "node",    "age_ms", "step",   "activity",
                                      "for_ms", "process", "call",   "groups", "late_us"};

static json_t *row_of(int rank, int node, const struct wlb_layout *layout)
{
	return json_pack("[i, i, i, i, s, i, s, n, [[s, i, i, i], [s, i, i, i]], n]", rank, node, 400, 41, "computing",
	                 500, "running", "tp", layout->tp, 100, 100, "dp", layout->dp, 50, 50);
}

json_t *top_reply_new(const struct wlb_layout *layout, int ranks_per_node)
{
	int ranks = wlb_layout_ranks(layout);
	json_t *nodes = json_array(), *rows = json_array();
	for (int rank = 0; rank < ranks; rank++) {
		if (rank % ranks_per_node == 0)
			json_array_append_new(nodes, json_sprintf("n%d", rank / ranks_per_node + 1));
		json_array_append_new(rows, row_of(rank, rank / ranks_per_node, layout));
	}
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:i, s:{s:i, s:i, s:i, s:i}, s:i, s:o, s:o, s:i}", "run_id",
	                 "12", "state", "running", "reason", "", "train_iters", 90, "last_step", 40, "last_loss",
	                 4.1657, "attempt", 2, "layout", "tp", layout->tp, "cp", layout->cp, "pp", layout->pp, "dp",
	                 layout->dp, "world_size", ranks, "nodes", nodes, "ranks", rows, "left_out", 0);
}

static json_t *row_at(json_t *reply, int rank)
{
	return json_array_get(json_object_get(reply, "ranks"), (size_t)rank);
}

void top_reply_set(json_t *reply, int rank, const char *column, json_t *value)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if (strcmp(columns[i], column) == 0)
			json_array_set_new(row_at(reply, rank), i, value);
}

void top_reply_wait(json_t *reply, int rank, const char *group, int seq, int for_ms)
{
	int index = strcmp(group, "dp") == 0;
	json_t *counts = json_array_get(json_array_get(row_at(reply, rank), 8), (size_t)index);
	json_array_set_new(counts, 2, json_integer(seq));
	json_array_set_new(counts, 3, json_integer(seq - 1));
	top_reply_set(reply, rank, "call", json_pack("[s, i, i, i, i]", "all_reduce", index, seq, 65536, for_ms));
}

void top_reply_accuse(json_t *reply, int rank, const char *kind, const char *verdict_state, const char *evidence)
{
	json_t *verdicts = json_object_get(reply, "verdicts");
	json_int_t node = json_integer_value(json_array_get(row_at(reply, rank), 1));
	if (verdicts == NULL) {
		verdicts = json_array();
		json_object_set_new(reply, "verdicts", verdicts);
	}
	json_array_append_new(verdicts,
	                      json_pack("{s:i, s:s, s:s, s:[i], s:i, s:[O], s:s, s:i, s:f, s:i, s:f, s:f, s:s, s:s}",
	                                "number", (int)json_array_size(verdicts) + 1, "kind", kind, "state",
	                                verdict_state, "ranks", rank, "rank_count", 1, "nodes",
	                                json_array_get(json_object_get(reply, "nodes"), (size_t)node), "collective",
	                                "dp", "sequence", 51, "since_s", 250.6, "step", 39, "cost_percent", 100.0,
	                                "certainty", 0.99, "evidence", evidence, "action", "evict"));
}

void top_reply_forget(json_t *reply, int rank)
{
	while (json_array_size(row_at(reply, rank)) > 2)
		json_array_remove(row_at(reply, rank), 2);
}
