#include "coordinator/wlb/run/plan/idle_ranks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/json_text.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/state/print.h"

/* The line that names what is idle. */
struct line {
	char text[1024];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void append(struct line *line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	line->used += wlb_text_vformat(line->text + line->used, sizeof(line->text) - line->used, format, args);
	va_end(args);
}

/* Adds the nodes from `first` on, all of whose tasks are idle. */
static void add_nodes(const struct wlb_attempt *attempt, int first, int count, json_t *record, struct line *line)
{
	char *nodes = count > 0 ? wlb_hostlist_fold(attempt->nodes + first, count, NULL) : NULL;
	if (nodes != NULL) {
		json_object_set_new(record, "idle", wlb_json_text(nodes));
		append(line, ", all of %s", nodes);
	}
	free(nodes);
}

/* Adds the tasks from local rank `local` on of `count` nodes from `first` on. */
static void add_local_ranks(const struct wlb_attempt *attempt, int first, int count, int local, json_t *list,
                            struct line *line)
{
	int last = attempt->tasks_per_node - 1;
	char *nodes = count > 0 && local <= last ? wlb_hostlist_fold(attempt->nodes + first, count, NULL) : NULL;
	if (nodes == NULL)
		return;
	json_array_append_new(
		list, json_pack("{s:o, s:i, s:i}", "nodes", wlb_json_text(nodes), "first", local, "last", last));
	if (local == last)
		append(line, ", local rank %d of %s", local, nodes);
	else
		append(line, ", local ranks %d-%d of %s", local, last, nodes);
	free(nodes);
}

/* `kept` nodes have ranks, `each` on all but the last of them, `on_last` there. */
static void name_idle(const struct wlb_attempt *attempt, int kept, int each, int on_last, json_t *record)
{
	struct line line = {.used = 0};
	int places = attempt->node_count * attempt->tasks_per_node, idle = places - (kept - 1) * each - on_last;
	int full = on_last < each ? kept - 1 : kept;
	if (idle == 0)
		return;
	append(&line, "the best layout uses %d of %d ranks: %d %s idle", places - idle, places, idle,
	       idle == 1 ? "is" : "are");
	json_t *list = json_array();
	add_nodes(attempt, kept, attempt->node_count - kept, record, &line);
	add_local_ranks(attempt, 0, full, each, list, &line);
	add_local_ranks(attempt, full, kept - full, on_last, list, &line);
	if (json_array_size(list) > 0)
		json_object_set(record, "idle_local_ranks", list);
	json_decref(list);
	wlb_run_print("%s", line.text);
}

static void keep_nodes(struct wlb_attempt *attempt, int kept)
{
	for (int i = kept; i < attempt->node_count; i++) {
		free(attempt->nodes[i]);
		attempt->nodes[i] = NULL;
	}
	attempt->node_count = kept;
}

int wlb_run_leave_idle(const struct wlb_layout *layout, struct wlb_attempt *attempt, json_t *record,
                       struct wlb_error *error)
{
	int ranks = wlb_layout_ranks(layout), each = attempt->tasks_per_node / layout->tp * layout->tp;
	int kept = each > 0 ? (ranks + each - 1) / each : 0;
	if (each == 0 || kept > attempt->node_count)
		return wlb_fail(error, "the layout has %d ranks, tp of them on a node, %d: %d nodes have %d tasks each",
		                ranks, layout->tp, attempt->node_count, attempt->tasks_per_node);
	int on_last = ranks - (kept - 1) * each;
	name_idle(attempt, kept, each, on_last, record);
	keep_nodes(attempt, kept);
	attempt->tasks_per_node = kept > 1 ? each : on_last;
	attempt->fewer_on_last = attempt->tasks_per_node - on_last;
	return 0;
}

void wlb_run_leave_nodes(const struct wlb_nodes *of_layout, struct wlb_attempt *attempt, json_t *record)
{
	struct line line = {.used = 0};
	int idle = attempt->node_count - of_layout->count;
	if (idle == 0)
		return;
	append(&line, "the best layout uses %d of %d nodes: the launcher is not started on the others",
	       of_layout->count, attempt->node_count);
	add_nodes(attempt, of_layout->count, idle, record, &line);
	json_object_set_new(record, "idle_ranks", json_integer((json_int_t)idle * of_layout->ranks_per_node));
	wlb_run_print("%s", line.text);
	keep_nodes(attempt, of_layout->count);
}
