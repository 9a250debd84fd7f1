/* The whole model: against a slow reference, against finite differences, and packed in different ways. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/reference.h"
#include "tests/unit/worker/tiny.h"

static void assert_close(double value, double expected, double tolerance, const char *what)
{
	if (!(fabs(value - expected) <= tolerance * fmax(1.0, fabs(expected))))
		fail_msg("%s: %.17g, expected %.17g", what, value, expected);
}

static void forward_equals_reference(void **state)
{
	for (int tied = 0; tied <= 1; tied++) {
		struct tiny tiny = tiny_open(tied);
		double expected = 0.0;
		for (int d = 0; d < 3; d++)
			expected += reference_loss(tiny.parameters, tiny_documents[d].tokens, tiny_documents[d].length);
		assert_close(tiny_pass(&tiny, tiny_documents, 3, 1.0, 0), expected, 1e-13, "loss");
		tiny_close(&tiny);
	}
	(void)state;
}

static double loss_at(struct tiny *tiny, double *w, double value)
{
	double saved = *w;
	*w = value;
	double loss = tiny_pass(tiny, tiny_documents, 3, 1.0, 0);
	*w = saved;
	return loss;
}

/* Central differences of fourth order. */
static double slope(struct tiny *tiny, double *w)
{
	const double h = 2e-4;
	double near = loss_at(tiny, w, *w + h) - loss_at(tiny, w, *w - h);
	double far = loss_at(tiny, w, *w + 2.0 * h) - loss_at(tiny, w, *w - 2.0 * h);
	return (8.0 * near - far) / (12.0 * h);
}

/* Every parameter; the gradient of the mean loss, as training takes it. */
static void check_gradients(int tied)
{
	const double scale = 1.0 / 13.0;
	struct tiny tiny = tiny_open(tied);
	struct wlb_parameters *p = tiny.parameters;
	tiny_pass(&tiny, tiny_documents, 3, scale, 1);
	for (int i = 0; i < p->count; i++) {
		double *w = wlb_weight(p, i);
		const double *gradient = wlb_gradient(p, i);
		for (int64_t e = 0; e < p->tensors[i].rows * p->tensors[i].cols; e++)
			assert_close(gradient[e], scale * slope(&tiny, &w[e]), 1e-9, p->tensors[i].name);
	}
	tiny_close(&tiny);
}

static void gradients_equal_finite_differences(void **state)
{
	(void)state;
	check_gradients(0);
}

static void gradients_of_tied_embeddings(void **state)
{
	(void)state;
	check_gradients(1);
}

/* Documents in one micro-batch, each in its own, and in another order: the same loss, the same gradients. */
static void packing_changes_nothing(void **state)
{
	struct tiny tiny = tiny_open(0);
	struct wlb_parameters *p = tiny.parameters;
	size_t bytes = p->elements * sizeof(double);
	double together = tiny_pass(&tiny, tiny_documents, 3, 0.1, 1), apart = 0.0;
	double *gradients = malloc(bytes);
	assert_non_null(gradients);
	memcpy(gradients, p->gradients, bytes);

	memset(p->gradients, 0, bytes);
	for (int d = 2; d >= 0; d--)
		apart += tiny_pass(&tiny, &tiny_documents[d], 1, 0.1, 1);
	assert_close(apart, together, 1e-13, "loss apart");
	for (size_t e = 0; e < p->elements; e++)
		assert_close(((double *)p->gradients)[e], gradients[e], 1e-12, "gradient apart");

	struct tiny_document turned[3] = {tiny_documents[2], tiny_documents[0], tiny_documents[1]};
	memset(p->gradients, 0, bytes);
	assert_close(tiny_pass(&tiny, turned, 3, 0.1, 1), together, 1e-13, "loss turned");
	for (size_t e = 0; e < p->elements; e++)
		assert_close(((double *)p->gradients)[e], gradients[e], 1e-12, "gradient turned");
	free(gradients);
	tiny_close(&tiny);
	(void)state;
}

static void parameters_are_counted(void **state)
{
	for (int tied = 0; tied <= 1; tied++) {
		struct tiny tiny = tiny_open(tied);
		int64_t elements = 0;
		for (int i = 0; i < tiny.parameters->count; i++)
			elements += tiny.parameters->tensors[i].rows * tiny.parameters->tensors[i].cols;
		assert_int_equal(elements, wlb_model_parameters(&tiny.parameters->shape));
		tiny_close(&tiny);
	}
	(void)state;
}

static void piece_that_does_not_fit_is_refused(void **state)
{
	struct wlb_error error = {0};
	struct tiny tiny = tiny_open(0);
	wlb_micro_batch_clear(tiny.batch);
	assert_int_equal(wlb_micro_batch_add(tiny.batch, tiny_documents[2].tokens, 7, &error), 0);
	assert_int_equal(wlb_micro_batch_add(tiny.batch, tiny_documents[2].tokens, 7, &error), 0);
	assert_int_equal(wlb_micro_batch_add(tiny.batch, tiny_documents[2].tokens, 7, &error), -1);
	assert_string_equal(error.message, "a piece of 7 tokens: the micro-batch has room for 1 to 2");
	tiny_close(&tiny);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forward_equals_reference),     cmocka_unit_test(gradients_equal_finite_differences),
		cmocka_unit_test(gradients_of_tied_embeddings), cmocka_unit_test(packing_changes_nothing),
		cmocka_unit_test(parameters_are_counted),       cmocka_unit_test(piece_that_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
