/* Passes the stderr of an srun on to ours. Never blocks on either. */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_SRUN_OUTPUT_H
#define COORDINATOR_WLB_RUN_ATTEMPT_SRUN_OUTPUT_H

#include <limits.h>
#include <poll.h>
#include <stddef.h>

struct wlb_srun_output {
	int fd;               /* srun's stderr; -1 once it is closed */
	char bytes[PIPE_BUF]; /* not passed on yet; a pipe that is ready takes as many without blocking */
	size_t count;
};

/* What to poll: srun's stderr, or ours while it has not taken srun's output. */
struct pollfd wlb_srun_output_side(const struct wlb_srun_output *output);

/* That side is ready: passes bytes on, or reads more where none are left, and closes `fd` at its end. Returns how many
 * were read, from output->bytes on. */
size_t wlb_srun_output_pass(struct wlb_srun_output *output);

#endif
