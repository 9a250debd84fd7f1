/* What wlb-calibrate measures of a CUDA device, in bfloat16 with masters in float32: links over the transport that
 * training uses, and operations. Each array has the size of its type, which the address sanitizer checks.
 *
 *   mpirun -n 2 test_cuda_host_calibrate nccl|mpi
 *   test_cuda_host_calibrate operations */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/calibrate/attention.h"
#include "worker/calibrate/elementwise.h"
#include "worker/calibrate/links.h"
#include "worker/calibrate/products.h"
#include "worker/calibrate/rank_memory.h"
#include "worker/launch/launch.h"
#include "worker/train/transport.h"

static struct wlb_launch *launch;
static struct wlb_device *device;
static struct wlb_comm *world;
static struct wlb_error error;
static int with_nccl;

/* Prints the reason, which cmocka does not know. */
static void assert_done(int rc)
{
	if (rc != 0)
		fprintf(stderr, "%s\n", error.message);
	assert_int_equal(rc, 0);
}

/* A call over NCCL returns before its messages have moved: without a wait of the host behind each, nothing would have
 * been measured. */
static void links_are_measured_to_their_end(void **state)
{
	(void)state;
	const int node_of[] = {0, 0};
	const struct wlb_rank_map map = {.ranks = 2, .node_of = node_of, .nodes = 1};
	struct wlb_link_calls calls;
	struct wlb_link link;
	assert_int_equal(wlb_comm_blocks_host(world), !with_nccl);
	int64_t waits = device->host_waits;
	assert_done(wlb_measure_link(device, world, &map, WLB_LINK_NODE, 0.0, &link, &calls, &error));
	assert_int_equal(calls.count, 5); /* 4 KiB to 1 MiB, by 4 */
	assert_true(device->host_waits - waits >= (int64_t)calls.count * 3 * 22);
	assert_true(link.bytes_per_s > 0.0 && link.latency_s >= 0.0);
	for (int32_t i = 0; i < calls.count; i++)
		assert_true(calls.gather_s[i] > 0.0 && calls.reduce_s[i] > 0.0 && calls.send_s[i] > 0.0);
}

/* A GPU has 16 GiB. */
static void ranks_share_the_memory_of_a_gpu(void **state)
{
	(void)state;
	double bytes;
	unsetenv("CUDA_HOST_GPU");
	assert_done(wlb_rank_memory(launch, device, world, &bytes, &error));
	assert_true(bytes == 16.0 * (1 << 30));
	setenv("CUDA_HOST_GPU", "0000:01:00.0", 1);
	assert_done(wlb_rank_memory(launch, device, world, &bytes, &error));
	assert_true(bytes == 8.0 * (1 << 30));
	unsetenv("CUDA_HOST_GPU");
}

static void operations_have_the_types_of_training(void **state)
{
	(void)state;
	struct wlb_elementwise measured;
	assert_done(wlb_measure_elementwise(device, 64, 0.01, &measured, &error));
	assert_true(measured.memory_bytes_per_s > 0.0 && measured.operation_s > 0.0);
	for (int op = 0; op < WLB_OPERATIONS; op++)
		assert_true(measured.operations[op].element_s > 0.0 && measured.operations[op].call_s >= 0.0);
}

static void products_and_attention(void **state)
{
	(void)state;
	static struct wlb_gemm_rates products = {
		.rows = {64}, .depth = {64}, .columns = {64}, .rows_count = 1, .depth_count = 1, .columns_count = 1};
	static struct wlb_attention_rates attention = {.q_tokens = {16}, .k_tokens = {16}, .q_count = 1, .k_count = 1};
	assert_done(wlb_measure_products(device, 0.01, &products, &error));
	assert_true(products.flops_per_s[0] > 0.0);
	assert_done(wlb_measure_attention(device, 64, 0.01, &attention, &error));
	assert_true(attention.forward_flops_per_s[0] > 0.0 && attention.backward_flops_per_s[0] > 0.0);
}

static int open_all(enum wlb_transport_choice transport)
{
	int code = 0;
	launch = wlb_launch_open(&code, &error);
	device = launch != NULL ? wlb_device_open_cuda(0, WLB_BFLOAT16, WLB_FLOAT32, &error) : NULL;
	world = device != NULL ? wlb_comm_open_world(device, launch->rank, launch->size, &error) : NULL;
	return world != NULL ? wlb_choose_transport(launch, world, transport, 20.0, "test", &error) : -1;
}

int main(int count, char **arguments)
{
	with_nccl = count > 1 && strcmp(arguments[1], "nccl") == 0;
	if (open_all(with_nccl ? WLB_TRANSPORT_AUTO : WLB_TRANSPORT_MPI) < 0) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	const struct CMUnitTest links[] = {cmocka_unit_test(links_are_measured_to_their_end),
	                                   cmocka_unit_test(ranks_share_the_memory_of_a_gpu)};
	const struct CMUnitTest operations[] = {
		cmocka_unit_test(operations_have_the_types_of_training),
		cmocka_unit_test(products_and_attention),
	};
	int failed = launch->size == 2 ? cmocka_run_group_tests(links, NULL, NULL)
	                               : cmocka_run_group_tests(operations, NULL, NULL);
	fflush(stdout);
	wlb_launch_close(launch); /* before MPI, see launch.h */
	wlb_comm_close(world);
	wlb_device_close(device);
	return failed;
}
