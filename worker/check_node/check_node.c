#include "worker/check_node/check_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/check_node/calibrated.h"
#include "worker/check_node/disk.h"
#include "worker/check_node/exact.h"
#include "worker/check_node/gpu_watch.h"
#include "worker/check_node/gpus.h"
#include "worker/check_node/link_measure.h"
#include "worker/check_node/link_serve.h"
#include "worker/check_node/options.h"
#include "worker/check_node/pattern.h"
#include "worker/check_node/place.h"
#include "worker/check_node/report.h"
#include "worker/check_node/send.h"
#include "worker/check_node/speed.h"
#include "worker/check_node/suspected.h"
#include "worker/check_node/xid_check.h"
#include "worker/launch/options.h"

/* Shares of --seconds; what is not checked leaves its share to the others. */
static const struct {
	enum wlb_check check;
	double share;
} shares[] = {{WLB_CHECK_PRODUCTS, 0.4}, {WLB_CHECK_SPEED, 0.4}, {WLB_CHECK_MEMORY, 0.2}};

static double seconds_of(const struct wlb_check_options *options, enum wlb_check check)
{
	double sum = 0.0, own = 0.0;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		sum += (options->checks & shares[i].check) != 0 ? shares[i].share : 0.0;
		own += check == shares[i].check ? shares[i].share : 0.0;
	}
	return options->seconds * own / sum;
}

/* Returns the threads of a rank when the machine file was measured. */
static int threads_of(const struct wlb_check_options *options, const struct wlb_calibrated *calibrated, int cpus)
{
	if (options->threads > 0)
		return options->threads;
	return cpus > calibrated->ranks ? cpus / calibrated->ranks : 1;
}

/* The speed of CPUs is that of the ranks of the calibration, which may have several. */
static int check_speed_of_cpus(const struct wlb_check_options *options, const struct wlb_calibrated *calibrated,
                               struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_places ranks = {0};
	int cpus = wlb_cpu_count(error);
	int rc = cpus < 0 ? -1 : wlb_places_of_cpus(threads_of(options, calibrated, cpus), &ranks, error);
	if (rc == 0)
		rc = wlb_check_speed(options, &ranks, calibrated, seconds_of(options, WLB_CHECK_SPEED), report, error);
	wlb_places_free(&ranks);
	return rc;
}

static int check_speed(const struct wlb_check_options *options, const struct wlb_places *devices,
                       struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_calibrated calibrated = {0};
	struct wlb_error why;
	int rc = wlb_calibrated_read(options, &calibrated, &why);
	if (rc < 0)
		return wlb_fail(error, "%s", why.message);
	if (rc == 1) {
		wlb_report_add(report, "speed", WLB_CHECK_NOT_CHECKED, "%.300s", why.message);
		return 0;
	}
	if (options->device == WLB_DEVICE_CPU)
		return check_speed_of_cpus(options, &calibrated, report, error);
	return wlb_check_speed(options, devices, &calibrated, seconds_of(options, WLB_CHECK_SPEED), report, error);
}

/* Finds the devices; their number is 0 where a failure in the report says why none can be checked. */
static int find_devices(const struct wlb_check_options *options, struct wlb_places *devices,
                        struct wlb_check_report *report, struct wlb_error *error)
{
	if (options->device == WLB_DEVICE_CPU)
		return wlb_places_of_cpus(1, devices, error);
	int gpus = wlb_check_gpus(options, report, error);
	if (gpus <= 0)
		return gpus;
	return wlb_places_of_gpus(gpus, options->answer_s, devices, error);
}

static int check_places(const struct wlb_check_options *options, const struct wlb_places *devices,
                        struct wlb_check_report *report, struct wlb_error *error)
{
	int rc = 0;
	if ((options->checks & WLB_CHECK_PRODUCTS) != 0)
		rc = wlb_check_exact(options, devices, seconds_of(options, WLB_CHECK_PRODUCTS), report, error);
	if (rc == 0 && !report->hangs && (options->checks & WLB_CHECK_SPEED) != 0)
		rc = check_speed(options, devices, report, error);
	if (rc == 0 && !report->hangs && (options->checks & WLB_CHECK_MEMORY) != 0)
		rc = wlb_check_memory(options, devices, seconds_of(options, WLB_CHECK_MEMORY), report, error);
	return rc;
}

/* The kernel's log may say why CUDA finds no GPU, such as that all of them have fallen off the bus. Where it cannot be
 * read, the error that CUDA finds none is the one that is told. */
static void check_log_alone(struct wlb_check_report *report)
{
	const struct wlb_watched_xids none = {0};
	struct wlb_error ignored;
	wlb_check_xids(&none, report, &ignored);
}

