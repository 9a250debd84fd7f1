/*
 * The load of many runs on one wlbd: each node reports once a second, each run delivers a step once a second, every
 * request with a credential of its own, on connections that stay open.
 *
 *   wlb-load-bench NODES SECONDS RANKS
 *
 * NODES: a file with a line "RUN ATTEMPT_ID NODE RANK FIRST_STEP" for each node; RANK is the lowest of the node. The
 * node with rank 0 also delivers its run's records, from step FIRST_STEP on. Each report says what RANKS ranks of the
 * node do; 0: it says that of none. Prints one line of JSON: how many requests, how many were refused or got no answer,
 * and how long they took.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "coordinator/client/client.h"

enum {
	REPORT_THREADS = 8,
	RECORD_THREADS = 4,
	PERIOD_MS = 1000,
	TIMEOUT_MS = 5000,
	RANKS_MOST = 64,
	RANK_BYTES = 512, /* of a report, for the activity of a rank */
};

static int ranks_of_node; /* whose activities are reported */

struct node {
	char run[32];
	char attempt_id[40];
	char name[64];
	int rank;
	long long first_step;
	struct wlb_connection *connection;
};

/* What the threads of one kind do, and what came of it; each thread has its own. */
struct share {
	struct node *nodes;
	int count;
	int seconds;
	int64_t begin_ms;
	int (*send)(struct node *node, int second);
	double *took_ms; /* of each request */
	long requests;
	long refused;
	pthread_t thread;
};

static int post(struct node *node, const char *what, const char *body)
{
	char path[96];
	struct wlb_reply reply;
	struct wlb_error error;
	snprintf(path, sizeof(path), "/v1/runs/%s/%s", node->run, what);
	if (wlb_connection_call(node->connection, "POST", path, body, TIMEOUT_MS, &reply, &error) != 0) {
		fprintf(stderr, "%s of %s: %s\n", what, node->name, error.message);
		return -1;
	}
	if (reply.status != 200)
		fprintf(stderr, "%s of %s: %d %s\n", what, node->name, reply.status, reply.body);
	free(reply.body);
	return reply.status == 200 ? 0 : -1;
}

/* What the ranks do: every other one waits in a call, and each has the groups of a run that uses all parallelisms.
 * Returns the number of bytes. */
static int write_activities(const struct node *node, int second, char *text, size_t size)
{
	int used = snprintf(text, size, ",\"activities\":[");
	long long seq = 1000LL * second;
	for (int i = 0; i < ranks_of_node; i++) {
		used += snprintf(text + used, size - (size_t)used,
		                 "%s{\"rank\":%d,\"step\":%lld,\"activity\":\"computing\",\"for_s\":0.412,"
		                 "\"process\":\"running\"",
		                 i > 0 ? "," : "", node->rank + i, node->first_step + second);
		if (i % 2 == 1)
			used += snprintf(text + used, size - (size_t)used,
			                 ",\"call\":{\"kind\":\"all_gather\",\"group\":0,\"seq\":%lld,"
			                 "\"bytes\":65536,\"for_s\":0.2}",
			                 seq + 12);
		used += snprintf(text + used, size - (size_t)used,
		                 ",\"groups\":[[\"world\",16384,%d,%d],[\"tp\",8,%lld,%lld],[\"cp\",2,%lld,%lld],"
		                 "[\"data\",128,%d,%d],[\"pp.0-1\",2,%lld,%lld],[\"pp_back.1-0\",2,%lld,%lld]]}",
		                 second, second, seq + 12, seq + 11, seq, seq, second, second, seq, seq, seq, seq);
	}
	return used + snprintf(text + used, size - (size_t)used, "]");
}

static int send_report(struct node *node, int second)
{
	char body[512 + RANKS_MOST * RANK_BYTES];
	int used = snprintf(body, sizeof(body),
	                    "{\"attempt_id\":\"%s\",\"source\":\"node\",\"node\":\"%s\",\"rank\":%d,\"ranks\":[%d],"
	                    "\"step\":%lld,\"lost_ranks\":[],\"goodbye\":false",
	                    node->attempt_id, node->name, node->rank, node->rank, node->first_step + second);
	if (ranks_of_node > 0)
		used += write_activities(node, second, body + used, sizeof(body) - (size_t)used);
	snprintf(body + used, sizeof(body) - (size_t)used, "}");
	return post(node, "report", body);
}

static int send_record(struct node *node, int second)
{
	char body[1024];
	snprintf(body, sizeof(body),
	         "{\"attempt_id\":\"%s\",\"source\":\"rank0\",\"first_seq\":%d,\"records\":[{\"seq\":%d,\"time\":%.3f,"
	         "\"type\":\"step\",\"data\":{\"step\":%lld,\"loss\":2.5,\"grad_norm\":0.8,\"lr\":0.001,"
	         "\"tokens\":4194304,\"documents\":900,\"step_time_s\":0.98,\"tokens_per_s\":4279902,"
	         "\"held_tokens\":0,\"predicted_imbalance\":1.01,\"imbalance\":1.03,\"parts\":{\"forward_s\":0.3,"
	         "\"backward_s\":0.6,\"tp_s\":0.02,\"cp_s\":0.01,\"pp_s\":0.01,\"bubble_s\":0.02,\"dp_s\":0.01,"
	         "\"optimizer_s\":0.01,\"loader_s\":0,\"world_s\":0}}}]}",
	         node->attempt_id, second + 1, second + 1, wlb_clock_unix_s(), node->first_step + second);
	return post(node, "records", body);
}

