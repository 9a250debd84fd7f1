#include "coordinator/wlbd/api/reports/processes_read.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/wlbd/http/fields.h"

#define SECONDS_MAX INT64_C(10000000)

static const char *const states[] = {[WLBD_PROCESS_IS_STOPPED] = "stopped",
                                     [WLBD_PROCESS_IS_DEAD] = "dead",
                                     [WLBD_LAUNCHER_WAITS] = "waiting",
                                     NULL};
static const char *const launchers[] = {"torchrun", "ft_launcher", "accelerate", "deepspeed", NULL};

static int read_process(const json_t *entry, struct wlbd_faulty_process *process, struct wlb_error *error)
{
	int64_t rank = 0, task = 0, pid = 0, nodes = 0;
	const char *state = NULL, *launcher = "";
	*process = (struct wlbd_faulty_process){0};
	if (!json_is_object(entry))
		return wlb_fail(error, "must be an object");
	if (wlbd_field_integer(entry, "rank", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &rank, error) != 0 ||
	    wlbd_field_integer(entry, "task", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &task, error) != 0 ||
	    wlbd_field_integer(entry, "pid", WLBD_REQUIRED, 1, INT_MAX, &pid, error) != 0 ||
	    wlbd_field_choice(entry, "state", WLBD_REQUIRED, states, &state, error) != 0 ||
	    wlbd_field_choice(entry, "launcher", WLBD_OPTIONAL, launchers, &launcher, error) != 0 ||
	    wlbd_field_integer(entry, "for_s", WLBD_OPTIONAL, 0, SECONDS_MAX, &process->for_s, error) != 0 ||
	    wlbd_field_integer(entry, "nodes", WLBD_OPTIONAL, 0, WLBD_NODES_MAX, &nodes, error) != 0)
		return -1;
	process->rank = (int)rank;
	process->pid = (int)pid;
	process->nodes = (int)nodes;
	while (strcmp(states[process->fault], state) != 0)
		process->fault++;
	snprintf(process->launcher, sizeof(process->launcher), "%s", *launcher != '\0' ? launcher : "the launcher");
	return 0;
}

static int read_span(const json_t *entry, struct wlbd_rank_span *span)
{
	json_int_t first = json_integer_value(json_array_get(entry, 0));
	json_int_t count = json_integer_value(json_array_get(entry, 1));
	if (json_array_size(entry) != 2 || !json_is_integer(json_array_get(entry, 0)) || first < 0 ||
	    first > WLBD_RANKS_MAX || count < 1 || count > WLBD_NODE_RANKS_MAX)
		return -1;
	*span = (struct wlbd_rank_span){(int)first, (int)count};
	return 0;
}

static int check_spans(const json_t *processes, struct wlb_error *error)
{
	const json_t *spans = NULL;
	struct wlbd_rank_span span;
	int count = 0;
	if (wlbd_field_array(processes, "ranks", WLBD_OPTIONAL, WLBD_RUNNING_SPANS_MAX, &spans, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(spans); i++) {
		if (read_span(json_array_get(spans, i), &span) != 0 || (count += span.count) > WLBD_NODE_RANKS_MAX)
			return wlb_fail(error,
			                "ranks[%zu]: must be [FIRST, COUNT], with a rank of 0 to %d, and %d ranks "
			                "in all at most",
			                i, WLBD_RANKS_MAX, WLBD_NODE_RANKS_MAX);
	}
	return 0;
}

int wlbd_processes_check(const json_t *body, const json_t **processes, const json_t **faulty, struct wlb_error *error)
{
	struct wlbd_faulty_process process;
	int64_t running = 0;
	*processes = *faulty = NULL;
	if (wlbd_field_object(body, "processes", WLBD_OPTIONAL, processes, error) != 0)
		return -1;
	if (*processes == NULL)
		return 0;
	if (wlbd_field_integer(*processes, "running", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &running, error) != 0 ||
	    wlbd_field_array(*processes, "faulty", WLBD_REQUIRED, WLBD_FAULTY_MAX, faulty, error) != 0 ||
	    check_spans(*processes, error) != 0)
		return wlb_fail_in(error, "processes");
	for (size_t i = 0; i < json_array_size(*faulty); i++)
		if (read_process(json_array_get(*faulty, i), &process, error) != 0)
			return wlb_fail_in(error, "processes.faulty[%zu]", i);
	return 0;
}

void wlbd_processes_read(const json_t *field, struct wlbd_node_processes *processes)
{
	const json_t *faulty = json_object_get(field, "faulty"), *spans = json_object_get(field, "ranks");
	*processes =
		(struct wlbd_node_processes){.running = (int)json_integer_value(json_object_get(field, "running"))};
	for (size_t i = 0; i < json_array_size(faulty) && processes->count < WLBD_FAULTY_MAX; i++)
		read_process(json_array_get(faulty, i), &processes->list[processes->count++], NULL);
	for (size_t i = 0; i < json_array_size(spans) && processes->span_count < WLBD_RUNNING_SPANS_MAX; i++)
		read_span(json_array_get(spans, i), &processes->spans[processes->span_count++]);
}
