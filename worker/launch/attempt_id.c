#include "worker/launch/attempt_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UUID_LENGTH = 36 };

int wlb_launch_new_id(char *id, size_t size, struct wlb_error *error)
{
	const char *path = "/proc/sys/kernel/random/uuid";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 && size > UUID_LENGTH ? read(fd, id, UUID_LENGTH) : -1;
	int cause = errno;
	if (fd >= 0)
		close(fd);
	if (length != UUID_LENGTH)
		return wlb_fail(error, "%s: cannot be read for an id: %s", path, strerror(cause));
	id[UUID_LENGTH] = '\0';
	return 0;
}

int wlb_launch_attempt_id(char *id, size_t size, struct wlb_error *error)
{
	const char *given = getenv("WLB_ATTEMPT_ID");
	id[0] = '\0';
	if (getenv("WLB_RUN_ID") == NULL)
		return 0;
	if (given == NULL)
		return wlb_launch_new_id(id, size, error);
	if (strlen(given) >= size)
		return wlb_fail(error, "WLB_ATTEMPT_ID '%.100s...': it must be a UUID", given);
	snprintf(id, size, "%s", given);
	return 0;
}
