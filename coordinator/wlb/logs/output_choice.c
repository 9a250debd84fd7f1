#include "coordinator/wlb/logs/output_choice.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/logs/output_path.h"
#include "coordinator/wlb/output/reply_fields.h"

static const char *path_of(const json_t *attempt, const struct wlb_output_asked *asked)
{
	return wlb_field_text(json_object_get(attempt, "output"), asked->is_stderr ? "stderr" : "stdout", "");
}

static int number_of(const json_t *attempt)
{
	return (int)json_integer_value(json_object_get(attempt, "attempt"));
}

/* Returns the attempt that is asked for; NULL with the reason. */
static const json_t *find_attempt(const json_t *run, const struct wlb_output_asked *asked, struct wlb_error *error)
{
	const json_t *attempts = json_object_get(run, "attempts");
	const char *name = wlb_field_text(run, "run_id", "?");
	bool is_there = false;
	for (size_t i = json_array_size(attempts); i > 0; i--) {
		const json_t *attempt = json_array_get(attempts, i - 1);
		bool is_meant = asked->attempt == 0 || number_of(attempt) == asked->attempt;
		is_there = is_there || is_meant;
		if (is_meant && json_is_object(json_object_get(attempt, "output")))
			return attempt;
	}
	if (!is_there && asked->attempt > 0)
		wlb_fail(error, "run %s: has no attempt %d; 'wlb show %s' lists them", name, asked->attempt, name);
	else
		wlb_fail(error,
		         "run %s: the coordinator does not tell where its output is: it tells the run's owner, "
		         "SlurmUser and root, of what wlb run has started, and of the newest 16 attempts",
		         name);
	return NULL;
}

/* The node of the rank, and its place among the attempt's. */
static void find_node(const json_t *attempt, struct wlb_output_facts *facts)
{
	size_t i;
	const json_t *entry;
	json_array_foreach(json_object_get(attempt, "rank_map"), i,
	                   entry) if (json_integer_value(json_object_get(entry, "rank")) == facts->rank) facts->node =
		wlb_field_text(entry, "node", NULL);
	json_array_foreach(json_object_get(attempt, "nodes"), i,
	                   entry) if (facts->node != NULL && strcmp(json_string_value(entry), facts->node) == 0)
		facts->node_number = (int)i;
}

static void find_facts(const json_t *run, const json_t *attempt, int rank, struct wlb_output_facts *facts)
{
	*facts = (struct wlb_output_facts){
		.job_id = json_integer_value(json_object_get(run, "job_id")),
		.alias = wlb_field_text(run, "alias", NULL),
		.step = wlb_field_text(json_object_get(attempt, "output"), "slurm_step", NULL),
		.user = wlb_field_text(run, "user", NULL),
		.job_name = wlb_field_text(run, "job_name", NULL),
		.rank = rank,
	};
	if (rank >= 0)
		find_node(attempt, facts);
}

/* Whether the file that has the rank's lines has those of others too, which nothing tells apart. */
static int check_rank(const json_t *attempt, const char *pattern, const struct wlb_output_asked *asked,
                      struct wlb_output_choice *choice, struct wlb_error *error)
{
	bool is_split = wlb_output_is_of_rank(pattern) || wlb_output_is_of_node(pattern);
	json_int_t world_size = json_integer_value(json_object_get(attempt, "world_size"));
	choice->is_filtered = false;
	if (asked->rank < 0 && is_split)
		return wlb_fail(error,
		                "attempt %d: its output is in a file for each rank or node, %.200s: add --rank=N",
		                choice->attempt, pattern);
	if (asked->rank >= 0 && world_size > 0 && asked->rank >= world_size)
		return wlb_fail(error, "--rank=%d: attempt %d has %lld ranks, which are counted from 0", asked->rank,
		                choice->attempt, (long long)world_size);
	bool is_alone = world_size == 1 || wlb_output_is_of_rank(pattern) ||
	                (wlb_output_is_of_node(pattern) && world_size > 0 &&
	                 (size_t)world_size == json_array_size(json_object_get(attempt, "nodes")));
	if (asked->rank < 0 || is_alone)
		return 0;
	choice->is_filtered = json_is_true(json_object_get(json_object_get(attempt, "output"), "labelled"));
	if (!choice->is_filtered)
		return wlb_fail(error,
		                "attempt %d: the lines of one rank cannot be told, since srun does not label them; add "
		                "--srun-args=--label to wlb run, or --srun-args=--output=FILE-%%t",
		                choice->attempt);
	return 0;
}

/* Where an attempt begins in the file, which may have those of others: -1: not known. */
static int64_t offset_of(const json_t *attempt, const struct wlb_output_asked *asked)
{
	const json_t *offset = json_object_get(json_object_get(attempt, "output"),
	                                       asked->is_stderr ? "stderr_offset" : "stdout_offset");
	return json_is_integer(offset) ? (int64_t)json_integer_value(offset) : -1;
}

/* The bytes of one attempt: up to those of the next one in the same file. */
static int find_range(const json_t *run, const json_t *attempt, const struct wlb_output_asked *asked,
                      struct wlb_output_choice *choice, struct wlb_error *error)
{
	size_t i;
	const json_t *other;
	int64_t begin = offset_of(attempt, asked);
	bool is_shared = false;
	char path[PATH_MAX];
	json_array_foreach(json_object_get(run, "attempts"), i, other)
	{
		struct wlb_output_facts facts;
		find_facts(run, other, asked->rank, &facts);
		if (other == attempt || path_of(other, asked)[0] == '\0' ||
		    wlb_output_path(path_of(other, asked), &facts, path, sizeof(path), NULL) != 0 ||
		    strcmp(path, choice->path) != 0)
			continue;
		int64_t offset = offset_of(other, asked);
		is_shared = true;
		if (number_of(other) > choice->attempt && offset >= 0 && choice->end < 0)
			choice->end = offset;
	}
	if (begin < 0 && is_shared)
		return wlb_fail(
			error,
			"attempt %d: %.200s has several attempts, and where this one begins is not known; without "
			"--attempt all of it is printed",
			choice->attempt, choice->path);
	choice->begin = begin > 0 ? begin : 0;
	if (choice->end >= 0 && choice->end < choice->begin)
		return wlb_fail(error, "attempt %d: %.200s was written over when a later attempt began",
		                choice->attempt, choice->path);
	return 0;
}

int wlb_output_choose(const json_t *run, const struct wlb_output_asked *asked, struct wlb_output_choice *choice,
                      struct wlb_error *error)
{
	struct wlb_output_facts facts;
	*choice = (struct wlb_output_choice){.end = -1};
	const json_t *attempt = find_attempt(run, asked, error);
	if (attempt == NULL)
		return -1;
	choice->attempt = number_of(attempt);
	const char *pattern = path_of(attempt, asked);
	if (pattern[0] == '\0')
		return wlb_fail(error,
		                "attempt %d: its output went to no file that is known, but to a pipe or a terminal",
		                choice->attempt);
	find_facts(run, attempt, asked->rank, &facts);
	if (check_rank(attempt, pattern, asked, choice, error) != 0 ||
	    wlb_output_path(pattern, &facts, choice->path, sizeof(choice->path), error) != 0)
		return -1;
	return asked->attempt > 0 ? find_range(run, attempt, asked, choice, error) : 0;
}
