/*
 * wlb-write-shards FOLDER WRITERS BYTES [LIMIT]: writes a checkpoint of BYTES bytes into FOLDER, as ranks of wlb-worker
 * do whose copies are in memory: each of WRITERS processes an equal part, to its own shard. Prints the seconds from its
 * begin until it is durable. With LIMIT a process writes at most that many bytes a second, as one on a node of its own
 * would: the linker's --wrap calls the function below in place of write.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/seconds.h"
#include "tests/unit/data/whole_shard.h"

enum { WRITERS_MOST = 64, COLS = 1024, STEP = 1 };

static double limit_bytes_s; /* 0: none */

struct writers {
	struct wlb_save_place place;
	float *data; /* [rows, COLS] */
	int64_t rows;
	int count;
	int start[2]; /* a pipe: they begin when its end for writing is closed */
	pid_t pids[WRITERS_MOST];
};

ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
	const struct timespec until = wlb_after_s(limit_bytes_s > 0.0 ? (double)bytes / limit_bytes_s : 0.0);
	ssize_t written = __real_write(fd, data, bytes);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return written;
}

/* Fills the data with numbers that no file system can compress. */
static int fill(struct writers *w, int64_t bytes)
{
	uint64_t state = 88172645463325252; /* xorshift64 of Marsaglia (2003) */
	w->rows = bytes / (COLS * (int64_t)sizeof(float));
	int64_t words = w->rows * COLS * (int64_t)sizeof(float) / (int64_t)sizeof(uint64_t);
	uint64_t *data = malloc((size_t)words * sizeof(uint64_t));
	w->data = (float *)data;
	for (int64_t i = 0; data != NULL && i < words; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		data[i] = state;
	}
	return data != NULL ? 0 : -1;
}

static int write_shard(const struct writers *w, int number, struct wlb_error *error)
{
	int64_t begin = w->rows * number / w->count, end = w->rows * (number + 1) / w->count;
	struct wlb_tensor_part part = {
		.name = "weights",
		.dtype = WLB_FLOAT32,
		.block = {2, w->rows, COLS, begin, end - begin, 0, COLS},
		.data_host = w->data + begin * COLS,
	};
	return whole_shard_save(&w->place, STEP, number, &part, 1, error);
}

/* The process of a writer. */
static _Noreturn void run_writer(const struct writers *w, int number)
{
	struct wlb_error error = {0};
	char byte;
	close(w->start[1]);
	int is_started = read(w->start[0], &byte, 1) == 0;
	if (is_started && write_shard(w, number, &error) == 0)
		_exit(0);
	fprintf(stderr, "wlb-write-shards: writer %d: %s\n", number, error.message);
	_exit(1);
}

static int start_writers(struct writers *w)
{
	if (pipe(w->start) < 0)
		return -1;
	for (int i = 0; i < w->count; i++) {
		w->pids[i] = fork();
		if (w->pids[i] == 0)
			run_writer(w, i);
		if (w->pids[i] < 0)
			return -1;
	}
	return 0;
}

static int await_writers(const struct writers *w)
{
	int rc = 0, status;
	for (int i = 0; i < w->count; i++)
		if (waitpid(w->pids[i], &status, 0) < 0 || status != 0)
			rc = -1;
	return rc;
}

/* Lets the writers begin once there is a folder, and commits what they have written. */
static int save(struct writers *w, struct wlb_error *error)
{
	const struct wlb_checkpoint_facts facts = {.step = STEP};
	char path[4096];
	int64_t bytes;
	if (wlb_checkpoint_begin(&w->place, STEP, error) < 0)
		return -1;
	close(w->start[1]);
	if (await_writers(w) < 0)
		return wlb_fail(error, "a writer failed");
	if (wlb_checkpoint_write_packer(&w->place, STEP, "", 0, error) < 0)
		return -1;
	return wlb_checkpoint_commit(&w->place, &facts, w->count, 0, path, &bytes, error);
}

static int fail(const char *why)
{
	fprintf(stderr, "wlb-write-shards: %s\n", why);
	return 1;
}

int main(int argc, char **argv)
{
	static struct writers w;
	struct wlb_error error = {0};
	w.count = argc > 3 ? atoi(argv[2]) : 0;
	if (w.count < 1 || w.count > WRITERS_MOST)
		return fail("usage: wlb-write-shards FOLDER WRITERS BYTES [LIMIT]; WRITERS is 1 to 64");
	w.place = (struct wlb_save_place){.dir = argv[1], .id = "bench", .is_alone = 1};
	limit_bytes_s = argc > 4 ? atof(argv[4]) : 0.0;
	if (fill(&w, atoll(argv[3])) < 0 || start_writers(&w) < 0)
		return fail("no memory or no process for the writers");
	double began_s = wlb_now_s();
	if (save(&w, &error) < 0)
		return fail(error.message);
	printf("%.6f\n", wlb_now_s() - began_s);
	return 0;
}
