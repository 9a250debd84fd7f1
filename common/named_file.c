#include "common/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int wlb_named_file_open(const char *path, struct wlb_error *error)
{
	struct stat status;
	char link[64];
	int named = open(path, O_PATH | O_CLOEXEC), fd = -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", named);
	if (named >= 0 && fstat(named, &status) == 0 && !S_ISREG(status.st_mode))
		wlb_fail(error, "%s: is no file", path);
	else if (named < 0 || (fd = open(link, O_RDONLY | O_CLOEXEC)) < 0)
		wlb_fail(error, "%s: %s%s", path, strerror(errno),
		         errno == ENOENT ? "; run this on a host that has the file system of the job" : "");
	if (named >= 0)
		close(named);
	return fd;
}
