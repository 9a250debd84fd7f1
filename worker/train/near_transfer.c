#include "worker/train/near_transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "common/seconds.h"
#include "worker/checkpoint/near_files.h"
#include "worker/data/file_progress.h"

/* It is on the heap, since a thread that makes no progress keeps using it. */
struct work {
	int rank;
	const char *path;
	const struct wlb_near_transfer *list;
	int count;
	char **data;   /* [count] of the files that this rank sends or receives */
	double *bytes; /* [count], the same on all ranks once it is exchanged */
};

static void format_file(const struct work *w, int i, char file[4096])
{
	snprintf(file, 4096, "%.4000s/%s", w->path, w->list[i].name);
}

/* A wlb_file_function. */
static int read_files(void *context, struct wlb_error *error)
{
	struct work *w = context;
	for (int i = 0; i < w->count; i++) {
		char file[4096];
		size_t bytes;
		format_file(w, i, file);
		if (w->list[i].from != w->rank || (access(file, F_OK) < 0 && errno == ENOENT))
			continue;
		wlb_file_report("reading", file);
		if (wlb_file_read(file, SIZE_MAX / 2, &w->data[i], &bytes, error) < 0)
			return -1;
		w->bytes[i] = (double)bytes;
	}
	return 0;
}

/* A wlb_file_function. */
static int write_files(void *context, struct wlb_error *error)
{
	struct work *w = context;
	for (int i = 0; i < w->count; i++) {
		char file[4096];
		size_t bytes = (size_t)w->bytes[i];
		if (w->list[i].to != w->rank || bytes == 0)
			continue;
		format_file(w, i, file);
		if (wlb_near_make(w->path, error) < 0)
			return -1;
		wlb_file_report("writing", file);
		int rc = strstr(w->list[i].name, ".safetensors") != NULL
		                 ? wlb_near_write_bytes(file, w->data[i], bytes, error)
		                 : wlb_file_write(file, w->data[i], bytes, 0600, error);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int reserve(struct work *w, struct wlb_error *error)
{
	for (int i = 0; i < w->count; i++) {
		if (w->list[i].to != w->rank)
			continue;
		w->data[i] = malloc((size_t)w->bytes[i] + 1);
		if (w->data[i] == NULL)
			return wlb_fail(error, "out of memory for the %.0f bytes of %s", w->bytes[i], w->list[i].name);
	}
	return 0;
}

static int start(struct work *w, struct wlb_messages *messages, struct wlb_error *error)
{
	for (int i = 0; i < w->count; i++) {
		const struct wlb_near_transfer *transfer = &w->list[i];
		size_t bytes = (size_t)w->bytes[i];
		if (transfer->to == w->rank &&
		    wlb_messages_receive(messages, w->data[i], bytes, transfer->from, error) < 0)
			return -1;
		if (transfer->from == w->rank &&
		    wlb_messages_send(messages, w->data[i], bytes, transfer->to, error) < 0)
			return -1;
	}
	return 0;
}

static int await(struct wlb_messages *messages, double limit_s, struct wlb_error *error)
{
	const struct timespec between = {.tv_nsec = 1000000};
	double end_s = wlb_now_s() + limit_s;
	int done = wlb_messages_test(messages, error);
	while (done == 0 && wlb_now_s() < end_s) {
		nanosleep(&between, NULL);
		done = wlb_messages_test(messages, error);
	}
	if (done == 0)
		wlb_fail(error,
		         "files of a near checkpoint have been on the way between nodes for %g s: "
		         "--distributed-timeout-minutes is their limit",
		         limit_s);
	return done > 0 ? 0 : -1;
}

static int run(struct wlb_trainer *t, struct work *w, struct wlb_messages *messages, struct wlb_error *error)
{
	int rc = wlb_work_with_files(&t->files, read_files, w, error);
	if (rc < 0)
		return rc;
	if (wlb_comm_all_reduce_double(t->world, w->bytes, (size_t)w->count, WLB_SUM, error) < 0)
		return WLB_FAILED_HERE;
	rc = wlb_agree(t->world, reserve(w, error), error);
	if (rc < 0)
		return rc;
	if (start(w, messages, error) < 0 || await(messages, t->files.collective_timeout_s, error) < 0)
		return WLB_FAILED_HERE;
	return wlb_work_with_files(&t->files, write_files, w, error);
}

static void free_work(struct work *w)
{
	for (int i = 0; w->data != NULL && i < w->count; i++)
		free(w->data[i]);
	free(w->data);
	free(w->bytes);
	free(w);
}

int wlb_near_transfer(struct wlb_trainer *t, struct wlb_messages *messages, const char *path,
                      const struct wlb_near_transfer *list, int count, struct wlb_error *error)
{
	if (count == 0)
		return 0;
	struct work *w = calloc(1, sizeof(*w));
	if (w != NULL) {
		*w = (struct work){.rank = t->launch->rank, .path = path, .list = list, .count = count};
		w->data = calloc((size_t)count, sizeof(*w->data));
		w->bytes = calloc((size_t)count, sizeof(*w->bytes));
	}
	bool has_memory = w != NULL && w->data != NULL && w->bytes != NULL;
	int rc = wlb_agree(t->world, has_memory ? 0 : wlb_fail(error, "out of memory for %d files", count), error);
	if (rc == 0)
		rc = run(t, w, messages, error);
	if (rc != WLB_FAILED_HERE && w != NULL)
		free_work(w);
	return rc;
}
