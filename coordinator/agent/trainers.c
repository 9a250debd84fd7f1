#include "coordinator/agent/trainers.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/number.h"
#include "common/process_variable.h"
#include "coordinator/agent/launcher_process.h"
#include "coordinator/stacks/process_list.h"

enum {
	SCAN_MS = 30000,     /* on a node with thousands of processes a scan takes some 20 ms */
	SCAN_SOON_MS = 2000, /* at the start, where a process has gone, and while a launcher has no rank */
	START_MS = 60000,
	SCAN_MAX_MS = 100, /* tasks beyond count as processes that train */
	BELOW_MAX = 256,   /* processes below a task that are looked at */
	RANK_MAX = 1 << 20,
	VARIABLES = 4,
	VALUE_SIZE = 64,
};

/* ---- which process is a rank ------------------------------------------------------------------------------------- */

/* What a launcher sets for each rank: RANK first. */
struct identity {
	char values[VARIABLES][VALUE_SIZE];
};

static struct identity identity_of(pid_t pid)
{
	static const char *const names[VARIABLES] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"};
	struct identity identity = {0};
	for (int i = 0; i < VARIABLES; i++)
		if (wlb_process_variable(pid, names[i], identity.values[i], VALUE_SIZE) != 0)
			identity.values[i][0] = '\0';
	return identity;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	for (int i = 0; i < VARIABLES; i++)
		if (strcmp(a->values[i], b->values[i]) != 0)
			return false;
	return true;
}

struct scan {
	const struct wlb_process_list *all;
	const struct wlb_agent_trainers *before;
	struct wlb_agent_trainers found;
	int64_t until_ms;
};

static void add(struct scan *scan, struct wlb_agent_trainer trainer)
{
	trainer.started = wlb_process_started(trainer.pid);
	if (trainer.started != 0 && scan->found.count < WLB_AGENT_TRAINERS_MAX)
		scan->found.list[scan->found.count++] = trainer;
}

/* The rank may be a shell that waits for its program. */
static bool add_rank(struct scan *scan, const struct wlb_agent_task *task, const struct identity *of_task, pid_t pid)
{
	int64_t rank;
	pid_t pids[WLB_STACKS_PROCESSES_MAX] = {pid};
	const struct identity identity = identity_of(pid);
	if (is_same(&identity, of_task) ||
	    wlb_number_parse("RANK", identity.values[0], 0, RANK_MAX - 1, &rank, NULL) != 0)
		return false;
	wlb_process_list_of_rank(scan->all, pid, pids);
	add(scan,
	    (struct wlb_agent_trainer){.rank = (int)rank, .task = task->rank, .pid = pids[0], .is_launched = true});
	return true;
}

/* The environment of a process that has ended cannot be read. */
static void keep_dead(struct scan *scan, const struct wlb_agent_task *task)
{
	for (int i = 0; i < scan->before->count; i++) {
		const struct wlb_agent_trainer *trainer = &scan->before->list[i];
		if (trainer->task == task->rank && trainer->is_launched &&
		    wlb_process_condition(trainer->pid, trainer->started) == WLB_PROCESS_DEAD)
			add(scan, *trainer);
	}
}

/* Returns whether there are ranks below the task. */
static bool find_ranks(struct scan *scan, const struct wlb_agent_task *task)
{
	pid_t below[BELOW_MAX] = {task->pid};
	const struct identity of_task = identity_of(task->pid);
	int count = 1, before = scan->found.count;
	for (int of = 0; of < count && wlb_clock_left_ms(scan->until_ms) > 0; of++)
		for (int i = 0; i < scan->all->count && count < BELOW_MAX; i++)
			if (scan->all->list[i].parent == below[of] &&
			    !add_rank(scan, task, &of_task, scan->all->list[i].pid))
				below[count++] = scan->all->list[i].pid;
	keep_dead(scan, task);
	return scan->found.count > before;
}

/* ---- launchers without a rank ------------------------------------------------------------------------------------ */

/* When the launcher began to have no rank: at its start, unless it had one. */
static int64_t began_to_wait(const struct scan *scan, const struct wlb_agent_trainer *launcher, int64_t now_ms)
{
	for (int i = 0; i < scan->before->count; i++) {
		const struct wlb_agent_trainer *trainer = &scan->before->list[i];
		if (trainer->task == launcher->task && trainer->is_launched)
			return now_ms;
		if (trainer->pid == launcher->pid && trainer->launcher != NULL)
			return trainer->since_ms;
	}
	return now_ms - (int64_t)(1e3 * wlb_process_age_s(wlb_process_started(launcher->pid)));
}

