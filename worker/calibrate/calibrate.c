#include "worker/calibrate/calibrate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/node_type.h"
#include "worker/calibrate/calibration.h"
#include "worker/calibrate/node_hashes.h"
#include "worker/calibrate/save.h"
#include "worker/launch/options.h"
#include "worker/train/device.h"
#include "worker/train/transport.h"

/* Of the measurements, set-up included: a rank that waits longer ends the job. */
enum { SET_UP_S = 120, LATE = 10 };

static void on_alarm(int number)
{
	static const char text[] = "wlb calibrate: a rank did not answer in time: check the nodes of the job, measure "
				   "again, or give more --seconds\n";
	(void)number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(WLB_EXIT_FAILED);
	_exit(WLB_EXIT_FAILED);
}

/* No wait for another rank is longer than this: MPI itself has no bound. */
static void bound(const struct wlb_calibrate_options *options)
{
	struct sigaction action = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &action, NULL);
	alarm(SET_UP_S + LATE * (unsigned)options->seconds);
}

/* Ends all ranks after a failure of this rank, which the others do not know. */
static void end_all(struct wlb_launch *launch, const struct wlb_error *error)
{
	fprintf(stderr, "wlb calibrate: rank %d on %s: %s\n", launch->rank, wlb_launch_node(launch, launch->rank),
	        error->message);
	wlb_launch_abort(launch, WLB_EXIT_FAILED);
}

/* Rank 0 writes the file; the exit code of every rank is that of rank 0. */
static int save_for_all(const struct wlb_calibrate_options *options, struct wlb_launch *launch,
                        struct wlb_device *device, struct wlb_comm *world, const struct wlb_calibration *calibration,
                        struct wlb_error *error)
{
	double failed = 0.0;
	if (launch->rank == 0)
		failed = wlb_calibration_save(calibration, launch, device, options, error) < 0;
	if (wlb_comm_all_reduce_double(world, &failed, 1, WLB_MAX, error) < 0)
		end_all(launch, error);
	return failed > 0.0 ? 1 : 0;
}

/* Returns 1 on all ranks where the nodes are of several types: what they measure together would be true of none. */
static int check_types(const struct wlb_launch *launch, struct wlb_comm *world, int gpus, struct wlb_error *error)
{
	char type[64];
	wlb_node_type(gpus, type, sizeof(type));
	double *hashes = wlb_share_node_hashes(launch, world, wlb_name_hash(type, (int)strlen(type)), error);
	int other = 0;
	if (hashes == NULL)
		return -1;
	for (int node = 0; other == 0 && node < launch->node_count; node++)
		if (hashes[node] != hashes[0])
			other = node;
	free(hashes);
	if (other == 0)
		return 0;
	wlb_fail(error, "nodes %s and %s have different processors; measure nodes of one type in a job",
	         launch->nodes[0], launch->nodes[other]);
	return 1;
}

/* Measures. Returns 0, or 1 on all ranks where the result is refused. */
static int measure(const struct wlb_calibrate_options *options, struct wlb_launch *launch, struct wlb_device *device,
                   struct wlb_comm *world, struct wlb_error *error)
{
	struct wlb_calibration *calibration = calloc(1, sizeof(*calibration));
	if (calibration == NULL) {
		wlb_fail(error, "out of memory for the measurements");
		end_all(launch, error);
	}
	int rc = check_types(launch, world, options->device == WLB_DEVICE_CUDA, error);
	if (rc == 0)
		rc = wlb_calibration_measure(launch, device, world, options, calibration, error);
	if (rc == 0)
		rc = wlb_calibration_agree(launch, world, options->deviation, calibration, error);
	if (rc < 0)
		end_all(launch, error);
	if (rc == 0)
		rc = save_for_all(options, launch, device, world, calibration, error);
	free(calibration);
	return rc;
}

/* Opens the communicator of all ranks, over the transport that training would use. */
static struct wlb_comm *open_world(const struct wlb_calibrate_options *options, struct wlb_launch *launch,
                                   struct wlb_device *device, struct wlb_error *error)
{
	struct wlb_comm *world = wlb_comm_open_world(device, launch->rank, launch->size, error);
	if (world == NULL ||
	    wlb_choose_transport(launch, world, options->transport, SET_UP_S, "wlb calibrate", error) < 0)
		return NULL;
	return world;
}

/* With options that are the same on every rank. */
static int calibrate_launched(const struct wlb_calibrate_options *options, struct wlb_launch *launch,
                              struct wlb_error *error)
{
	bound(options);
	struct wlb_device *device =
		wlb_open_device(launch, (enum wlb_device_kind)options->device, (enum wlb_dtype)options->dtype,
	                        WLB_MAIN_GRADS_FP32, options->threads, error);
	struct wlb_comm *world = device != NULL ? open_world(options, launch, device, error) : NULL;
	if (world == NULL)
		end_all(launch, error);
	int rc = measure(options, launch, device, world, error);
	wlb_launch_disconnect(launch);
	wlb_comm_close(world);
	wlb_device_close(device);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

/* Rank 0 checks for all what the measurements do not need. */
static int calibrate_checked(const struct wlb_calibrate_options *options, struct wlb_launch *launch,
                             struct wlb_error *error)
{
	int refused = launch->rank == 0 && wlb_calibration_check(options, error) < 0;
	if (wlb_launch_share(launch, "wlb.calibrate", &refused, sizeof(refused), error) < 0)
		end_all(launch, error);
	return refused ? WLB_EXIT_USAGE : calibrate_launched(options, launch, error);
}

static int calibrate_read(int argc, char **argv, struct wlb_launch *launch, struct wlb_error *error)
{
	struct wlb_calibrate_options options = {0};
	int asked = wlb_options_parse(&wlb_calibrate_option_table, argc, argv, &options, error);
	int code = WLB_EXIT_USAGE;
	if (asked > 0)
		code = WLB_EXIT_DONE;
	else if (asked == WLB_OPTIONS_READ &&
	         wlb_dtype_choose((enum wlb_device_kind)options.device, "--dtype bfloat16", &options.dtype, error) == 0)
		code = calibrate_checked(&options, launch, error);
	if (asked > 0 && launch->rank == 0)
		wlb_options_print(&wlb_calibrate_option_table, (enum wlb_options_asked)asked, stdout);
	wlb_options_free(&wlb_calibrate_option_table, &options);
	return code;
}

static int calibrate(int argc, char **argv)
{
	struct wlb_error error = {0};
	int code = WLB_EXIT_FAILED;
	struct wlb_launch *launch = wlb_launch_open(&code, &error);
	int rank = launch != NULL ? launch->rank : 0;
	/* srun --kill-on-bad-exit kills ranks that end later than the first; their exit codes would be the signal's. */
	signal(SIGTERM, launch != NULL ? SIG_IGN : SIG_DFL);
	if (launch != NULL)
		code = calibrate_read(argc, argv, launch, &error);
	if (code != WLB_EXIT_DONE && rank == 0 && error.message[0] != '\0')
		fprintf(stderr, "wlb calibrate: %s\n", error.message);
	wlb_launch_close(launch);
	return code;
}

const struct wlb_command wlb_command_calibrate = {
	.name = "calibrate",
	.options = &wlb_calibrate_option_table,
	.values_bytes = sizeof(struct wlb_calibrate_options),
	.main = calibrate,
};
