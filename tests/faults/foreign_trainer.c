/*
 * A training program that knows nothing of WLB: MPI, a collective each step, a checkpoint and a log of its own.
 *
 *   foreign_trainer STEPS STEP-MS SAVE-INTERVAL CHECKPOINT LOG [loop|error RANK STEP]
 *
 * Each step all ranks add up numbers that depend on the step alone, whatever their count, and the sum changes the
 * state, which every later step changes further: the last state tells whether each step entered it exactly once.
 * Rank 0 writes "step state" to the checkpoint and a line "process step state" for each step to the log.
 *
 * RANK goes into an endless loop, or writes an error and ends, at STEP of a training that began without a checkpoint.
 */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 64 };

struct fault {
	const char *what; /* "" for none */
	long rank, step;
};

struct options {
	long steps, step_ms, save_interval;
	const char *checkpoint, *log;
	struct fault fault;
};

struct state {
	uint64_t step, value;
};

static void fail(const char *what, const char *path)
{
	fprintf(stderr, "foreign_trainer: %s %s: %s\n", what, path, strerror(errno));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The finalizer of SplitMix64. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void load(const char *path, struct state *state)
{
	unsigned long long step, value;
	FILE *file = fopen(path, "r");
	*state = (struct state){0, 0};
	if (file == NULL && errno == ENOENT)
		return;
	if (file == NULL || fscanf(file, "%llu %llu", &step, &value) != 2)
		fail("cannot read", path);
	fclose(file);
	*state = (struct state){step, value};
}

static void save(const char *path, const struct state *state)
{
	char temporary[4096];
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	FILE *file = fopen(temporary, "w");
	if (file == NULL ||
	    fprintf(file, "%llu %llu\n", (unsigned long long)state->step, (unsigned long long)state->value) < 0)
		fail("cannot write", temporary);
	if (fflush(file) != 0 || fsync(fileno(file)) != 0 || fclose(file) != 0 || rename(temporary, path) != 0)
		fail("cannot save", path);
}

static void note(FILE *log, const struct state *state)
{
	fprintf(log, "%ld %llu %llu\n", (long)getpid(), (unsigned long long)state->step,
	        (unsigned long long)state->value);
	if (fflush(log) != 0)
		fail("cannot write", "the log");
}

static void train_step(struct state *state, int rank, int size)
{
	uint64_t own = 0, sum = 0, step = state->step + 1;
	for (int item = rank; item < ITEMS; item += size)
		own += mix(step * ITEMS + (uint64_t)item);
	MPI_Allreduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	*state = (struct state){step, mix(state->value ^ sum)};
}

static void endless_loop(void)
{
	for (volatile unsigned turns = 0;; turns++)
		;
}

static void cause_fault(const struct fault *fault, int rank, uint64_t step)
{
	if (rank != fault->rank || step != (uint64_t)fault->step)
		return;
	if (strcmp(fault->what, "loop") == 0)
		endless_loop();
	if (strcmp(fault->what, "error") == 0) {
		fprintf(stderr, "foreign_trainer: planted error of rank %d\n", rank);
		exit(1);
	}
}

static void train(const struct options *o, int rank, int size)
{
	struct state state;
	struct timespec pause = {o->step_ms / 1000, o->step_ms % 1000 * 1000000};
	FILE *log = rank == 0 ? fopen(o->log, "a") : NULL;
	if (rank == 0 && log == NULL)
		fail("cannot open", o->log);
	if (rank == 0)
		load(o->checkpoint, &state);
	MPI_Bcast(&state, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	const uint64_t first = state.step;
	while (state.step < (uint64_t)o->steps) {
		nanosleep(&pause, NULL);
		if (first == 0)
			cause_fault(&o->fault, rank, state.step + 1);
		train_step(&state, rank, size);
		if (rank != 0)
			continue;
		note(log, &state);
		if (state.step % (uint64_t)o->save_interval == 0)
			save(o->checkpoint, &state);
	}
	if (rank == 0)
		fclose(log);
}

int main(int argc, char **argv)
{
	int rank, size;
	if (argc != 6 && argc != 9) {
		fprintf(stderr,
		        "usage: foreign_trainer STEPS STEP-MS SAVE-INTERVAL CHECKPOINT LOG [loop|error RANK STEP]\n");
		return 2;
	}
	struct options options = {atol(argv[1]), atol(argv[2]), atol(argv[3]), argv[4], argv[5], {"", 0, 0}};
	if (argc == 9)
		options.fault = (struct fault){argv[6], atol(argv[7]), atol(argv[8])};
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	train(&options, rank, size);
	MPI_Finalize();
	return 0;
}
