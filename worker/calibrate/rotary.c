#include "worker/calibrate/rotary.h"

#include "worker/calibrate/memory.h"
#include "worker/calibrate/stopwatch.h"

enum { TOKENS = 1024, HEADS = 8 };

struct rotary {
	void *x;            /* [TOKENS, HEADS, head_dim] */
	int32_t *positions; /* device memory; [TOKENS] */
	int heads, head_dim;
};

static void rotate(struct wlb_device *device, void *context)
{
	const struct rotary *r = context;
	device->ops->rope(device, r->x, r->positions, TOKENS, r->heads, r->head_dim, 1e4, 1);
}

static int allocate(struct wlb_device *device, struct rotary *r, struct wlb_error *error)
{
	int32_t positions_host[TOKENS];
	for (int32_t i = 0; i < TOKENS; i++)
		positions_host[i] = i;
	r->x = wlb_calibrate_alloc_reals(device, (int64_t)TOKENS * HEADS * r->head_dim, error);
	r->positions = r->x != NULL ? device->ops->alloc(device, sizeof(positions_host), error) : NULL;
	if (r->positions == NULL)
		return -1;
	device->ops->to_device(device, NULL, r->positions, positions_host, sizeof(positions_host));
	return device->ops->synchronize(device, error);
}

int wlb_measure_rotary(struct wlb_device *device, int head_dim, double limit_s, double *angle_s,
                       struct wlb_error *error)
{
	struct rotary rotary = {.head_dim = head_dim, .heads = 1};
	double one_s = 0.0, all_s = 0.0;
	int rc = allocate(device, &rotary, error);
	if (rc == 0)
		rc = wlb_stopwatch(device, rotate, &rotary, 0.5 * limit_s, &one_s, error);
	rotary.heads = HEADS;
	if (rc == 0)
		rc = wlb_stopwatch(device, rotate, &rotary, 0.5 * limit_s, &all_s, error);
	device->ops->release(device, rotary.x);
	device->ops->release(device, rotary.positions);
	double angles_s = one_s - (all_s - one_s) / (HEADS - 1);
	*angle_s = angles_s > 0.0 ? angles_s / (0.5 * TOKENS * head_dim) : 0.0;
	return rc;
}
