#include "coordinator/agent/gathering.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <jansson.h>

#include "common/clock.h"
#include "coordinator/agent/stacks_body.h"
#include "coordinator/agent/stacks_program.h"
#include "coordinator/client/client.h"

enum {
	PROGRAM_MS = 4000,
	SEND_MS = 2000,
	SENDS = 3,
	AGAIN_MS = 500,
	CHILD_MS = 12000,
};

/* ---- in the child ------------------------------------------------------------------------------------------------ */

struct ranks {
	const struct wlb_agent_task *of[WLB_STACKS_RANKS];
	pid_t pids[WLB_STACKS_RANKS];
	json_t *entries[WLB_STACKS_RANKS]; /* NULL: wlb-stacks has printed nothing yet */
	int count;
	const struct wlb_node_page *page;
};

static void list_ranks(const struct wlb_agent_tasks *tasks, struct ranks *ranks)
{
	for (int i = 0; i < tasks->count && ranks->count < WLB_STACKS_RANKS; i++) {
		if (tasks->list[i].gone)
			continue;
		ranks->of[ranks->count] = &tasks->list[i];
		ranks->pids[ranks->count++] = tasks->list[i].pid;
	}
}

static void take_stacks(int place, const json_t *printed, void *context)
{
	struct ranks *ranks = context;
	if (ranks->entries[place] == NULL)
		ranks->entries[place] = wlb_stacks_rank(printed, ranks->of[place], ranks->page, ranks->count);
}

static json_t *all_entries(struct ranks *ranks)
{
	json_t *list = json_array();
	for (int i = 0; i < ranks->count; i++) {
		if (ranks->entries[i] == NULL)
			ranks->entries[i] = wlb_stacks_rank(NULL, ranks->of[i], ranks->page, ranks->count);
		json_array_append_new(list, ranks->entries[i]);
	}
	return list;
}

/* The coordinator keeps the stacks of a node once, however often it gets them. */
static void send_body(const struct wlb_agent_gathering *gathering, const char *body)
{
	char path[128];
	struct wlb_connection *connection = wlb_connection_new(gathering->config);
	snprintf(path, sizeof(path), "/v1/runs/%s/stacks", gathering->run_id);
	for (int i = 0; connection != NULL && i < SENDS; i++) {
		struct wlb_reply reply;
		if (i > 0)
			wlb_clock_sleep_ms(AGAIN_MS);
		if (wlb_connection_call(connection, "POST", path, body, SEND_MS, &reply, NULL) != 0)
			continue;
		free(reply.body);
		if (reply.status < 500)
			break;
	}
	wlb_connection_free(connection);
}

static void gather(const struct wlb_agent_gathering *gathering, const struct wlb_agent_tasks *tasks)
{
	struct ranks ranks = {.page = gathering->page};
	int64_t until_ms = wlb_clock_ms() + PROGRAM_MS;
	list_ranks(tasks, &ranks);
	wlb_stacks_program_run(gathering->program, ranks.pids, ranks.count, until_ms, take_stacks, &ranks);
	char *body = wlb_stacks_body(gathering->attempt_id, gathering->node, gathering->newest_id, all_entries(&ranks));
	if (body != NULL)
		send_body(gathering, body);
	free(body);
}

/* Of the agent's descriptors the child keeps none: the coordinator and the plugin know by them that the agent is there.
 */
static void become_child(pid_t agent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	closelog();
	int null = open("/dev/null", O_RDWR);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	closefrom(STDERR_FILENO + 1);
}

/* ---- in the agent ------------------------------------------------------------------------------------------------ */

int64_t wlb_agent_wanted_stacks(const struct wlb_reply *reply)
{
	const char *want = "";
	json_int_t stacks_id = 0;
	json_t *root = json_loadb(reply->body, reply->length, 0, NULL);
	json_unpack(root, "{s:s, s:I}", "want", &want, "stacks_id", &stacks_id);
	int64_t wanted = strcmp(want, "stacks") == 0 && stacks_id > 0 ? stacks_id : 0;
	json_decref(root);
	return wanted;
}

void wlb_agent_gathering_begin(struct wlb_agent_gathering *gathering, const struct wlb_agent_tasks *tasks,
                               int64_t stacks_id)
{
	pid_t agent = getpid();
	if (gathering->program == NULL || gathering->child != 0 || stacks_id <= gathering->newest_id)
		return;
	gathering->newest_id = stacks_id;
	pid_t child = fork();
	if (child == 0) {
		become_child(agent);
		gather(gathering, tasks);
		_exit(0);
	}
	if (child < 0) {
		syslog(LOG_WARNING, "run %s on %s: no stacks: fork: %m", gathering->run_id, gathering->node);
		return;
	}
	gathering->child = child;
	gathering->deadline_ms = wlb_clock_ms() + CHILD_MS;
}

void wlb_agent_gathering_check(struct wlb_agent_gathering *gathering)
{
	if (gathering->child == 0)
		return;
	if (wlb_clock_left_ms(gathering->deadline_ms) == 0)
		kill(gathering->child, SIGKILL);
	if (waitpid(gathering->child, NULL, WNOHANG) != 0)
		gathering->child = 0;
}

void wlb_agent_gathering_end(struct wlb_agent_gathering *gathering)
{
	gathering->deadline_ms = 0;
	wlb_agent_gathering_check(gathering);
}
