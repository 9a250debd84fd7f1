#include "worker/train/transport.h"

#include <stdio.h>

/* The function of a wlb_comm_launcher. */
static int share(void *launch, const char *key, void *blob, size_t bytes, struct wlb_error *error)
{
	return wlb_launch_share(launch, key, blob, bytes, error);
}

int wlb_choose_transport(struct wlb_launch *launch, struct wlb_comm *world, int choice, double limit_s,
                         const char *program, struct wlb_error *error)
{
	const struct wlb_comm_launcher launcher = {.state = launch, .share = share};
	char why[512];
	if (wlb_comm_choose_transport(world, (enum wlb_transport_choice)choice, &launcher, limit_s, why, sizeof(why),
	                              error) < 0)
		return -1;
	if (why[0] != '\0' && launch->rank == 0)
		fprintf(stderr, "%s: messages are carried by MPI through host memory: %s\n", program, why);
	return 0;
}
