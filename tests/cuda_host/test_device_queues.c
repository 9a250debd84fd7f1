/* Queues and events of the product's CUDA device, in orders in which a missing event shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/ops.h"
#include "tests/cuda_host/order.h"

enum { COUNT = 1000 };

struct fixture {
	struct wlb_device *device;
	struct wlb_queue *copies;
	struct wlb_event *ready, *arrived;
	float *pinned, *back;
	float *x;
};

static void open_fixture(struct fixture *f)
{
	struct wlb_error error = {0};
	f->device = wlb_device_open_cuda(0, WLB_FLOAT32, &error);
	assert_non_null(f->device);
	const struct wlb_ops *ops = f->device->ops;
	f->copies = ops->queue_new(f->device, 0, &error);
	f->ready = ops->event_new(f->device, 1, &error);
	f->arrived = ops->event_new(f->device, 1, &error);
	f->pinned = ops->alloc_host(f->device, COUNT * sizeof(float), &error);
	f->back = ops->alloc_host(f->device, COUNT * sizeof(float), &error);
	f->x = ops->alloc(f->device, COUNT * sizeof(float), &error);
	assert_true(f->copies != NULL && f->ready != NULL && f->arrived != NULL);
	assert_true(f->pinned != NULL && f->back != NULL && f->x != NULL);
	assert_int_equal(ops->synchronize(f->device, &error), 0);
}

static void close_fixture(struct fixture *f)
{
	const struct wlb_ops *ops = f->device->ops;
	ops->event_free(f->device, f->ready);
	ops->event_free(f->device, f->arrived);
	ops->queue_free(f->device, f->copies);
	ops->release_host(f->device, f->pinned);
	ops->release_host(f->device, f->back);
	ops->release(f->device, f->x);
	wlb_device_close(f->device);
}

/* Copies to the device beside the compute queue, which doubles the numbers and waits for the copy where `waits` is 1,
 * and copies them back. Returns 1 where all of them are right. */
static int doubles_what_was_copied(struct fixture *f, int waits)
{
	const struct wlb_ops *ops = f->device->ops;
	struct wlb_error error = {0};
	for (int i = 0; i < COUNT; i++)
		f->pinned[i] = (float)i;
	ops->zero(f->device, f->x, COUNT * sizeof(float));
	ops->event_record(f->device, f->ready, NULL);
	ops->queue_wait(f->device, f->copies, f->ready);
	ops->to_device(f->device, f->copies, f->x, f->pinned, COUNT * sizeof(float));
	ops->event_record(f->device, f->arrived, f->copies);
	if (waits)
		ops->queue_wait(f->device, NULL, f->arrived);
	ops->add(f->device, f->x, f->x, COUNT);
	ops->to_host_start(f->device, NULL, f->back, f->x, COUNT * sizeof(float));
	ops->event_record(f->device, f->ready, NULL);
	assert_int_equal(ops->event_wait(f->device, f->ready, &error), 0);
	int right = 1;
	for (int i = 0; i < COUNT; i++)
		right &= f->back[i] == 2.0f * (float)i;
	assert_int_equal(ops->synchronize(f->device, &error), 0);
	assert_int_equal(ops->event_wait(f->device, f->arrived, &error), 0);
	return right;
}

static void a_missing_event_shows(void **state)
{
	(void)state;
	struct fixture f;
	int right_without = 1;
	for (unsigned seed = 1; seed <= 20; seed++) {
		const struct cuda_host_orders orders = {CUDA_HOST_RANDOM, seed, 1};
		cuda_host_set_orders(&orders);
		open_fixture(&f);
		assert_true(doubles_what_was_copied(&f, 1));
		right_without &= doubles_what_was_copied(&f, 0);
		close_fixture(&f);
	}
	assert_false(right_without);
}

static void the_host_waits_only_where_it_is_counted(void **state)
{
	(void)state;
	const struct cuda_host_orders late = {CUDA_HOST_ASCENDING, 0, 1};
	cuda_host_set_orders(&late);
	struct fixture f;
	struct wlb_error error = {0};
	open_fixture(&f);
	const struct wlb_ops *ops = f.device->ops;
	int64_t before = f.device->host_waits;
	ops->event_record(f.device, f.ready, NULL);
	ops->to_device(f.device, f.copies, f.x, f.pinned, sizeof(float));
	ops->event_record(f.device, f.arrived, f.copies);
	assert_int_equal(ops->event_done(f.device, f.arrived), 0);
	assert_int_equal(f.device->host_waits, before);
	assert_int_equal(ops->event_wait(f.device, f.arrived, &error), 0);
	assert_int_equal(ops->event_done(f.device, f.arrived), 1);
	assert_int_equal(f.device->host_waits, before + 1);
	assert_int_equal(ops->event_wait(f.device, f.ready, &error), 0);
	double elapsed_s = ops->event_elapsed_s(f.device, f.ready, f.arrived);
	assert_true(elapsed_s > -1.0 && elapsed_s < 1.0);
	assert_non_null(ops->queue_handle(f.device, f.copies));
	assert_true(ops->queue_handle(f.device, NULL) != ops->queue_handle(f.device, f.copies));
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_event_shows),
		cmocka_unit_test(the_host_waits_only_where_it_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