static void sleep_until(int64_t when_ms)
{
	int64_t left_ms = when_ms - wlb_clock_ms();
	struct timespec wait = {left_ms / 1000, left_ms % 1000 * 1000000};
	if (left_ms > 0)
		nanosleep(&wait, NULL);
}

/* The nodes spread over the second. */
static void *run_share(void *context)
{
	struct share *share = context;
	for (int second = 0; second < share->seconds; second++) {
		for (int i = 0; i < share->count; i++) {
			sleep_until(share->begin_ms + second * PERIOD_MS + (int64_t)i * PERIOD_MS / share->count);
			struct timespec began, ended;
			clock_gettime(CLOCK_MONOTONIC, &began);
			share->refused += share->send(&share->nodes[i], second) != 0;
			clock_gettime(CLOCK_MONOTONIC, &ended);
			share->took_ms[share->requests++] = (double)(ended.tv_sec - began.tv_sec) * 1e3 +
			                                    (double)(ended.tv_nsec - began.tv_nsec) / 1e6;
		}
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_kind(const char *name, const struct share *shares, int count)
{
	long requests = 0, refused = 0;
	for (int i = 0; i < count; i++) {
		requests += shares[i].requests;
		refused += shares[i].refused;
	}
	double *all = calloc((size_t)requests + 1, sizeof(*all));
	long at = 0;
	for (int i = 0; all != NULL && i < count; i++) {
		memcpy(all + at, shares[i].took_ms, (size_t)shares[i].requests * sizeof(*all));
		at += shares[i].requests;
	}
	if (all == NULL)
		exit(EXIT_FAILURE);
	qsort(all, (size_t)requests, sizeof(*all), by_value);
	printf("\"%s\":{\"requests\":%ld,\"refused\":%ld,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}", name,
	       requests, refused, all[requests / 2], all[requests * 99 / 100], requests > 0 ? all[requests - 1] : 0);
	free(all);
}

/* Begins the threads of one kind over `nodes`. */
static void begin(struct share *shares, int threads, struct node *nodes, int count, int seconds, int64_t begin_ms,
                  int (*send)(struct node *node, int second))
{
	for (int i = 0; i < threads; i++) {
		int first = (int)((long)count * i / threads), after = (int)((long)count * (i + 1) / threads);
		shares[i] = (struct share){.nodes = nodes + first,
		                           .count = after - first,
		                           .seconds = seconds,
		                           .begin_ms = begin_ms,
		                           .send = send};
		shares[i].took_ms = calloc((size_t)(after - first) * (size_t)seconds + 1, sizeof(double));
		if (shares[i].took_ms == NULL || pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) != 0) {
			fputs("wlb-load-bench: out of memory or threads\n", stderr);
			exit(EXIT_FAILURE);
		}
	}
}

static void join(struct share *shares, int threads)
{
	for (int i = 0; i < threads; i++)
		pthread_join(shares[i].thread, NULL);
}

/* Reads the nodes, each with a connection; the same again for those that deliver. Returns how many, -1 for a bad file.
 */
static int read_nodes(FILE *file, const struct wlb_client_config *config, struct node *nodes, struct node *writers,
                      int most, int *writer_count)
{
	int count = 0;
	*writer_count = 0;
	for (; count < most; count++) {
		struct node *node = &nodes[count];
		if (fscanf(file, "%31s %39s %63s %d %lld", node->run, node->attempt_id, node->name, &node->rank,
		           &node->first_step) != 5)
			break;
		if (node->rank == 0) {
			writers[*writer_count] = *node;
			writers[(*writer_count)++].connection = wlb_connection_new(config);
		}
		node->connection = wlb_connection_new(config);
	}
	return feof(file) && count > 0 ? count : -1;
}

int main(int argc, char **argv)
{
	static struct node nodes[8192], writers[8192];
	static struct share reports[REPORT_THREADS], records[RECORD_THREADS];
	struct wlb_client_config config;
	struct wlb_error error;
	int writer_count;
	int seconds = argc == 4 ? atoi(argv[2]) : 0;
	ranks_of_node = argc == 4 ? atoi(argv[3]) : 0;
	FILE *file = seconds > 0 && ranks_of_node <= RANKS_MOST ? fopen(argv[1], "r") : NULL;
	if (file == NULL || wlb_client_config_load(&config, &error) != 0) {
		fputs("usage: wlb-load-bench NODES SECONDS RANKS, with a coordinator configured; RANKS is 64 at most\n",
		      stderr);
		return 2;
	}
	int count = read_nodes(file, &config, nodes, writers, 8192, &writer_count);
	fclose(file);
	if (count < 0) {
		fprintf(stderr,
		        "wlb-load-bench: %s: lines must be RUN ATTEMPT_ID NODE RANK FIRST_STEP, at most 8,191\n",
		        argv[1]);
		return 2;
	}
	int64_t begin_ms = wlb_clock_ms() + 100;
	begin(reports, REPORT_THREADS, nodes, count, seconds, begin_ms, send_report);
	begin(records, RECORD_THREADS, writers, writer_count, seconds, begin_ms, send_record);
	join(reports, REPORT_THREADS);
	join(records, RECORD_THREADS);
	printf("{\"seconds\":%.3f,", (double)(wlb_clock_ms() - begin_ms) / 1000);
	print_kind("reports", reports, REPORT_THREADS);
	putchar(',');
	print_kind("records", records, RECORD_THREADS);
	puts("}");
	return 0;
}
