#include "coordinator/agent/tasks.h"

#include <stdlib.h>

#include "common/clock.h"
#include "coordinator/agent/process.h"

int wlb_agent_tasks_open(struct wlb_agent_tasks *tasks, int expected, struct wlb_error *error)
{
	*tasks = (struct wlb_agent_tasks){.expected = expected};
	tasks->list = calloc((size_t)expected, sizeof(*tasks->list));
	return tasks->list != NULL ? 0 : wlb_fail(error, "out of memory for %d ranks", expected);
}

void wlb_agent_tasks_close(struct wlb_agent_tasks *tasks)
{
	wlb_peers_close(&tasks->peers);
	free(tasks->list);
	*tasks = (struct wlb_agent_tasks){0};
}

static struct wlb_agent_task *find(struct wlb_agent_tasks *tasks, int rank)
{
	for (int i = 0; i < tasks->count; i++)
		if (tasks->list[i].rank == rank)
			return &tasks->list[i];
	return NULL;
}

static void watch(struct wlb_agent_tasks *tasks)
{
	int *ranks = calloc((size_t)tasks->count, sizeof(*ranks));
	pid_t *pids = calloc((size_t)tasks->count, sizeof(*pids));
	for (int i = 0; ranks != NULL && pids != NULL && i < tasks->count; i++) {
		ranks[i] = tasks->list[i].rank;
		pids[i] = tasks->list[i].pid;
	}
	/* If out of memory, only the plugin reports how ranks end. */
	if (ranks != NULL && pids != NULL)
		wlb_peers_open(&tasks->peers, ranks, pids, tasks->count, NULL);
	free(ranks);
	free(pids);
}

void wlb_agent_tasks_add(struct wlb_agent_tasks *tasks, int rank, pid_t pid)
{
	if (tasks->count == tasks->expected || find(tasks, rank) != NULL)
		return;
	tasks->list[tasks->count++] = (struct wlb_agent_task){.rank = rank, .pid = pid, .code = -1};
	if (wlb_agent_tasks_complete(tasks))
		watch(tasks);
}

bool wlb_agent_tasks_complete(const struct wlb_agent_tasks *tasks)
{
	return tasks->count == tasks->expected;
}

static void note_gone(struct wlb_agent_task *task, double gone_s)
{
	if (task->gone)
		return;
	task->gone = true;
	task->gone_s = gone_s;
	task->gone_ms = wlb_clock_ms();
}

bool wlb_agent_tasks_exited(struct wlb_agent_tasks *tasks, int rank, int code)
{
	struct wlb_agent_task *task = find(tasks, rank);
	if (task == NULL || task->code >= 0)
		return false;
	note_gone(task, wlb_clock_unix_s());
	task->code = code;
	return true;
}

/* Notes that its process is gone. Checked at once: after it is reaped its number may be another process's. */
static void note_process_gone(struct wlb_agent_task *task, double gone_s)
{
	if (task->gone)
		return;
	note_gone(task, gone_s);
	task->code = wlb_process_exit_code(task->pid);
}

static bool is_lost(const struct wlb_agent_task *task, bool silent)
{
	int64_t wait_ms = silent ? WLB_AGENT_SILENCE_MS : WLB_AGENT_EPILOG_MS;
	return task->gone && task->code < 0 && wlb_clock_ms() - task->gone_ms >= wait_ms;
}

bool wlb_agent_tasks_check(struct wlb_agent_tasks *tasks, bool silent)
{
	bool changed = false;
	wlb_peers_check(&tasks->peers);
	for (int i = 0; i < tasks->count; i++) {
		struct wlb_agent_task *task = &tasks->list[i];
		struct wlb_agent_task before = *task;
		if (i < tasks->peers.count && tasks->peers.list[i].lost)
			note_process_gone(task, tasks->peers.list[i].lost_time_s);
		task->lost = task->lost || is_lost(task, silent);
		changed = changed || task->lost != before.lost || task->code != before.code;
	}
	return changed;
}

bool wlb_agent_tasks_undecided(const struct wlb_agent_tasks *tasks)
{
	for (int i = 0; i < tasks->count; i++)
		if (tasks->list[i].gone && tasks->list[i].code < 0 && !tasks->list[i].lost)
			return true;
	return false;
}

bool wlb_agent_tasks_over(const struct wlb_agent_tasks *tasks)
{
	for (int i = 0; i < tasks->count; i++)
		if (tasks->list[i].code < 0 && !tasks->list[i].lost)
			return false;
	return wlb_agent_tasks_complete(tasks);
}
