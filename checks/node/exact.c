#include "checks/node/exact.h"

#include <stdlib.h>
#include <string.h>

#include "checks/node/known_product.h"
#include "checks/node/known_vectors.h"
#include "checks/node/place_children.h"
#include "common/seconds.h"

/* Of a place: factors and results on the device and buffers of OpenBLAS, as counted in /proc/PID/smaps_rollup. */
static const double PLACE_REALS = 2 * 1024.0 * 1024.0;

struct work {
	const struct wlb_places *places;
	struct wlb_known_product products[WLB_KNOWN_PRODUCTS];
	struct wlb_known_vectors vectors;
	enum wlb_dtype dtype;
	double limit_s;
};

struct result {
	int64_t products, vectors; /* that were right */
	int wrong;
	char what[256]; /* the first that was wrong */
};

/* The factors of a product on the device, and its result there and on the host. */
struct loaded {
	void *left, *right, *result, *result_host;
};

static void *upload(struct wlb_device *device, const struct wlb_host_matrix *matrix, struct wlb_error *error)
{
	void *memory = device->ops->alloc(device, wlb_matrix_bytes(matrix), error);
	if (memory != NULL)
		device->ops->to_device(device, NULL, memory, matrix->values, wlb_matrix_bytes(matrix));
	return memory;
}

static int load(struct wlb_device *device, const struct wlb_known_product *product, struct loaded *loaded,
                struct wlb_error *error)
{
	size_t bytes = wlb_matrix_bytes(&product->result);
	loaded->left = upload(device, &product->left, error);
	loaded->right = loaded->left != NULL ? upload(device, &product->right, error) : NULL;
	loaded->result = loaded->right != NULL ? device->ops->alloc(device, bytes, error) : NULL;
	loaded->result_host = malloc(bytes);
	if (loaded->result_host == NULL)
		return wlb_fail(error, "out of memory for results");
	return loaded->result != NULL ? 0 : -1;
}

static void unload(struct wlb_device *device, struct loaded *loaded)
{
	device->ops->release(device, loaded->left);
	device->ops->release(device, loaded->right);
	device->ops->release(device, loaded->result);
	free(loaded->result_host);
}

/* Computes the product once. The result is zeroed before, so that one that is not written is found. */
static int try_product(struct wlb_device *device, const struct wlb_known_product *product, const struct loaded *loaded,
                       struct result *result, struct wlb_error *error)
{
	char name[64], difference[128];
	size_t bytes = wlb_matrix_bytes(&product->result);
	device->ops->zero(device, loaded->result, bytes);
	wlb_known_product_queue(device, product, loaded->result, loaded->left, loaded->right);
	device->ops->to_host(device, loaded->result_host, loaded->result, bytes);
	if (device->ops->synchronize(device, error) < 0)
		return -1;
	if (!wlb_matrix_differs(&product->result, loaded->result_host, difference, sizeof(difference))) {
		result->products++;
		return 0;
	}
	wlb_known_product_name(product, name, sizeof(name));
	snprintf(result->what, sizeof(result->what), "product %s is wrong: %s", name, difference);
	result->wrong = 1;
	return 0;
}

static int try_vectors(struct wlb_device *device, struct wlb_loaded_vectors *vectors, struct result *result,
                       struct wlb_error *error)
{
	int rc = wlb_vectors_try(device, vectors, result->what, sizeof(result->what), error);
	result->wrong = rc == 1;
	result->vectors += rc == 0 ? WLB_VECTOR_OPERATIONS : 0;
	return rc < 0 ? -1 : 0;
}

/* Computes all of them in turn until the time is over or one is wrong, each once at least. */
static int repeat(struct wlb_device *device, const struct work *work, const struct loaded *loaded,
                  struct wlb_loaded_vectors *vectors, struct result *result, struct wlb_error *error)
{
	double until_s = wlb_now_s() + work->limit_s;
	do {
		for (int i = 0; i < WLB_KNOWN_PRODUCTS; i++)
			if (try_product(device, &work->products[i], &loaded[i], result, error) < 0 || result->wrong)
				return result->wrong ? 0 : -1;
		if (try_vectors(device, vectors, result, error) < 0 || result->wrong)
			return result->wrong ? 0 : -1;
	} while (wlb_now_s() < until_s);
	return 0;
}

