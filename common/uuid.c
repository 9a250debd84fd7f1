#include "common/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int wlb_uuid_make(char *id, size_t size, struct wlb_error *error)
{
	const char *path = "/proc/sys/kernel/random/uuid";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 && size > WLB_UUID_LENGTH ? read(fd, id, WLB_UUID_LENGTH) : -1;
	int cause = errno;
	if (fd >= 0)
		close(fd);
	if (length != WLB_UUID_LENGTH)
		return wlb_fail(error, "%s: cannot be read for an id: %s", path, strerror(cause));
	id[WLB_UUID_LENGTH] = '\0';
	return 0;
}
