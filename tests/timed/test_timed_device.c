#include "tests/timed/device.h"
#include "tests/timed/queues.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const struct wlb_machine machine = {
	.name = "test",
	.gpus_per_node = 1,
	.peak_flops = 1e9,
	.gemm_efficiency = 0.5,
	.attention_efficiency = 0.5,
	.attention_backward_efficiency = 0.5,
	.attention_tile_tokens = 1,
	.memory_bytes = 1e9,
	.memory_bytes_per_s = 1e9,
	.operation_s = 1e-6,
	.element_bytes = 4,
	.blocking_messages = 1,
};

static void assert_near(double is, double expected)
{
	assert_true(fabs(is - expected) <= 1e-12 * expected);
}

static struct wlb_device *open_timed(double scale, uint64_t seed, uint64_t next)
{
	struct wlb_error error;
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_non_null(device);
	const struct wlb_timed_settings settings = {
		.machine = machine, .scale = scale, .seeds = {seed, next}, .seed_count = 2};
	assert_int_equal(wlb_timed_device_replace(device, &settings, &error), 0);
	return device;
}

static double elapsed_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds of a product of 100 x 40 by 40 x 30, as the device counts them. */
static double gemm_s(double scale, uint64_t seed)
{
	struct wlb_device *device = open_timed(scale, seed, seed);
	const struct wlb_weight weight = {NULL, 30, 40};
	device->ops->linear(device, NULL, 30, NULL, 40, &weight, NULL, 100);
	assert_int_equal(device->ops->synchronize(device, NULL), 0);
	double busy_s = device->ops->busy_s(device);
	wlb_device_close(device);
	return busy_s;
}

static void a_product_takes_what_the_machine_says(void **state)
{
	(void)state;
	double expected_s = wlb_machine_gemm_s(&machine, 100.0, 40.0, 30.0);
	assert_near(gemm_s(1.0, 0), expected_s);
	assert_near(gemm_s(50.0, 0), 50.0 * expected_s);
}

static void a_seed_changes_the_times_by_a_fifth_at_most(void **state)
{
	(void)state;
	double expected_s = wlb_machine_gemm_s(&machine, 100.0, 40.0, 30.0), least = 2.0, most = 0.0;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		double factor = gemm_s(1.0, seed) / expected_s;
		assert_near(gemm_s(1.0, seed), factor * expected_s);
		least = factor < least ? factor : least;
		most = factor > most ? factor : most;
	}
	assert_true(least >= 0.8 && least < 0.85 && most > 1.15 && most <= 1.2);
}

/* Seconds of a residual sum, as the device counts them. */
static double add_s(struct wlb_device *device)
{
	double before_s = device->ops->busy_s(device);
	device->ops->add(device, NULL, NULL, 1000);
	return device->ops->busy_s(device) - before_s;
}

