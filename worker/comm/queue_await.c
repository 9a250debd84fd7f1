#include "worker/comm/queue_await.h"

#include <time.h>

#include "common/seconds.h"

int wlb_queue_await(struct wlb_device *device, struct wlb_queue *queue, double began_s, double limit_s,
                    const char *what, struct wlb_error *error)
{
	const struct wlb_ops *ops = device->ops;
	struct wlb_event *end = ops->event_new(device, 0, error);
	if (end == NULL)
		return -1;
	ops->event_record(device, end, queue);
	for (long polls = 0; !ops->event_done(device, end); polls++) {
		if (wlb_now_s() - began_s > limit_s)
			return wlb_fail(error, "%s has taken more than %.1f s", what, limit_s);
		if (polls > 1000)
			nanosleep(&(struct timespec){.tv_nsec = 100000L}, NULL);
	}
	ops->event_free(device, end);
	return 0;
}
