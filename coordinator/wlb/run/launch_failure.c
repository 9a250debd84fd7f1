#include "coordinator/wlb/run/launch_failure.h"

#include <stdio.h>
#include <string.h>

bool wlb_launch_failure_read(struct wlb_launch_failure *failure, const char *line)
{
	struct wlb_launch_failure found = {.known = true, .rank = -1};
	/* Not only at the beginning of the line: a task may have died before it ended its own line. */
	const char *at = strstr(line, "srun: error: ");
	if (at == NULL)
		return false;
	if (sscanf(at, "srun: error: task %9d launch failed: %127[^\n]", &found.rank, found.why) != 2 ||
	    found.rank < 0) {
		found.rank = -1;
		if (sscanf(at, "srun: error: Task launch for %*s failed on node %255[^: ]: %127[^\n]", found.node,
		           found.why) != 2)
			return false;
	}
	*failure = found;
	return true;
}
