/*
 * The agents of one training run, in real time: each reports once a second, with the code of wlb-agent, what its ranks
 * do, over a connection of its own and with a credential for each report; rank 0 delivers each step. Faults are planted
 * in steps.
 *
 *   wlb-training-load RUN ATTEMPT_ID TP,CP,PP,DP RANKS_PER_NODE STEP_S STEPS [KIND:RANK:STEP:SECONDS]...
 *
 * A step takes about STEP_S seconds. KIND is `hang`: the rank computes SECONDS longer in the middle of the step, or
 * `stop`: and its process is stopped by a signal for so long. Nodes are named node1, node2, ... Prints lines of JSON:
 * when each fault begins and ends, by the wall clock, and how long requests took.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/seconds.h"
#include "coordinator/agent/report.h"
#include "coordinator/client/backoff.h"
#include "tests/bench/coordinator/ranks.h"
#include "tests/bench/coordinator/requests.h"
#include "tests/bench/coordinator/stand_in.h"

enum {
	THREADS_MOST = 256,
	FAULTS_MOST = 16,
	PERIOD_MS = 1000,
	REPORT_MS = 2000, /* as wlb-agent */
	RECORD_MS = 5000,
	RECORDS_MOST = 64, /* of a delivery */
	RECORD_BYTES = 512,
};

struct planted_fault {
	bool is_stop;
	int32_t rank;
	int64_t step;
	double seconds;
	pid_t process; /* that stands in for the rank's */
};

struct agent {
	char name[32];
	struct wlb_connection *connection;
	struct wlb_agent_tasks tasks;
	struct wlb_agent_steps steps;
	struct wlb_agent_calls calls;
	struct wlb_backoff backoff;
	int next_area;
};

struct load {
	const char *run, *attempt_id;
	struct wlb_client_config config;
	struct ranks ranks;
	struct planted_fault faults[FAULTS_MOST];
	int fault_count;
	int64_t steps;         /* to train */
	struct agent *agents;  /* [nodes] */
	pthread_rwlock_t lock; /* agents read what is shown of the ranks */
	_Atomic bool is_over;
	_Atomic int64_t ended; /* steps */
	double *step_time_s;   /* [steps] of those that have ended */
};

/* What one thread does: the agents of some nodes. */
struct share {
	struct load *load;
	int32_t first, after;
	int64_t begins_ms;
	struct requests requests;
	pthread_t thread;
};

/* ---- reports ----------------------------------------------------------------------------------------------------- */

/* The caller frees it. */
static char *make_body(struct load *load, int32_t node)
{
	static const struct wlb_agent_trainers trainers = {0}; /* all run */
	struct agent *agent = &load->agents[node];
	struct wlb_agent_report report = {.attempt_id = load->attempt_id,
	                                  .node = agent->name,
	                                  .page = load->ranks.page[node],
	                                  .next_area = &agent->next_area,
	                                  .steps = &agent->steps,
	                                  .calls = &agent->calls,
	                                  .trainers = &trainers};
	pthread_rwlock_rdlock(&load->lock);
	ranks_advance(&load->ranks, node);
	char *body = wlb_agent_report_body(&report, &agent->tasks);
	pthread_rwlock_unlock(&load->lock);
	return body;
}

static void report(struct share *share, int32_t node)
{
	struct load *load = share->load;
	struct agent *agent = &load->agents[node];
	if (wlb_clock_ms() < agent->backoff.until_ms)
		return;
	char *body = make_body(load, node);
	if (body == NULL)
		return;
	int rc = requests_post(&share->requests, agent->connection, load->run, "report", agent->name, body, REPORT_MS);
	free(body);
	wlb_backoff_note(&agent->backoff, rc != 0);
	if (rc == 0)
		wlb_agent_steps_accepted(&agent->steps);
}

