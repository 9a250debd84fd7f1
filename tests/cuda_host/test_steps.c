/*
 * wlb-worker train, with what it asks CUDA for counted: from the first step on the host waits once for each step that
 * it reads, for the bounded queue depth, and never else; neither device memory nor pinned host memory is allocated; and
 * from the sixth step on no event or stream is made. Takes the same arguments.
 */
#include <stdio.h>

#include "tests/cuda_host/count.h"
#include "worker/train/train.h"
#include "worker/train/trainer.h"

/* The queue has two steps at most, and the first one awaits no weights: when the third has been read, there are as many
 * events as two steps need. */
enum { FIRST_STEPS = 5, LEAST_STEPS = 8 };

static struct cuda_host_counts before, settled;
static int64_t waits_before;
static int steps, steps_read, wrong;

static void check(const char *where, const char *what, long found, long expected)
{
	if (found == expected)
		return;
	wrong = 1;
	fprintf(stderr, "test_steps: %s %d: %ld %s, expected %ld\n", where, steps, found, what, expected);
}

int __real_wlb_trainer_step(struct wlb_trainer *trainer, struct wlb_error *error);
int __real_wlb_trainer_read_step(struct wlb_trainer *trainer, struct wlb_step_facts *facts, struct wlb_error *error);

static void check_counts(const struct wlb_trainer *trainer, const char *where)
{
	struct cuda_host_counts now = cuda_host_get_counts();
	check(where, "waits for CUDA", now.waits - before.waits, steps_read);
	check(where, "waits for the device", (long)(trainer->device->host_waits - waits_before), steps_read);
	check(where, "allocations of device or pinned memory", now.memory - before.memory, 0);
	if (steps > FIRST_STEPS)
		check(where, "events or streams made", now.objects - settled.objects, 0);
}

int __wrap_wlb_trainer_step(struct wlb_trainer *trainer, struct wlb_error *error)
{
	if (steps == 0) {
		before = cuda_host_get_counts();
		waits_before = trainer->device->host_waits;
	}
	int rc = __real_wlb_trainer_step(trainer, error);
	if (++steps == FIRST_STEPS)
		settled = cuda_host_get_counts();
	check_counts(trainer, "step");
	return rc;
}

int __wrap_wlb_trainer_read_step(struct wlb_trainer *trainer, struct wlb_step_facts *facts, struct wlb_error *error)
{
	int rc = __real_wlb_trainer_read_step(trainer, facts, error);
	steps_read++;
	check_counts(trainer, "reading, step");
	return rc;
}

int main(int argc, char **argv)
{
	int code = wlb_train(argc, argv);
	if (code != 0)
		return code;
	if (steps < LEAST_STEPS || steps_read != steps) {
		fprintf(stderr, "test_steps: %d steps, of which %d were read; %d are needed\n", steps, steps_read,
		        LEAST_STEPS);
		return 1;
	}
	return wrong;
}
