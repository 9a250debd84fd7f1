/* AdamW, clipping and the learning rate against numbers worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/tiny.h"
#include "worker/optimizer/optimizer.h"

static void assert_near(double value, double expected)
{
	if (fabs(value - expected) > 1e-12)
		fail_msg("%.17g, expected %.17g", value, expected);
}

static const struct wlb_optimizer_options options = {
	.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .clip_grad = 0.0};

/* All gradients 0 but one of a matrix and one of a norm. */
static void set_gradients(struct wlb_parameters *p, double matrix, double vector)
{
	memset(p->gradients, 0, p->elements * sizeof(double));
	((double *)wlb_gradient(p, p->layers[0].q))[1] = matrix;
	((double *)wlb_gradient(p, p->final_norm))[2] = vector;
}

static void two_updates_by_hand(void **state)
{
	struct wlb_error error = {0};
	struct tiny tiny = tiny_open(0);
	struct wlb_parameters *p = tiny.parameters;
	struct wlb_optimizer *o = wlb_optimizer_new(p, &options, &error);
	assert_non_null(o);
	double *w = (double *)wlb_weight(p, p->layers[0].q) + 1, *n = (double *)wlb_weight(p, p->final_norm) + 2;
	double norm = 0.0;
	*w = 2.0;
	*n = 1.0;

	set_gradients(p, 3.0, -4.0);
	assert_int_equal(wlb_optimizer_step(o, p, 1, 0.01, &norm, &error), 0);
	assert_near(norm, 5.0);
	/* m = 0.3, v = 0.09; both corrected give 3 and 9: the first update is lr * sign(g), after decay. */
	double w1 = 2.0 - 0.01 * 0.1 * 2.0 - 0.01 * 3.0 / (3.0 + 1e-8);
	assert_near(*w, w1);
	assert_near(*n, 1.0 + 0.01 * 4.0 / (4.0 + 1e-8)); /* no decay of a vector */

	set_gradients(p, 1.0, 0.0);
	assert_int_equal(wlb_optimizer_step(o, p, 2, 0.02, &norm, &error), 0);
	double m = 0.9 * 0.3 + 0.1 * 1.0, v = 0.99 * 0.09 + 0.01 * 1.0;
	double update = m / (1.0 - 0.81) / (sqrt(v / (1.0 - 0.9801)) + 1e-8);
	assert_near(*w, w1 - 0.02 * 0.1 * w1 - 0.02 * update);
	wlb_optimizer_free(o);
	tiny_close(&tiny);
	(void)state;
}

static void clipping_scales_what_is_too_long(void **state)
{
	struct wlb_error error = {0};
	struct wlb_optimizer_options clipped = options;
	clipped.clip_grad = 1.0;
	struct tiny tiny = tiny_open(0);
	struct wlb_parameters *p = tiny.parameters;
	struct wlb_optimizer *o = wlb_optimizer_new(p, &clipped, &error);
	double norm = 0.0;
	size_t at = p->tensors[p->layers[0].q].offset + 1;

	set_gradients(p, 3.0, -4.0);
	assert_int_equal(wlb_optimizer_step(o, p, 1, 0.01, &norm, &error), 0);
	assert_near(norm, 5.0);
	assert_near(((double *)o->m)[at], 0.1 * 3.0 / (5.0 + 1e-6));

	set_gradients(p, 0.3, -0.4);
	assert_int_equal(wlb_optimizer_step(o, p, 2, 0.01, &norm, &error), 0);
	assert_near(norm, 0.5);
	assert_near(((double *)o->m)[at], 0.9 * 0.1 * 3.0 / (5.0 + 1e-6) + 0.1 * 0.3);
	wlb_optimizer_free(o);
	tiny_close(&tiny);
	(void)state;
}

static void gradients_that_are_not_finite_change_nothing(void **state)
{
	struct wlb_error error = {0};
	struct tiny tiny = tiny_open(0);
	struct wlb_parameters *p = tiny.parameters;
	struct wlb_optimizer *o = wlb_optimizer_new(p, &options, &error);
	double norm = 0.0, before = *((double *)wlb_weight(p, p->layers[0].q) + 1);
	set_gradients(p, NAN, 0.0);
	assert_int_equal(wlb_optimizer_step(o, p, 1, 0.01, &norm, &error), -1);
	assert_non_null(strstr(error.message, "not finite"));
	assert_true(*((double *)wlb_weight(p, p->layers[0].q) + 1) == before);
	wlb_optimizer_free(o);
	tiny_close(&tiny);
	(void)state;
}

static void learning_rate_warms_up_and_decays(void **state)
{
	struct wlb_lr_schedule s = {.max_lr = 1.0, .min_lr = 0.1, .warmup_iters = 10, .decay_iters = 110};
	s.decay = WLB_LR_COSINE;
	assert_near(wlb_learning_rate(&s, 1), 0.1);
	assert_near(wlb_learning_rate(&s, 10), 1.0);
	assert_near(wlb_learning_rate(&s, 35), 0.1 + 0.9 * 0.5 * (1.0 + sqrt(0.5)));
	assert_near(wlb_learning_rate(&s, 60), 0.55);
	assert_near(wlb_learning_rate(&s, 110), 0.1);
	assert_near(wlb_learning_rate(&s, 111), 0.1);
	s.decay = WLB_LR_LINEAR;
	assert_near(wlb_learning_rate(&s, 35), 0.1 + 0.9 * 0.75);
	s.decay = WLB_LR_CONSTANT;
	assert_near(wlb_learning_rate(&s, 5), 0.5);
	assert_near(wlb_learning_rate(&s, 1000), 1.0);
	s.warmup_iters = 0;
	assert_near(wlb_learning_rate(&s, 1), 1.0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_updates_by_hand),
		cmocka_unit_test(clipping_scales_what_is_too_long),
		cmocka_unit_test(gradients_that_are_not_finite_change_nothing),
		cmocka_unit_test(learning_rate_warms_up_and_decays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
