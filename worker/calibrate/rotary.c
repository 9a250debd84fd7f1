#include "worker/calibrate/rotary.h"

#include "worker/calibrate/memory.h"
#include "worker/calibrate/stopwatch.h"

enum { TOKENS = 1024 };

struct rotary {
	void *angles;       /* [TOKENS, head_dim] */
	int32_t *positions; /* device memory; [TOKENS] */
	int head_dim;
};

static void make_angles(struct wlb_device *device, void *context)
{
	const struct rotary *r = context;
	device->ops->rope_angles(device, r->angles, r->positions, TOKENS, r->head_dim, 1e4);
}

static int allocate(struct wlb_device *device, struct rotary *r, struct wlb_error *error)
{
	int32_t positions_host[TOKENS];
	for (int32_t i = 0; i < TOKENS; i++)
		positions_host[i] = i;
	r->angles = wlb_calibrate_alloc_reals(device, (int64_t)TOKENS * r->head_dim, error);
	r->positions = r->angles != NULL ? device->ops->alloc(device, sizeof(positions_host), error) : NULL;
	if (r->positions == NULL)
		return -1;
	device->ops->to_device(device, NULL, r->positions, positions_host, sizeof(positions_host));
	return device->ops->synchronize(device, error);
}

int wlb_measure_rotary(struct wlb_device *device, int head_dim, double limit_s, struct wlb_op_time *angle,
                       struct wlb_error *error)
{
	struct rotary rotary = {.head_dim = head_dim};
	double seconds = 0.0;
	int rc = allocate(device, &rotary, error);
	if (rc == 0)
		rc = wlb_stopwatch(device, make_angles, &rotary, limit_s, &seconds, error);
	device->ops->release(device, rotary.angles);
	device->ops->release(device, rotary.positions);
	*angle = (struct wlb_op_time){.element_s = seconds / (0.5 * TOKENS * head_dim)};
	return rc;
}