static void *run_share(void *context)
{
	struct share *share = context;
	int32_t count = share->after - share->first;
	for (int64_t turn = 0; !share->load->is_over; turn++) {
		requests_sleep_until_ms(share->begins_ms + turn * PERIOD_MS / count);
		report(share, share->first + (int32_t)(turn % count));
	}
	return NULL;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* The records of the steps from `first` (0 is the first) to before `after`; the caller frees them. */
static char *make_records(const struct load *load, int64_t first, int64_t after)
{
	size_t size = (size_t)(after - first + 1) * RECORD_BYTES, length;
	char *body = must_allocate(size, 1);
	length = (size_t)snprintf(body, size,
	                          "{\"attempt_id\":\"%s\",\"source\":\"rank0\",\"first_seq\":%lld,\"records\":[",
	                          load->attempt_id, (long long)first + 1);
	for (int64_t step = first; step < after; step++)
		length += (size_t)snprintf(
			body + length, size - length,
			"%s{\"seq\":%lld,\"time\":%.3f,\"type\":\"step\",\"data\":{\"step\":%lld,\"loss\":2.5,"
			"\"grad_norm\":0.8,\"lr\":0.001,\"tokens\":67108864,\"documents\":20000,\"step_time_s\":%.3f,"
			"\"tokens_per_s\":%.0f,\"held_tokens\":0,\"predicted_imbalance\":1.01,\"imbalance\":1.03,"
			"\"parts\":{\"forward_s\":2.1,\"backward_s\":4.2,\"bubble_s\":0.9}}}",
			step > first ? "," : "", (long long)step + 1, wlb_clock_unix_s(), (long long)step + 1,
			load->step_time_s[step], 67108864 / load->step_time_s[step]);
	snprintf(body + length, size - length, "]}");
	return body;
}

struct recorder {
	struct load *load;
	struct requests requests;
	pthread_t thread;
};

static void *deliver(void *context)
{
	struct recorder *recorder = context;
	struct load *load = recorder->load;
	struct wlb_connection *connection = wlb_connection_new(&load->config);
	int64_t delivered = 0;
	while (!load->is_over) {
		int64_t after = load->ended;
		wlb_clock_sleep_ms(200);
		if (after > delivered + RECORDS_MOST)
			after = delivered + RECORDS_MOST;
		if (after == delivered)
			continue;
		char *body = make_records(load, delivered, after);
		if (requests_post(&recorder->requests, connection, load->run, "records", "rank 0", body, RECORD_MS) ==
		    0)
			delivered = after;
		else
			wlb_clock_sleep_ms(PERIOD_MS);
		free(body);
	}
	wlb_connection_free(connection);
	return NULL;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void sleep_until_s(const struct load *load, double at_s)
{
	requests_sleep_until_ms((int64_t)(1e3 * (load->ranks.begins_s + at_s)));
}

static const struct planted_fault *fault_of(const struct load *load, int64_t step)
{
	for (int i = 0; i < load->fault_count; i++)
		if (load->faults[i].step == step)
			return &load->faults[i];
	return NULL;
}

static void plan(struct load *load, int64_t step)
{
	const struct planted_fault *fault = fault_of(load, step);
	struct pause pause = {.rank = -1};
	if (fault != NULL)
		pause = (struct pause){.rank = fault->rank, .seconds = fault->seconds};
	ranks_plan(&load->ranks, pause);
}

static void show(struct load *load)
{
	pthread_rwlock_wrlock(&load->lock);
	ranks_show(&load->ranks);
	pthread_rwlock_unlock(&load->lock);
}

static void end_step(struct load *load)
{
	int64_t step = load->ranks.step;
	pthread_rwlock_wrlock(&load->lock);
	ranks_end_step(&load->ranks);
	pthread_rwlock_unlock(&load->lock);
	load->step_time_s[step - 1] = load->ranks.shown.ends_s - load->ranks.shown.begins_s;
	load->ended = step;
}

static void tell(const char *event, const struct load *load, const struct planted_fault *fault)
{
	printf("{\"event\":\"%s\",\"kind\":\"%s\",\"rank\":%d,\"step\":%lld,\"at\":%.3f}\n", event,
	       fault->is_stop ? "stop" : "hang", fault->rank, (long long)load->ranks.step, wlb_clock_unix_s());
	fflush(stdout);
}

/* The step that is shown has this fault. */
static void cause(const struct load *load, const struct planted_fault *fault)
{
	const struct pause *pause = &load->ranks.shown.pause;
	sleep_until_s(load, pause->began_s);
	if (fault->is_stop)
		kill(fault->process, SIGSTOP);
	tell("fault", load, fault);
	sleep_until_s(load, pause->ends_s);
	if (fault->is_stop)
		kill(fault->process, SIGCONT);
	tell("fault_over", load, fault);
}

/* The first step is shown. */
static void train(struct load *load)
{
	for (int64_t step = 1; step <= load->steps; step++) {
		const struct planted_fault *fault = fault_of(load, step);
		if (step < load->steps)
			plan(load, step + 1);
		if (fault != NULL)
			cause(load, fault);
		sleep_until_s(load, load->ranks.shown.ends_s);
		end_step(load);
		if (step < load->steps)
			show(load);
	}
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

/* `process` stands in for the processes of its ranks. */
static void open_agent(struct load *load, int32_t node, pid_t process)
{
	struct agent *agent = &load->agents[node];
	int ranks = load->ranks.cluster.layout.ranks_per_node;
	struct wlb_error error;
	snprintf(agent->name, sizeof(agent->name), "node%d", node + 1);
	agent->connection = wlb_connection_new(&load->config);
	if (agent->connection == NULL || wlb_agent_tasks_open(&agent->tasks, ranks, &error) != 0) {
		fputs("wlb-training-load: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	for (int i = 0; i < ranks; i++)
		agent->tasks.list[agent->tasks.count++] =
			(struct wlb_agent_task){.rank = node * ranks + i, .pid = process, .code = -1};
}

static void open_agents(struct load *load)
{
	int32_t nodes = load->ranks.cluster.world->nodes;
	int ranks = load->ranks.cluster.layout.ranks_per_node;
	pid_t process = stand_in_start();
	load->agents = must_allocate((size_t)nodes, sizeof(*load->agents));
	for (int32_t node = 0; node < nodes; node++)
		open_agent(load, node, process);
	for (int i = 0; i < load->fault_count; i++) {
		struct planted_fault *fault = &load->faults[i];
		if (!fault->is_stop)
			continue;
		fault->process = stand_in_start();
		load->agents[fault->rank / ranks].tasks.list[fault->rank % ranks].pid = fault->process;
	}
}

static void start(pthread_t *thread, void *(*run)(void *context), void *context)
{
	if (pthread_create(thread, NULL, run, context) == 0)
		return;
	fputs("wlb-training-load: out of threads\n", stderr);
	exit(EXIT_FAILURE);
}

/* The nodes spread over the second. Returns the number of threads. */
static int start_agents(struct load *load, struct share *shares)
{
	int32_t nodes = load->ranks.cluster.world->nodes;
	int threads = nodes < THREADS_MOST ? nodes : THREADS_MOST;
	int64_t begins_ms = wlb_clock_ms();
	for (int i = 0; i < threads; i++) {
		shares[i] = (struct share){.load = load,
		                           .first = nodes * i / threads,
		                           .after = nodes * (i + 1) / threads,
		                           .begins_ms = begins_ms + i * PERIOD_MS / nodes};
		start(&shares[i].thread, run_share, &shares[i]);
	}
	return threads;
}

static void run(struct load *load)
{
	static struct share shares[THREADS_MOST];
	static struct recorder recorder;
	const struct requests *of_threads[THREADS_MOST], *records = &recorder.requests;
	recorder.load = load;
	open_agents(load);
	plan(load, 1);
	load->ranks.begins_s = wlb_now_s();
	show(load);
	int threads = start_agents(load, shares);
	start(&recorder.thread, deliver, &recorder);
	train(load);
	load->is_over = true;
	for (int i = 0; i < threads; i++) {
		pthread_join(shares[i].thread, NULL);
		of_threads[i] = &shares[i].requests;
	}
	pthread_join(recorder.thread, NULL);
	printf("{\"event\":\"end\",\"seconds\":%.3f,", wlb_now_s() - load->ranks.begins_s);
	requests_print("reports", of_threads, threads);
	putchar(',');
	requests_print("records", &records, 1);
	puts("}");
}

static int read_fault(const char *text, struct load *load)
{
	char kind[8];
	long long step;
	struct planted_fault *fault = &load->faults[load->fault_count];
	if (load->fault_count == FAULTS_MOST ||
	    sscanf(text, "%7[a-z]:%d:%lld:%lf", kind, &fault->rank, &step, &fault->seconds) != 4 ||
	    (strcmp(kind, "hang") != 0 && strcmp(kind, "stop") != 0) || fault->rank < 0 ||
	    fault->rank >= load->ranks.cluster.world->ranks)
		return -1;
	fault->is_stop = strcmp(kind, "stop") == 0;
	fault->step = step;
	load->fault_count++;
	return 0;
}

/* Returns -1 for arguments that are none. */
static int read_arguments(int argc, char **argv, struct load *load)
{
	struct wlb_verdict_layout layout = {0};
	if (argc < 7 || sscanf(argv[3], "%d,%d,%d,%d", &layout.tp, &layout.cp, &layout.pp, &layout.dp) != 4)
		return -1;
	double step_s = atof(argv[5]);
	layout.ranks_per_node = atoi(argv[4]);
	load->run = argv[1];
	load->attempt_id = argv[2];
	load->steps = atoi(argv[6]);
	if (layout.ranks_per_node < 1 || layout.pp > MOST_STAGES || !(step_s > 0.0) || load->steps < 1)
		return -1;
	ranks_open(&load->ranks, &layout, step_s, load->attempt_id);
	load->step_time_s = must_allocate((size_t)load->steps, sizeof(*load->step_time_s));
	for (int i = 7; i < argc; i++)
		if (read_fault(argv[i], load) != 0)
			return -1;
	return load->ranks.cluster.world->ranks % layout.ranks_per_node == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct load load;
	pthread_rwlockattr_t attributes;
	struct wlb_error error;
	if (read_arguments(argc, argv, &load) != 0) {
		fputs("usage: wlb-training-load RUN ATTEMPT_ID TP,CP,PP,DP RANKS_PER_NODE STEP_S STEPS "
		      "[hang|stop:RANK:STEP:SECONDS]...\n",
		      stderr);
		return 2;
	}
	if (wlb_client_config_load(&load.config, &error) != 0) {
		fprintf(stderr, "wlb-training-load: %s\n", error.message);
		return 2;
	}
	/* The end of a step does not wait until no agent reads. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&load.lock, &attributes);
	run(&load);
	return 0;
}
