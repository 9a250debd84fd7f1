/*
 * The load of many runs on one wlbd: each node reports once a second, each run delivers a step once a second, every
 * request with a credential of its own, on connections that stay open.
 *
 *   wlb-load-bench NODES SECONDS
 *
 * NODES: a file with a line "RUN ATTEMPT_ID NODE RANK FIRST_STEP" for each node; RANK is the lowest of the node. The
 * node with rank 0 also delivers its run's records, from step FIRST_STEP on. Reports do not say what ranks do. Prints
 * one line of JSON: how many requests, how many were refused or got no answer, and how long they took.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "tests/bench/coordinator/requests.h"

enum {
	REPORT_THREADS = 8,
	RECORD_THREADS = 4,
	PERIOD_MS = 1000,
	TIMEOUT_MS = 5000,
};

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
	void (*send)(struct requests *requests, struct node *node, int second);
	struct requests requests;
	pthread_t thread;
};

static void send_report(struct requests *requests, struct node *node, int second)
{
	char body[512];
	snprintf(body, sizeof(body),
	         "{\"attempt_id\":\"%s\",\"source\":\"node\",\"node\":\"%s\",\"rank\":%d,\"ranks\":[%d],"
	         "\"step\":%lld,\"lost_ranks\":[],\"goodbye\":false}",
	         node->attempt_id, node->name, node->rank, node->rank, node->first_step + second);
	requests_post(requests, node->connection, node->run, "report", node->name, body, TIMEOUT_MS);
}

static void send_record(struct requests *requests, struct node *node, int second)
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
	requests_post(requests, node->connection, node->run, "records", node->name, body, TIMEOUT_MS);
}

/* The nodes spread over the second. */
static void *run_share(void *context)
{
	struct share *share = context;
	for (int second = 0; second < share->seconds; second++) {
		for (int i = 0; i < share->count; i++) {
			requests_sleep_until_ms(share->begin_ms + second * PERIOD_MS +
			                        (int64_t)i * PERIOD_MS / share->count);
			share->send(&share->requests, &share->nodes[i], second);
		}
	}
	return NULL;
}

/* Begins the threads of one kind over `nodes`. */
static void begin(struct share *shares, int threads, struct node *nodes, int count, int seconds, int64_t begin_ms,
                  void (*send)(struct requests *requests, struct node *node, int second))
{
	for (int i = 0; i < threads; i++) {
		int first = (int)((long)count * i / threads), after = (int)((long)count * (i + 1) / threads);
		shares[i] = (struct share){.nodes = nodes + first,
		                           .count = after - first,
		                           .seconds = seconds,
		                           .begin_ms = begin_ms,
		                           .send = send};
		if (pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) != 0) {
			fputs("wlb-load-bench: out of threads\n", stderr);
			exit(EXIT_FAILURE);
		}
	}
}

static void join_and_print(const char *name, struct share *shares, int threads)
{
	const struct requests *of_threads[REPORT_THREADS];
	for (int i = 0; i < threads; i++) {
		pthread_join(shares[i].thread, NULL);
		of_threads[i] = &shares[i].requests;
	}
	requests_print(name, of_threads, threads);
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
	int seconds = argc == 3 ? atoi(argv[2]) : 0;
	FILE *file = seconds > 0 ? fopen(argv[1], "r") : NULL;
	if (file == NULL || wlb_client_config_load(&config, &error) != 0) {
		fputs("usage: wlb-load-bench NODES SECONDS, with a coordinator configured\n", stderr);
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
	putchar('{');
	join_and_print("reports", reports, REPORT_THREADS);
	putchar(',');
	join_and_print("records", records, RECORD_THREADS);
	printf(",\"seconds\":%.3f}\n", (double)(wlb_clock_ms() - begin_ms) / 1000);
	return 0;
}