static int check_device(struct wlb_device *device, const struct work *work, struct result *result,
                        struct wlb_error *error)
{
	struct loaded loaded[WLB_KNOWN_PRODUCTS] = {0};
	struct wlb_loaded_vectors vectors;
	int rc = wlb_vectors_load(device, &work->vectors, &vectors, error);
	for (int i = 0; i < WLB_KNOWN_PRODUCTS && rc == 0; i++)
		rc = load(device, &work->products[i], &loaded[i], error);
	if (rc == 0)
		rc = repeat(device, work, loaded, &vectors, result, error);
	for (int i = 0; i < WLB_KNOWN_PRODUCTS; i++)
		unload(device, &loaded[i]);
	wlb_vectors_unload(device, &vectors);
	return rc;
}

static int check_place(int index, const void *context, void *result, struct wlb_error *error)
{
	const struct work *work = context;
	struct wlb_device *device = wlb_place_open(&work->places->list[index], work->dtype, error);
	int rc = device != NULL ? check_device(device, work, result, error) : -1;
	wlb_device_close(device);
	return wlb_place_end(&work->places->list[index], rc);
}

static void judge(const struct wlb_children *children, const struct wlb_places *places, struct wlb_check_report *report)
{
	int64_t products = 0, vectors = 0;
	int wrong = 0;
	const struct result *first = NULL;
	const char *name = "";
	for (int i = 0; i < children->count; i++) {
		const struct result *result = wlb_child_result(children, i);
		products += result->products;
		vectors += result->vectors;
		if (result->wrong && wrong++ == 0) {
			first = result;
			name = places->list[i].name;
		}
	}
	if (first == NULL && wlb_place_children_in_use(children, places, "products", report))
		return;
	struct wlb_finding *finding =
		first == NULL ? wlb_report_add(report, "products", WLB_CHECK_OK,
	                                       "%lld products and %lld operations on vectors of %s are exact",
	                                       (long long)products, (long long)vectors, wlb_places_text(places).text)
			      : wlb_report_add(report, "products", WLB_CHECK_FAILED, "%s: %s%s", name, first->what,
	                                       wlb_others_text(wrong).text);
	wlb_finding_limit(finding, "no bit differs");
}

/* Makes the known results, and runs and judges the check on all places. Returns -1 with the reason. */
static int run(struct work *work, uint64_t seed, struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_children children = {0};
	int rc = wlb_known_products_make(work->dtype, seed, work->products, error);
	if (rc == 0)
		rc = wlb_known_vectors_make(work->dtype, seed, &work->vectors, error);
	if (rc == 0)
		rc = wlb_place_children_run(&children, work->places, sizeof(struct result), check_place, work,
		                            work->limit_s, error);
	if (rc == 0)
		rc = wlb_place_children_judge(&children, work->places, "products", report, error);
	if (rc == 1)
		judge(&children, work->places, report);
	wlb_children_free(&children);
	wlb_known_vectors_free(&work->vectors);
	wlb_known_products_free(work->products);
	return rc < 0 ? -1 : 0;
}

int wlb_check_exact(const struct wlb_check_options *options, const struct wlb_places *places, double limit_s,
                    struct wlb_check_report *report, struct wlb_error *error)
{
	enum wlb_dtype dtype = (enum wlb_dtype)options->dtype;
	struct wlb_error why;
	if (wlb_places_lack_memory(places, PLACE_REALS * (double)wlb_dtype_bytes(dtype), &why)) {
		wlb_report_add(report, "products", WLB_CHECK_NOT_CHECKED, "%.300s", why.message);
		return 0;
	}
	struct work *work = calloc(1, sizeof(*work));
	if (work == NULL)
		return wlb_fail(error, "out of memory for known results");
	work->places = places;
	work->dtype = dtype;
	work->limit_s = limit_s;
	int rc = run(work, (uint64_t)options->seed, report, error);
	free(work);
	return rc;
}