static void add_task(struct scan *scan, const struct wlb_agent_task *task, int64_t now_ms)
{
	pid_t pids[WLB_STACKS_PROCESSES_MAX] = {task->pid};
	struct wlb_agent_trainer trainer = {.rank = task->rank, .task = task->rank};
	if (wlb_clock_left_ms(scan->until_ms) > 0)
		wlb_process_list_of_rank(scan->all, task->pid, pids);
	trainer.pid = pids[0];
	if (wlb_launcher_process(trainer.pid, &trainer.launcher))
		trainer.since_ms = began_to_wait(scan, &trainer, now_ms);
	add(scan, trainer);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static void scan_tasks(struct wlb_agent_trainers *trainers, const struct wlb_agent_tasks *tasks, int64_t now_ms)
{
	struct wlb_process_list all;
	struct scan scan = {.all = &all, .before = trainers, .until_ms = now_ms + SCAN_MAX_MS};
	scan.found.list = calloc(WLB_AGENT_TRAINERS_MAX, sizeof(*scan.found.list));
	if (scan.found.list == NULL || wlb_process_list_read(&all) != 0) {
		free(scan.found.list);
		return;
	}
	for (int i = 0; i < tasks->count; i++)
		if (!tasks->list[i].gone && !find_ranks(&scan, &tasks->list[i]))
			add_task(&scan, &tasks->list[i], now_ms);
	wlb_process_list_free(&all);
	free(trainers->list);
	trainers->list = scan.found.list;
	trainers->count = scan.found.count;
}

/* The child of a shell that has ended, as between two programs of a script: the shell counts until the next scan. */
static void take_task_instead(struct wlb_agent_trainer *trainer, const struct wlb_agent_tasks *tasks)
{
	for (int i = 0; i < tasks->count; i++) {
		if (tasks->list[i].rank != trainer->task || tasks->list[i].gone)
			continue;
		trainer->pid = tasks->list[i].pid;
		trainer->started = wlb_process_started(trainer->pid);
		trainer->condition = wlb_process_condition(trainer->pid, trainer->started);
	}
}

void wlb_agent_trainers_look(struct wlb_agent_trainers *trainers, const struct wlb_agent_tasks *tasks, int64_t now_ms)
{
	if (trainers->first_ms == 0)
		trainers->first_ms = now_ms;
	bool is_settled = now_ms - trainers->first_ms > START_MS;
	if (now_ms >= trainers->scan_ms) {
		scan_tasks(trainers, tasks, now_ms);
		trainers->scan_ms = now_ms + SCAN_MS;
	}
	for (int i = 0; i < trainers->count; i++) {
		struct wlb_agent_trainer *trainer = &trainers->list[i];
		trainer->condition = wlb_process_condition(trainer->pid, trainer->started);
		is_settled = is_settled && trainer->condition != WLB_PROCESS_GONE && trainer->launcher == NULL;
		if (trainer->condition == WLB_PROCESS_GONE && !trainer->is_launched)
			take_task_instead(trainer, tasks);
	}
	if (!is_settled && trainers->scan_ms > now_ms + SCAN_SOON_MS)
		trainers->scan_ms = now_ms + SCAN_SOON_MS;
}

void wlb_agent_trainers_free(struct wlb_agent_trainers *trainers)
{
	free(trainers->list);
	*trainers = (struct wlb_agent_trainers){0};
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static const char *fault_of(const struct wlb_agent_trainer *trainer, int64_t now_ms)
{
	if (trainer->condition == WLB_PROCESS_STOPPED)
		return "stopped";
	if (trainer->condition == WLB_PROCESS_DEAD)
		return "dead";
	if (trainer->condition == WLB_PROCESS_RUNS && trainer->launcher != NULL &&
	    now_ms - trainer->since_ms >= WLB_AGENT_LAUNCHER_WAITS_MS)
		return "waiting";
	return NULL;
}

static json_t *faulty_json(const struct wlb_agent_trainer *trainer, const char *fault, int64_t now_ms)
{
	json_t *entry = json_pack("{s:i, s:i, s:i, s:s}", "rank", trainer->rank, "task", trainer->task, "pid",
	                          (int)trainer->pid, "state", fault);
	if (strcmp(fault, "waiting") != 0)
		return entry;
	json_object_set_new(entry, "launcher", json_string(trainer->launcher));
	json_object_set_new(entry, "for_s", json_integer((now_ms - trainer->since_ms) / 1000));
	json_object_set_new(entry, "nodes", json_integer(wlb_launcher_process_nodes(trainer->pid)));
	return entry;
}

/* Ranks that run, in spans of consecutive numbers. */
struct running {
	int count;
	json_t *spans; /* [first, number] */
	int first, next;
};

static void end_span(struct running *running)
{
	if (running->next > running->first && json_array_size(running->spans) < WLB_AGENT_SPANS_MAX)
		json_array_append_new(running->spans,
		                      json_pack("[i, i]", running->first, running->next - running->first));
	running->first = running->next = 0;
}

static void add_running(struct running *running, const struct wlb_agent_trainer *trainer)
{
	running->count++;
	if (trainer->launcher != NULL)
		return;
	if (trainer->rank != running->next)
		end_span(running);
	if (running->next == running->first)
		running->first = trainer->rank;
	running->next = trainer->rank + 1;
}

json_t *wlb_agent_trainers_report(const struct wlb_agent_trainers *trainers, bool names_running, int64_t now_ms)
{
	json_t *faulty = json_array();
	struct running running = {.spans = json_array()};
	for (int i = 0; i < trainers->count; i++) {
		const struct wlb_agent_trainer *trainer = &trainers->list[i];
		const char *fault = fault_of(trainer, now_ms);
		if (fault == NULL && trainer->condition == WLB_PROCESS_RUNS)
			add_running(&running, trainer);
		if (fault != NULL && json_array_size(faulty) < WLB_AGENT_FAULTY_MAX)
			json_array_append_new(faulty, faulty_json(trainer, fault, now_ms));
	}
	end_span(&running);
	if (!names_running)
		json_array_clear(running.spans);
	json_t *report = NULL;
	if (json_array_size(faulty) + json_array_size(running.spans) > 0)
		report = json_pack("{s:i, s:O}", "running", running.count, "faulty", faulty);
	if (json_array_size(running.spans) > 0)
		json_object_set(report, "ranks", running.spans);
	json_decref(faulty);
	json_decref(running.spans);
	return report;
}
