#include "coordinator/agent/gathering.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <syslog.h>
#include <unistd.h>

#include <jansson.h>

#include "common/child.h"
#include "common/clock.h"
#include "common/process_variable.h"
#include "coordinator/agent/nccl_ras.h"
#include "coordinator/agent/stacks_body.h"
#include "coordinator/agent/stacks_program.h"
#include "coordinator/client/client.h"

enum {
	PROGRAM_MS = 4000,
	SEND_MS = 2000,
	SENDS = 3,
	AGAIN_MS = 500,
	CHILD_MS = 12000,
	RAS_BYTES = 64 * 1024, /* of NCCL's report, and as much of the body */
};

/* ---- in the child ------------------------------------------------------------------------------------------------ */

struct ranks {
	const struct wlb_agent_trainer *of[WLB_STACKS_RANKS];
	pid_t pids[WLB_STACKS_RANKS];
	json_t *printed[WLB_STACKS_RANKS]; /* NULL: wlb-stacks has printed nothing yet */
	int count;
	const struct wlb_node_page *page;
};

/* A launcher may have given a number twice. */
static bool is_listed(const struct ranks *ranks, int rank)
{
	for (int i = 0; i < ranks->count; i++)
		if (ranks->of[i]->rank == rank)
			return true;
	return false;
}

static void list_ranks(const struct wlb_agent_trainers *trainers, struct ranks *ranks)
{
	for (int i = 0; i < trainers->count && ranks->count < WLB_STACKS_RANKS; i++) {
		if (trainers->list[i].condition == WLB_PROCESS_GONE || is_listed(ranks, trainers->list[i].rank))
			continue;
		ranks->of[ranks->count] = &trainers->list[i];
		ranks->pids[ranks->count++] = trainers->list[i].pid;
	}
}

static void take_stacks(int place, const json_t *printed, void *context)
{
	struct ranks *ranks = context;
	if (ranks->printed[place] == NULL)
		ranks->printed[place] = json_incref((json_t *)printed);
}

/* What NCCL says is in the entry of the first rank. */
static json_t *all_entries(const struct ranks *ranks, json_t *ras)
{
	json_t *list = json_array();
	for (int i = 0; i < ranks->count; i++)
		json_array_append_new(list, wlb_stacks_rank(ranks->printed[i], ranks->of[i], ranks->page, ranks->count,
		                                            ras != NULL ? RAS_BYTES : 0));
	if (ras != NULL)
		json_object_set(json_array_get(list, 0), "nccl_ras", ras);
	return list;
}

/* ---- NCCL's RAS service, asked while wlb-stacks runs ------------------------------------------------------------- */

struct ras {
	pthread_t thread;
	pid_t pid; /* of a rank */
	int64_t until_ms;
	size_t length;
	char text[RAS_BYTES];
};

static void *ask_ras(void *argument)
{
	struct ras *ras = argument;
	char address[128];
	int has_address = wlb_process_variable(ras->pid, "NCCL_RAS_ADDR", address, sizeof(address)) == 0;
	ras->length = wlb_nccl_ras_ask(has_address ? address : NULL, ras->until_ms, ras->text, sizeof(ras->text));
	return NULL;
}

/* Whether Slurm gave it GPUs, or its user chose some: without GPUs there is no NCCL. */
static bool has_gpus(pid_t pid)
{
	static const char *const variables[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE",
	                                        "CUDA_VISIBLE_DEVICES"};
	char value[4096];
	bool has = false;
	for (size_t i = 0; !has && i < sizeof(variables) / sizeof(variables[0]); i++)
		has = wlb_process_variable(pid, variables[i], value, sizeof(value)) == 0 && *value != '\0' &&
		      strcmp(value, "NoDevFiles") != 0 && strcmp(value, "-1") != 0;
	return has;
}

/* Returns NULL where it cannot be asked. */
static struct ras *begin_ras(const struct ranks *ranks, int64_t until_ms)
{
	struct ras *ras = ranks->count > 0 && has_gpus(ranks->pids[0]) ? calloc(1, sizeof(*ras)) : NULL;
	if (ras == NULL)
		return NULL;
	ras->pid = ranks->pids[0];
	ras->until_ms = until_ms;
	if (pthread_create(&ras->thread, NULL, ask_ras, ras) == 0)
		return ras;
	free(ras);
	return NULL;
}

/* Returns the lines of its report, NULL where there is none. */
static json_t *end_ras(struct ras *ras)
{
	json_t *lines = NULL;
	if (ras == NULL)
		return NULL;
	pthread_join(ras->thread, NULL);
	if (ras->length > 0)
		lines = wlb_nccl_ras_lines(ras->text, ras->length, RAS_BYTES - 64);
	free(ras);
	return lines;
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

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
		if (wlb_connection_request(connection, "POST", path, body, SEND_MS, &reply, NULL) != 0)
			continue;
		free(reply.body);
		if (reply.status < 500)
			break;
	}
	wlb_connection_free(connection);
}

static void gather(const struct wlb_agent_gathering *gathering, const struct wlb_agent_trainers *trainers)
{
	struct ranks ranks = {.page = gathering->page};
	int64_t until_ms = wlb_clock_ms() + PROGRAM_MS;
	list_ranks(trainers, &ranks);
	struct ras *ras = begin_ras(&ranks, until_ms);
	wlb_stacks_program_run(gathering->program, ranks.pids, ranks.count, until_ms, take_stacks, &ranks);
	json_t *lines = end_ras(ras);
	char *body = wlb_stacks_body(gathering->attempt_id, gathering->node, gathering->newest_id,
	                             all_entries(&ranks, lines));
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

void wlb_agent_gathering_begin(struct wlb_agent_gathering *gathering, const struct wlb_agent_trainers *trainers,
                               int64_t stacks_id)
{
	pid_t agent = getpid();
	if (gathering->program == NULL || gathering->child != 0 || stacks_id <= gathering->newest_id)
		return;
	gathering->newest_id = stacks_id;
	pid_t child = fork();
	if (child == 0) {
		become_child(agent);
		gather(gathering, trainers);
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
	int status;
	if (gathering->child == 0)
		return;
	if (wlb_clock_left_ms(gathering->deadline_ms) == 0)
		kill(gathering->child, SIGKILL);
	if (wlb_child_wait(gathering->child, 0, &status) != 0)
		gathering->child = 0;
}

void wlb_agent_gathering_end(struct wlb_agent_gathering *gathering)
{
	gathering->deadline_ms = 0;
	wlb_agent_gathering_check(gathering);
}
