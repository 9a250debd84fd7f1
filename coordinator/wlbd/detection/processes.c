#include "coordinator/wlbd/detection/processes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Numbers of verdicts are those of an attempt: others begin with 1 and with 2^30. */
enum { FIRST_NUMBER = 1 << 29, DESCRIBED_MAX = 3 };

/* What judging one fault needs. */
struct view {
	const struct wlbd_processes_node *list;
	int count;
	int nodes; /* of the attempt */
	enum wlbd_process_fault fault;
};

/* Whether the process counts: a launcher may take its time to start. */
static bool is_meant(const struct view *view, const struct wlbd_faulty_process *process)
{
	return process->fault == view->fault &&
	       (view->fault != WLBD_LAUNCHER_WAITS || process->for_s >= WLBD_LAUNCHER_WAITS_S);
}

static int count_meant(const struct view *view)
{
	int count = 0;
	for (int i = 0; i < view->count; i++) {
		const struct wlbd_node_processes *processes = view->list[i].processes;
		for (int k = 0; processes != NULL && k < processes->count; k++)
			count += is_meant(view, &processes->list[k]);
	}
	return count;
}

static int count_running(const struct view *view)
{
	int running = 0;
	for (int i = 0; i < view->count; i++)
		running += view->list[i].processes != NULL ? view->list[i].processes->running : 1;
	return running;
}

/* ---- the evidence ------------------------------------------------------------------------------------------------ */

struct text {
	char *text;
	size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
	va_list arguments;
	if (text->length >= text->size)
		return;
	va_start(arguments, format);
	text->length += (size_t)vsnprintf(text->text + text->length, text->size - text->length, format, arguments);
	va_end(arguments);
}

static void describe_launcher(const struct view *view, const struct wlbd_processes_node *node,
                              const struct wlbd_faulty_process *process, struct text *text)
{
	append(text, "%s, process %d on %.64s, has had no rank for %lld s", process->launcher, process->pid, node->name,
	       (long long)process->for_s);
	if (process->nodes > view->nodes)
		append(text, ": it waits for %d nodes, and the attempt has %d", process->nodes, view->nodes);
	else
		append(text, ": it starts, or waits for other nodes");
}

static void describe(const struct view *view, const struct wlbd_processes_node *node,
                     const struct wlbd_faulty_process *process, struct text *text)
{
	if (view->fault == WLBD_LAUNCHER_WAITS)
		describe_launcher(view, node, process, text);
	else
		append(text, "process %d of rank %d on %.64s is %s", process->pid, process->rank, node->name,
		       view->fault == WLBD_PROCESS_IS_STOPPED ? "stopped by a signal (SIGSTOP or alike)"
		                                              : "dead, and its launcher has not noticed");
}

/* ---- a verdict --------------------------------------------------------------------------------------------------- */

static void take(const struct view *view, struct wlbd_found_verdict *found)
{
	struct wlb_verdict *verdict = &found->verdict;
	struct text text = {verdict->evidence, sizeof(verdict->evidence), 0};
	verdict->rank_count = 0;
	for (int i = 0; i < view->count; i++) {
		const struct wlbd_node_processes *processes = view->list[i].processes;
		for (int k = 0; processes != NULL && k < processes->count; k++) {
			if (!is_meant(view, &processes->list[k]))
				continue;
			if (verdict->rank_count < WLB_VERDICT_RANKS) {
				verdict->ranks[verdict->rank_count] = processes->list[k].rank;
				found->node_of[verdict->rank_count] = view->list[i].index;
			}
			if (verdict->rank_count > 0 && verdict->rank_count < DESCRIBED_MAX)
				append(&text, "; ");
			if (verdict->rank_count < DESCRIBED_MAX)
				describe(view, &view->list[i], &processes->list[k], &text);
			verdict->rank_count++;
		}
	}
	if (verdict->rank_count > DESCRIBED_MAX)
		append(&text, "; and %d more", verdict->rank_count - DESCRIBED_MAX);
}

static struct wlbd_found_verdict *find(struct wlbd_process_faults *faults, enum wlbd_process_fault fault)
{
	for (int i = 0; i < faults->count; i++)
		if (faults->list[i].verdict.id == (uint64_t)fault)
			return &faults->list[i];
	return NULL;
}

static struct wlbd_found_verdict *open_verdict(struct wlbd_process_faults *faults, enum wlbd_process_fault fault)
{
	struct wlbd_found_verdict *found = find(faults, fault);
	if (found != NULL)
		return found;
	found = &faults->list[faults->count++];
	*found = (struct wlbd_found_verdict){.number = FIRST_NUMBER + faults->found_count++,
	                                     .verdict = {.id = (uint64_t)fault,
	                                                 .kind = WLB_VERDICT_HANG,
	                                                 .node = -1,
	                                                 .group = -1,
	                                                 .since_step = -1,
	                                                 .since_s = 1e-3 * (double)faults->since_ms[fault],
	                                                 .cost_percent = 100,
	                                                 .certainty = fault == WLBD_LAUNCHER_WAITS ? 0.5 : 0.95},
	                                     .reported.stage = WLB_VERDICT_OVER};
	return found;
}

static void forget_over(struct wlbd_process_faults *faults)
{
	int kept = 0;
	for (int i = 0; i < faults->count; i++)
		if (faults->list[i].verdict.stage != WLB_VERDICT_OVER)
			faults->list[kept++] = faults->list[i];
	faults->count = kept;
}

static void note_change(struct wlbd_found_verdict *found)
{
	found->is_changed = found->verdict.stage != found->reported.stage ||
	                    found->verdict.rank_count != found->reported.rank_count;
	found->reported.stage = found->verdict.stage;
	found->reported.rank_count = found->verdict.rank_count;
}

/* Whether there is such a process, and others run meanwhile: those of a job that Slurm suspends are all stopped. */
static bool is_so(const struct view *view)
{
	return count_meant(view) > 0 && (view->fault == WLBD_LAUNCHER_WAITS || count_running(view) > 0);
}

static void judge(struct wlbd_process_faults *faults, const struct view *view, double hang_after_s, int64_t now_ms)
{
	int64_t *since_ms = &faults->since_ms[view->fault];
	struct wlbd_found_verdict *found = find(faults, view->fault);
	bool is_launcher = view->fault == WLBD_LAUNCHER_WAITS;
	if (!is_so(view)) {
		*since_ms = 0;
		if (found != NULL)
			found->verdict.stage = WLB_VERDICT_OVER;
	} else {
		if (*since_ms == 0)
			*since_ms = now_ms;
		if (!is_launcher && now_ms - *since_ms < WLBD_PROCESSES_NAMED_MS)
			return;
		found = open_verdict(faults, view->fault);
		take(view, found);
		bool is_long = 1e-3 * (double)(now_ms - *since_ms) >= hang_after_s;
		found->verdict.stage = is_long && !is_launcher ? WLB_VERDICT_CONFIRMED : WLB_VERDICT_SUSPECTED;
	}
	if (found != NULL)
		note_change(found);
}

void wlbd_process_faults_judge(struct wlbd_process_faults *faults, const struct wlbd_processes_node *list, int count,
                               int nodes, double hang_after_s, int64_t now_ms)
{
	forget_over(faults);
	for (int fault = 0; fault < WLBD_PROCESS_FAULTS; fault++) {
		const struct view view = {list, count, nodes, (enum wlbd_process_fault)fault};
		judge(faults, &view, hang_after_s, now_ms);
	}
}
