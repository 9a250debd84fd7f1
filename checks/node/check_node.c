#include "checks/node/check_node.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "checks/node/calibrated.h"
#include "checks/node/children.h"
#include "checks/node/disk.h"
#include "checks/node/exact.h"
#include "checks/node/gpu_watch.h"
#include "checks/node/link_measure.h"
#include "checks/node/link_serve.h"
#include "checks/node/options.h"
#include "checks/node/pattern.h"
#include "checks/node/place.h"
#include "checks/node/report.h"
#include "checks/node/speed.h"
#include "checks/node/xid_check.h"
#include "coordinator/client/request_once.h"
#include "kernels/ops.h"
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

static int threads_of(const struct wlb_check_options *options, const struct wlb_calibrated *calibrated, int cpus)
{
	if (options->threads > 0)
		return options->threads;
	return cpus > calibrated->ranks ? cpus / calibrated->ranks : 1;
}

/* Returns 1 with the reason where ranks would have fewer CPUs than in the calibration, or threads than are named. A
 * file that does not say how many threads there were proves it where there are fewer CPUs than ranks. */
static int lacks_cpus(const struct wlb_check_options *options, const struct wlb_calibrated *calibrated, int cpus,
                      struct wlb_error *why)
{
	char measured[160], of_threads[32] = "";
	int ranks = calibrated->ranks;
	int threads = calibrated->threads > 0 ? calibrated->threads : options->threads > 0 ? options->threads : 1;
	if (calibrated->threads > 0)
		snprintf(of_threads, sizeof(of_threads), " of %d thread%s", threads, threads > 1 ? "s" : "");
	snprintf(measured, sizeof(measured), "machine %s was measured with %d rank%s%s", calibrated->name, ranks,
	         ranks > 1 ? "s" : "", of_threads);
	if (options->threads > 0 && options->threads != threads)
		wlb_fail(why, "--threads %d: %s: leave the option out", options->threads, measured);
	else if ((int64_t)ranks * threads > cpus)
		wlb_fail(why, "%d CPU%s; %s: start the check with the CPUs that the calibration had", cpus,
		         cpus > 1 ? "s" : "", measured);
	else
		return 0;
	return 1;
}

