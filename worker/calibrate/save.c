#include "worker/calibrate/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/atomic_file.h"
#include "common/file.h"
#include "common/show.h"
#include "planner/machine.h"
#include "planner/machine_write.h"
#include "planner/node_type.h"
#include "worker/calibrate/send.h"
#include "worker/calibrate/to_machine.h"
#include "worker/launch/options.h"

static int check_name(const char *name, size_t size, struct wlb_error *error)
{
	if (name == NULL || strlen(name) < size)
		return 0;
	return wlb_fail(error, "--name %.100s: it must have %zu bytes at most", name, size - 1);
}

static int read_base(const struct wlb_calibrate_options *options, struct wlb_machine *machine, struct wlb_error *error)
{
	const char *from = options->device == WLB_DEVICE_CUDA ? "H100" : "CPU";
	if (options->base != NULL)
		from = options->base;
	return wlb_machine_file_read(from, machine, error) < 0 ? wlb_fail_in(error, "--machine") : 0;
}

int wlb_calibration_check(const struct wlb_calibrate_options *options, struct wlb_error *error)
{
	struct wlb_atomic_file file;
	struct wlb_machine machine;
	if (check_name(options->name, sizeof(machine.name), error) < 0 || read_base(options, &machine, error) < 0)
		return -1;
	if (wlb_atomic_file_open(&file, options->output, error) < 0)
		return wlb_fail_in(error, "--output");
	wlb_atomic_file_drop(&file);
	return 0;
}

static struct wlb_node_facts find_facts(const struct wlb_launch *launch, const struct wlb_device *device,
                                        const struct wlb_calibrate_options *options)
{
	struct wlb_node_facts facts = {
		.ranks = launch->local_size,
		.threads = device->host_threads,
		.element_bytes = (int32_t)wlb_dtype_bytes(device->compute),
		.blocking_messages = device->host_memory,
	};
	if (options->name == NULL)
		wlb_node_type(options->device == WLB_DEVICE_CUDA, facts.type, sizeof(facts.type));
	else
		snprintf(facts.type, sizeof(facts.type), "%s", options->name);
	return facts;
}

static char *text_of(const struct wlb_machine *machine, const struct wlb_launch *launch,
                     const struct wlb_device *device, const struct wlb_calibrate_options *options,
                     struct wlb_error *error)
{
	char at[32];
	time_t now = time(NULL);
	struct tm utc;
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	const struct wlb_measured measured = {
		.at = at,
		.host = wlb_launch_node(launch, 0),
		.device = options->device == WLB_DEVICE_CUDA ? "cuda" : "cpu",
		.dtype = wlb_dtype_name(device->compute),
		.wlb = WLB_VERSION,
		.ranks = launch->size,
		.nodes = launch->node_count,
	};
	return wlb_machine_text(machine, &measured, error);
}

static void print_link(const char *name, const struct wlb_link *link, int measured)
{
	if (measured)
		printf("%-13s %.3g GB/s, %.3g us\n", name, 1e-9 * link->bytes_per_s, 1e6 * link->latency_s);
	else if (link->bytes_per_s > 0.0)
		printf("%-13s %.3g GB/s, %.3g us, not measured: there is none in this job\n", name,
		       1e-9 * link->bytes_per_s, 1e6 * link->latency_s);
}

/* Nanoseconds of an element. */
static void print_operations(const struct wlb_machine *m)
{
	enum { IN_A_LINE = 4 };
	int printed = 0;
	for (int op = 0; op < WLB_OPERATIONS; op++)
		if (m->operations[op].element_s > 0.0)
			printf("%s%s %.3g",
			       printed++ % IN_A_LINE > 0 ? ", "
			       : printed > 1             ? "\n              "
			                                 : "operations    ns of an element: ",
			       wlb_op_name((enum wlb_op)op), 1e9 * m->operations[op].element_s);
	if (printed > 0)
		printf("\n");
}

static void print_machine(const struct wlb_machine *m, const struct wlb_calibration *c, const struct wlb_launch *launch,
                          const char *output)
{
	const struct wlb_gemm_rates *g = &m->gemm;
	const struct wlb_attention_rates *a = &m->attention;
	int longest = a->q_count * a->k_count - 1;
	wlb_show_line(stdout, "%s: %s, %d ranks on %d nodes", output, m->name, launch->size, launch->node_count);
	printf("products      %.4g GFLOP/s at %g x %g x %g, %.4g at %g x %g x %g\n", 1e-9 * g->flops_per_s[0],
	       g->rows[0], g->depth[0], g->columns[0], 1e-9 * m->peak_flops * m->gemm_efficiency,
	       g->rows[g->rows_count - 1], g->depth[g->depth_count - 1], g->columns[g->columns_count - 1]);
	printf("attention     %.4g GFLOP/s forward, %.4g backward at %g tokens; %.4g, %.4g at %g\n",
	       1e-9 * a->forward_flops_per_s[0], 1e-9 * a->backward_flops_per_s[0], a->q_tokens[0],
	       1e-9 * a->forward_flops_per_s[longest], 1e-9 * a->backward_flops_per_s[longest],
	       a->q_tokens[a->q_count - 1]);
	printf("memory        %.4g GB/s; an operation takes %.3g us more\n", 1e-9 * m->memory_bytes_per_s,
	       1e6 * m->operation_s);
	print_operations(m);
	printf("slowest rank  takes %.3f times as long, where all compute at once\n", m->slowest_rank);
	print_link("node_link", &m->node_link, c->links[WLB_LINK_NODE].bytes_per_s > 0.0);
	print_link("network_link", &m->network_link, c->links[WLB_LINK_NETWORK].bytes_per_s > 0.0);
	print_link("switch_link", &m->switch_link, c->links[WLB_LINK_SWITCH].bytes_per_s > 0.0);
}

int wlb_calibration_save(const struct wlb_calibration *calibration, const struct wlb_launch *launch,
                         struct wlb_device *device, const struct wlb_calibrate_options *options,
                         struct wlb_error *error)
{
	const struct wlb_node_facts facts = find_facts(launch, device, options);
	struct wlb_machine *machine = calloc(1, sizeof(*machine));
	int rc =
		machine != NULL ? read_base(options, machine, error) : wlb_fail(error, "out of memory for the machine");
	if (rc == 0)
		rc = wlb_calibration_to_machine(calibration, &facts, machine, error);
	char *text = rc == 0 ? text_of(machine, launch, device, options, error) : NULL;
	rc = text != NULL ? wlb_file_write(options->output, text, strlen(text), 0644, error) : -1;
	if (rc == 0) {
		print_machine(machine, calibration, launch, options->output);
		wlb_calibration_send(text, launch, options);
	}
	free(text);
	free(machine);
	return rc;
}
