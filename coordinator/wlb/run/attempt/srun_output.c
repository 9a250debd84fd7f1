#include "coordinator/wlb/run/attempt/srun_output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct pollfd wlb_srun_output_side(const struct wlb_srun_output *output)
{
	return output->count > 0 ? (struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}
	                         : (struct pollfd){.fd = output->fd, .events = POLLIN};
}

/* If no process reads our stderr any more, srun's output is lost, but the run continues. */
static void write_bytes(struct wlb_srun_output *output)
{
	ssize_t n = write(STDERR_FILENO, output->bytes, output->count);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		n = (ssize_t)output->count;
	output->count -= (size_t)n;
	memmove(output->bytes, output->bytes + n, output->count);
}

size_t wlb_srun_output_pass(struct wlb_srun_output *output)
{
	if (output->count > 0) {
		write_bytes(output);
		return 0;
	}
	ssize_t n = read(output->fd, output->bytes, sizeof(output->bytes));
	if (n > 0) {
		output->count = (size_t)n;
	} else {
		close(output->fd);
		output->fd = -1;
	}
	return output->count;
}