/* The speed of CPUs is that of the ranks of the calibration, which may have several. */
static int check_speed_of_cpus(const struct wlb_check_options *options, const struct wlb_calibrated *calibrated,
                               struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_places ranks = {0};
	struct wlb_error why;
	int cpus = wlb_cpu_count(error);
	if (cpus < 0)
		return -1;
	if (lacks_cpus(options, calibrated, cpus, &why)) {
		wlb_report_add(report, "speed", WLB_CHECK_NOT_CHECKED, "%s", why.message);
		return 0;
	}
	int rc = wlb_places_of_cpus(threads_of(options, calibrated, cpus), &ranks, error);
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

struct gpu_count {
	int count, is_unusable;
	struct wlb_gpu first;
};

static int count_gpus(int index, const void *context, void *memory, struct wlb_error *error)
{
	struct gpu_count *result = memory;
	(void)index, (void)context;
	result->count = wlb_cuda_device_count();
	result->is_unusable = wlb_cuda_is_unusable();
	return wlb_cuda_describe(0, &result->first, error);
}

static int judge_gpus(const struct wlb_children *children, const struct wlb_check_options *options,
                      struct wlb_check_report *report, struct wlb_error *error)
{
	const struct gpu_count *result = wlb_child_result(children, 0);
	char text[WLB_FINDING_BYTES];
	int is_refused = children->list[0].end == WLB_CHILD_REFUSED;
	if (is_refused && (options->gpus == 0 || result->is_unusable))
		return wlb_fail(error, "--device cuda: %s", children->list[0].error.message);
	if (children->list[0].end != WLB_CHILD_DONE) {
		wlb_child_describe(children, 0, text, sizeof(text));
		wlb_report_add(report, "gpus", WLB_CHECK_FAILED, "%s", text);
		report->hangs = children->list[0].end == WLB_CHILD_LATE;
		return 0;
	}
	int failed = result->count < options->gpus;
	struct wlb_finding *finding = wlb_report_add(report, "gpus", failed ? WLB_CHECK_FAILED : WLB_CHECK_OK,
	                                             "this process sees %d (%s)", result->count, result->first.model);
	if (options->gpus > 0)
		wlb_finding_limit(finding, "%d", options->gpus);
	return result->count;
}

/* Counts the GPUs in a process of its own, since a process that has opened the driver cannot start others that use it.
 * Adds the finding. Returns how many are to be checked; -1 with the reason where there is none and --gpus asks for
 * none, or where this program can use no GPU (wlb_cuda_is_unusable): neither says anything of the node. */
static int check_gpus(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_children children = {0};
	int count =
		wlb_children_run(&children, 1, sizeof(struct gpu_count), count_gpus, NULL, options->answer_s, error);
	if (count == 0)
		count = judge_gpus(&children, options, report, error);
	wlb_children_free(&children);
	return count;
}

/* Finds the devices; their number is 0 where a failure in the report says why none can be checked. */
static int find_devices(const struct wlb_check_options *options, struct wlb_places *devices,
                        struct wlb_check_report *report, struct wlb_error *error)
{
	if (options->device == WLB_DEVICE_CPU)
		return wlb_places_of_cpus(1, devices, error);
	int gpus = check_gpus(options, report, error);
	if (gpus <= 0)
		return gpus;
	return wlb_places_of_gpus(gpus, options->answer_s, devices, error);
}

/* Adds an error, for which the check could not be made, to the report; the others go on. */
static void take(struct wlb_check_report *report, const char *check, int rc, const struct wlb_error *why)
{
	if (rc < 0)
		wlb_report_add_unmade(report, check, why);
}

static void check_places(const struct wlb_check_options *options, const struct wlb_places *devices,
                         struct wlb_check_report *report)
{
	double products_s = seconds_of(options, WLB_CHECK_PRODUCTS), memory_s = seconds_of(options, WLB_CHECK_MEMORY);
	struct wlb_error why;
	if ((options->checks & WLB_CHECK_PRODUCTS) != 0)
		take(report, "products", wlb_check_exact(options, devices, products_s, report, &why), &why);
	if (!report->hangs && (options->checks & WLB_CHECK_SPEED) != 0)
		take(report, "speed", check_speed(options, devices, report, &why), &why);
	if (!report->hangs && (options->checks & WLB_CHECK_MEMORY) != 0)
		take(report, "memory", wlb_check_memory(options, devices, memory_s, report, &why), &why);
}

/* GPUs are watched while they work, and their state is asked for when they have worked. */
static void check_watched_gpus(const struct wlb_check_options *options, const struct wlb_places *gpus,
                               struct wlb_check_report *report)
{
	const struct wlb_watched_xids none = {0}, *xids = &none;
	struct wlb_gpu_watch watch = {0};
	struct wlb_error why;
	int started = wlb_gpu_watch_start(&watch, options, &why);
	take(report, "nvml", started, &why);
	if (gpus->count > 0)
		check_places(options, gpus, report);
	if (!report->hangs) {
		if (started == 0)
			xids = wlb_gpu_watch_end(&watch, report);
		take(report, "xid", wlb_check_xids(xids, report, &why), &why);
	}
	wlb_gpu_watch_free(&watch);
}

/* The kernel's log may say why CUDA finds no GPU, such as that all of them have fallen off the bus. */
static void check_log_alone(struct wlb_check_report *report)
{
	const struct wlb_watched_xids none = {0};
	struct wlb_error why;
	take(report, "xid", wlb_check_xids(&none, report, &why), &why);
}

static void check_devices(const struct wlb_check_options *options, struct wlb_check_report *report)
{
	const bool of_gpus = options->device == WLB_DEVICE_CUDA;
	struct wlb_places devices = {0};
	struct wlb_error why;
	int rc = find_devices(options, &devices, report, &why);
	take(report, of_gpus ? "gpus" : "cpus", rc, &why);
	if (rc < 0 && of_gpus)
		check_log_alone(report);
	else if (rc == 0 && of_gpus && !report->hangs)
		check_watched_gpus(options, &devices, report);
	else if (rc == 0 && !of_gpus)
		check_places(options, &devices, report);
	wlb_places_free(&devices);
}

/* Ends with the first device that does not answer: the caller learns of it at once, and no later part waits as long
 * again. */
static void check_all(const struct wlb_check_options *options, struct wlb_check_report *report)
{
	const unsigned of_devices = WLB_CHECK_PRODUCTS | WLB_CHECK_SPEED | WLB_CHECK_MEMORY;
	struct wlb_error why;
	if ((options->checks & of_devices) != 0)
		check_devices(options, report);
	if (!report->hangs && (options->checks & WLB_CHECK_DISK) != 0)
		take(report, "disk", wlb_check_disk(options, report, &why), &why);
	if (!report->hangs && (options->checks & WLB_CHECK_LINKS) != 0)
		take(report, "links", wlb_check_links(options, report, &why), &why);
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

enum { CALL_MS = 10000 }; /* of the coordinator */

static int post_report(const struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_client_config config;
	if (wlb_client_config_load(&config, error) < 0)
		return -1;
	char *body = wlb_report_json(report, false, error);
	char *reply =
		body != NULL ? wlb_client_request_once(&config, "POST", "/v1/node_checks", body, CALL_MS, error) : NULL;
	int rc = reply != NULL ? 0 : -1;
	free(body);
	free(reply);
	return rc;
}

/* Where the report is not stored it says so itself: standard error has the first reason alone. */
static void send_report(struct wlb_check_report *report)
{
	struct wlb_error why;
	if (post_report(report, &why) < 0)
		wlb_report_add(report, "report", WLB_CHECK_NOT_CHECKED, "the coordinator has not stored it: %.250s",
		               why.message);
}

/* Prints the report; the first reason, else the first error for which a check could not be made, becomes the error,
 * which the caller prints on standard error. */
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
	if (wlb_report_reason(report, reason)) {
		wlb_fail(error, "%s", reason);
		return WLB_EXIT_FAILED;
	}
	if (report->unmade.message[0] == '\0')
		return code;
	*error = report->unmade;
	return WLB_EXIT_USAGE;
}

static int check(const struct wlb_check_options *options, struct wlb_error *error)
{
	if ((options->checks & WLB_CHECK_LINKS) != 0 && wlb_links_ready(options, error) < 0)
		return WLB_EXIT_USAGE;
	struct wlb_check_report *report = calloc(1, sizeof(*report));
	if (report == NULL) {
		wlb_fail(error, "out of memory for the report");
		return WLB_EXIT_USAGE;
	}
	check_all(options, report);
	int code = print_report(options, report, error);
	free(report);
	return code;
}

static const char in_path[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* A node of which nothing is known is not listed. */
static int is_suspected(const char *reply, struct wlb_error *error)
{
	json_t *json = json_loads(reply, 0, NULL);
	const json_t *nodes = json_object_get(json, "nodes");
	int suspected = json_is_true(json_object_get(json_array_get(nodes, 0), "suspected"));
	if (!json_is_array(nodes))
		suspected = wlb_fail(error, "the coordinator's reply is no list of nodes");
	json_decref(json);
	return suspected;
}

/* Asks the coordinator. Returns 1 where a run lost the node, excluded it, or saw it fail a check, and root or SlurmUser
 * has not found it healthy since; 0 where not; -1 with the reason where the coordinator does not say. */
static int ask_suspected(struct wlb_error *error)
{
	struct wlb_client_config config;
	char node[HOST_NAME_MAX + 1] = "", path[HOST_NAME_MAX + 32];
	wlb_report_node_name(node, sizeof(node));
	if (*node == '\0' || node[strspn(node, in_path)] != '\0')
		return wlb_fail(error, "SLURMD_NODENAME '%.60s': must be the name of a node", node);
	if (wlb_client_config_load(&config, error) < 0)
		return -1;
	snprintf(path, sizeof(path), "/v1/nodes?node=%s", node);
	char *reply = wlb_client_request_once(&config, "GET", path, NULL, CALL_MS, error);
	int suspected = reply != NULL ? is_suspected(reply, error) : -1;
	free(reply);
	return suspected;
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
	int suspected = options->if_suspected ? ask_suspected(error) : 1;
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
	.options = &wlb_check_option_table,
	.values_bytes = sizeof(struct wlb_check_options),
	.run = check_node,
};