static void a_step_of_the_optimizer_takes_the_next_seed(void **state)
{
	(void)state;
	struct wlb_device *device = open_timed(1.0, 0, 7);
	double first_s = add_s(device), expected_s = wlb_machine_stream_s(&machine, 12000.0);
	assert_near(first_s, expected_s);
	for (int64_t step = 1; step <= 3; step++) {
		const struct wlb_adamw settings = {.step = step};
		device->ops->adamw(device, NULL, NULL, NULL, NULL, NULL, 10, &settings, NULL);
		device->ops->adamw(device, NULL, NULL, NULL, NULL, NULL, 10, &settings, NULL);
		double changed_s = add_s(device);
		assert_true(fabs(changed_s / expected_s - 1.0) > 1e-3 && fabs(changed_s / expected_s - 1.0) <= 0.2);
	}
	wlb_device_close(device);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void a_file_changes_the_times_from_the_next_update_on(void **state)
{
	(void)state;
	char path[] = "/tmp/wlb-test-factor-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	write_text(path, "2\n");
	struct wlb_error error;
	const struct wlb_timed_settings settings = {.machine = machine, .scale = 1.0, .factor_file = path};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_non_null(device);
	assert_int_equal(wlb_timed_device_replace(device, &settings, &error), 0);
	double usual_s = wlb_machine_stream_s(&machine, 12000.0);
	assert_near(add_s(device), 2.0 * usual_s);
	static const char *const texts[] = {"1.5\n", "-3\n", "no number\n", NULL};
	static const double factors[] = {1.5, 1.0, 1.0, 1.0};
	for (int i = 0; i < 4; i++) {
		double before_s = add_s(device);
		if (texts[i] != NULL)
			write_text(path, texts[i]);
		else
			unlink(path);
		assert_near(add_s(device), before_s);
		const struct wlb_adamw update = {.step = i + 1};
		device->ops->adamw(device, NULL, NULL, NULL, NULL, NULL, 10, &update, NULL);
		assert_near(add_s(device), factors[i] * usual_s);
	}
	wlb_device_close(device);
}

/* Seconds of operations of 1,000 elements, as the device counts them. */
static void measured_operations_take_their_own_time(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_timed_settings settings = {.machine = machine, .scale = 1.0};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_non_null(device);
	settings.machine.operations[WLB_OP_ADD] = (struct wlb_op_time){1e-3, 1e-6};
	settings.machine.operations[WLB_OP_ROPE_ANGLES] = (struct wlb_op_time){0.0, 1e-5};
	assert_int_equal(wlb_timed_device_replace(device, &settings, &error), 0);
	assert_near(add_s(device), 2e-3);
	double before_s = device->ops->busy_s(device);
	device->ops->rope_angles(device, NULL, NULL, 100, NULL, 4, 1.0);
	assert_near(device->ops->busy_s(device) - before_s, 100.0 * 4.0 * 1e-5);
	before_s = device->ops->busy_s(device);
	device->ops->rope(device, NULL, 80, NULL, 100, 10, 8, 4, 1); /* not measured */
	assert_near(device->ops->busy_s(device) - before_s,
	            wlb_machine_stream_s(&machine, 2.0 * 4.0 * 100.0 * 10.0 * 8.0));
	wlb_device_close(device);
}

static void memory_is_written_and_timed(void **state)
{
	(void)state;
	struct wlb_device *device = open_timed(1.0, 0, 0);
	char bytes[64] = "text", other[64] = "";
	device->ops->copy(device, other, bytes, sizeof(other));
	assert_string_equal(other, "text");
	assert_near(device->ops->busy_s(device), wlb_machine_stream_s(&machine, 128.0));
	device->ops->zero(device, other, sizeof(other));
	assert_string_equal(other, "");
	device->ops->zero(device, NULL, 0);
	assert_near(device->ops->busy_s(device),
	            wlb_machine_stream_s(&machine, 128.0) + wlb_machine_stream_s(&machine, 64.0));
	wlb_device_close(device);
}

static void attention_takes_the_sum_of_its_segments(void **state)
{
	(void)state;
	struct wlb_device *device = open_timed(1.0, 0, 0);
	struct wlb_segment segments[] = {{0, 10, 0, 10, 0}, {10, 6, 10, 26, 20}};
	struct wlb_segments list = {.segments = segments, .count = 2, .max_q = 10, .max_k = 26};
	struct wlb_attention_shape shape = {.q_tokens = 16, .k_tokens = 36, .heads = 2, .kv_heads = 1, .head_dim = 8};
	device->ops->attention_forward(device, NULL, NULL, NULL, NULL, NULL, &list, &shape);
	double expected_s = wlb_machine_attention_s(&machine, 2, 8, 0.0, 10.0, 10.0, 0) +
	                    wlb_machine_attention_s(&machine, 2, 8, 0.0, 6.0, 26.0, 0);
	assert_near(device->ops->busy_s(device), expected_s);
	shape.window = 4;
	device->ops->attention_forward(device, NULL, NULL, NULL, NULL, NULL, &list, &shape);
	expected_s += wlb_machine_attention_s(&machine, 2, 8, 4.0, 10.0, 10.0, 0) +
	              wlb_machine_attention_s(&machine, 2, 8, 4.0, 6.0, 26.0, 0);
	assert_near(device->ops->busy_s(device), expected_s);
	wlb_device_close(device);
}

static void operations_end_when_their_times_are_over(void **state)
{
	(void)state;
	struct wlb_device *device = open_timed(1e5, 0, 0);
	double start_s = elapsed_s();
	device->ops->add(device, NULL, NULL, 1); /* operation_s and 12 bytes */
	device->ops->add(device, NULL, NULL, 1);
	device->ops->synchronize(device, NULL);
	assert_true(elapsed_s() - start_s >= 2.0 * 1e5 * (1e-6 + 12e-9));
	wlb_device_close(device);
}

static double call_ends_s; /* 0: not known yet */

static double call_end_s(struct wlb_timed_messages *messages, int64_t call, int wait)
{
	(void)messages;
	assert_int_equal(call, 1);
	return call_ends_s > 0.0 || wait ? call_ends_s : -1.0;
}

/* The host goes on while operations and a call run, and what is queued behind the wait for the call begins at its end.
 */
static void operations_are_queued_behind_a_call(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_timed_settings settings = {.machine = machine, .scale = 5e5};
	settings.machine.blocking_messages = 0;
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_non_null(device);
	assert_int_equal(wlb_timed_device_replace(device, &settings, &error), 0);
	const struct wlb_ops *ops = device->ops;
	struct wlb_queue *queue = ops->queue_new(device, 1, &error);
	struct wlb_event *events[4]; /* before the operation, behind it, behind the wait, of the call */
	for (int i = 0; i < 4; i++)
		events[i] = ops->event_new(device, 1, &error);
	assert_true(ops->event_done(device, events[3]));
	double began_s = elapsed_s(), takes_s = 5e5 * (1e-6 + 12e-9);
	ops->event_record(device, events[0], NULL);
	ops->add(device, NULL, NULL, 1);
	ops->event_record(device, events[1], NULL);
	ops->queue_wait(device, queue, events[1]);
	queue->call_end_s = call_end_s;
	queue->calls = 1;
	ops->event_record(device, events[3], queue);
	assert_false(ops->event_done(device, events[3]));
	call_ends_s = queue->ready_s + 0.02;
	ops->queue_wait(device, NULL, events[3]);
	ops->event_record(device, events[2], NULL);
	assert_true(elapsed_s() - began_s < takes_s && !ops->event_done(device, events[3]));
	assert_true(ops->event_elapsed_s(device, events[0], events[1]) >= takes_s - 1e-6);
	assert_true(fabs(ops->event_elapsed_s(device, events[1], events[2]) - 0.02) < 1e-6);
	assert_int_equal(ops->synchronize(device, &error), 0);
	assert_true(elapsed_s() - began_s >= takes_s + 0.02 && ops->event_done(device, events[3]));
	for (int i = 0; i < 4; i++)
		ops->event_free(device, events[i]);
	ops->queue_free(device, queue);
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_product_takes_what_the_machine_says),
		cmocka_unit_test(a_seed_changes_the_times_by_a_fifth_at_most),
		cmocka_unit_test(a_step_of_the_optimizer_takes_the_next_seed),
		cmocka_unit_test(a_file_changes_the_times_from_the_next_update_on),
		cmocka_unit_test(measured_operations_take_their_own_time),
		cmocka_unit_test(memory_is_written_and_timed),
		cmocka_unit_test(attention_takes_the_sum_of_its_segments),
		cmocka_unit_test(operations_end_when_their_times_are_over),
		cmocka_unit_test(operations_are_queued_behind_a_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