/* GPUs are watched while they work, and their state is asked for when they have worked. */
static int check_devices(const struct wlb_check_options *options, struct wlb_check_report *report,
                         struct wlb_error *error)
{
	struct wlb_places devices = {0};
	struct wlb_gpu_watch watch = {0};
	int rc = find_devices(options, &devices, report, error);
	if (rc < 0 && options->device == WLB_DEVICE_CUDA)
		check_log_alone(report);
	int is_watched = rc == 0 && !report->hangs && options->device == WLB_DEVICE_CUDA;
	if (is_watched)
		rc = wlb_gpu_watch_start(&watch, options, error);
	if (rc == 0 && !report->hangs && devices.count > 0)
		rc = check_places(options, &devices, report, error);
	if (rc == 0 && !report->hangs && is_watched)
		rc = wlb_check_xids(wlb_gpu_watch_end(&watch, report), report, error);
	wlb_gpu_watch_free(&watch);
	wlb_places_free(&devices);
	return rc;
}

/* Ends with the first device that does not answer: the caller learns of it at once, and no later part waits as long
 * again. */
static int check_all(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error)
{
	const unsigned of_devices = WLB_CHECK_PRODUCTS | WLB_CHECK_SPEED | WLB_CHECK_MEMORY;
	int rc = (options->checks & of_devices) != 0 ? check_devices(options, report, error) : 0;
	if (rc == 0 && !report->hangs && (options->checks & WLB_CHECK_DISK) != 0)
		rc = wlb_check_disk(options, report, error);
	if (rc == 0 && !report->hangs && (options->checks & WLB_CHECK_LINKS) != 0)
		rc = wlb_check_links(options, report, error);
	return rc;
}

/* Returns WLB_EXIT_DONE where all of standard output was written, else WLB_EXIT_USAGE: that a disk is full to which it
 * goes does not make the node unhealthy. */
static int end_output(struct wlb_error *error)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return WLB_EXIT_DONE;
	wlb_fail(error, "standard output could not be written: %s; nothing failed: write it where there is space",
	         strerror(errno));
	return WLB_EXIT_USAGE;
}

/* Where the report is not stored it says so itself: standard error has the first reason alone. */
static void send_report(struct wlb_check_report *report)
{
	struct wlb_error why;
	if (wlb_check_report_send(report, &why) < 0)
		wlb_report_add(report, "report", WLB_CHECK_NOT_CHECKED, "the coordinator has not stored it: %.250s",
		               why.message);
}

/* Prints the report; the first reason becomes the error, which the caller prints on standard error. */
static int print_report(const struct wlb_check_options *options, struct wlb_check_report *report,
                        struct wlb_error *error)
{
	char reason[WLB_REASON_BYTES];
	if (options->report)
		send_report(report);
	if (options->json && wlb_report_print_json(report, stdout, error) < 0)
		return WLB_EXIT_USAGE;
	if (!options->json)
		wlb_report_print(report, stdout);
	int code = end_output(error);
	if (!wlb_report_reason(report, reason))
		return code;
	wlb_fail(error, "%s", reason);
	return WLB_EXIT_FAILED;
}

static int check(const struct wlb_check_options *options, struct wlb_error *error)
{
	if ((options->checks & WLB_CHECK_LINKS) != 0 && wlb_links_ready(options, error) < 0)
		return WLB_EXIT_USAGE;
	struct wlb_check_report *report = calloc(1, sizeof(*report));
	char reason[WLB_REASON_BYTES];
	int rc = report != NULL ? check_all(options, report, error) : wlb_fail(error, "out of memory for the report");
	/* What has failed counts, also where a later check could not be made. */
	int known = rc == 0 || (report != NULL && wlb_report_reason(report, reason));
	int code = known ? print_report(options, report, error) : WLB_EXIT_USAGE;
	free(report);
	return code;
}

static int check_node(void *values, struct wlb_error *error)
{
	struct wlb_check_options *options = values;
	if (wlb_check_options_complete(options, error) < 0)
		return WLB_EXIT_USAGE;
	if (options->serve != NULL) {
		int code = wlb_link_serve(options, error);
		return code == WLB_EXIT_DONE ? end_output(error) : code;
	}
	int suspected = options->if_suspected ? wlb_check_suspected(error) : 1;
	if (suspected < 0)
		return WLB_EXIT_USAGE;
	if (suspected > 0)
		return check(options, error);
	puts(options->json ? "{\"suspected\": false}"
	                   : "the coordinator does not suspect this node: nothing is checked");
	return end_output(error);
}

const struct wlb_command wlb_command_check_node = {
	.name = "check-node",
	.summary = "Check whether a node is healthy",
	.options = &wlb_check_option_table,
	.values_bytes = sizeof(struct wlb_check_options),
	.run = check_node,
};
