/*
 * One call of slurm_api.h from the command line, its result as "name=value" lines: tests/cluster runs it on real
 * clusters of every release.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

static int show_job(char **words, struct wlb_error *error)
{
	struct wlb_slurm_job job;
	int found = wlb_slurm_job(number(words[0]), &job, error);
	printf("found=%d\n", found);
	if (found == 1)
		printf("job_id=%u\nuid=%u\nname=%s\nstate=%s\nrunning=%d\nfinished=%d\nrestart_count=%u\nnodes=%s\n"
		       "batch_host=%s\nrequeue=%d\nsubmit_time=%lld\nclock_ahead_s=%g\n",
		       job.job_id, job.uid, job.name, job.state, job.running, job.finished, job.restart_count,
		       job.nodes, job.batch_host, job.requeue, (long long)job.submit_time, job.clock_ahead_s);
	wlb_slurm_job_free(&job);
	return found < 0 ? -1 : 0;
}

static int show_output(char **words, struct wlb_error *error)
{
	char out[4096], err[4096];
	(void)error;
	wlb_slurm_job_output(number(words[0]), out, err, sizeof(out));
	printf("out=%s\nerror=%s\n", out, err);
	return 0;
}

static int show_nodes(char **words, struct wlb_error *error)
{
	(void)words;
	struct wlb_slurm_node *nodes = NULL;
	int count = 0;
	if (wlb_slurm_nodes(&nodes, &count, error) != 0)
		return -1;
	for (int i = 0; i < count; i++)
		printf("%s=%s port=%u cpus=%u gpus=%u down=%d drained=%d state=%s reason=%s\n", nodes[i].name,
		       nodes[i].address, nodes[i].port, nodes[i].cpus, nodes[i].gpus, nodes[i].down, nodes[i].drained,
		       nodes[i].state, nodes[i].reason);
	free(nodes);
	return 0;
}

static int node_down(char **words, struct wlb_error *error)
{
	return wlb_slurm_node_down(words[0], words[1], error);
}

static int step_kill(char **words, struct wlb_error *error)
{
	return wlb_slurm_step_kill(number(words[0]), number(words[1]), (int)number(words[2]), error);
}

static int job_kill(char **words, struct wlb_error *error)
{
	return wlb_slurm_job_kill(number(words[0]), error);
}

static int requeue(char **words, struct wlb_error *error)
{
	return wlb_slurm_requeue(number(words[0]), error);
}

static int resize(char **words, struct wlb_error *error)
{
	return wlb_slurm_job_resize_pending(number(words[0]), number(words[1]), number(words[2]), error);
}

static int show_user(char **words, struct wlb_error *error)
{
	(void)words;
	(void)error;
	printf("user=%u\n", wlb_slurm_user());
	return 0;
}

static int show_config(char **words, struct wlb_error *error)
{
	char value[4096] = "";
	(void)error;
	printf("known=%d\n", wlb_slurm_config(words[0], value, sizeof(value)));
	printf("value=%s\n", value);
	return 0;
}

static const struct {
	const char *name;
	int words;
	int (*call)(char **words, struct wlb_error *error);
} calls[] = {
	{"job", 1, show_job},   {"output", 1, show_output}, {"nodes", 0, show_nodes}, {"down", 2, node_down},
	{"kill", 3, step_kill}, {"end", 1, job_kill},       {"requeue", 1, requeue},  {"resize", 3, resize},
	{"user", 0, show_user}, {"config", 1, show_config},
};

int main(int argc, char **argv)
{
	struct wlb_error error;
	for (size_t i = 0; argc >= 2 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(argv[1], calls[i].name) != 0 || argc - 2 != calls[i].words)
			continue;
		int result = wlb_slurm_open(&error);
		if (result == 0)
			result = calls[i].call(argv + 2, &error);
		if (result != 0)
			fprintf(stderr, "slurm_probe: %s\n", error.message);
		return result == 0 ? 0 : 1;
	}
	fprintf(stderr, "usage: slurm_probe CALL WORD...; see the table in slurm_probe.c\n");
	return 2;
}
