/*
 * For LD_PRELOAD: a process writes at most THROTTLE_BYTES_S bytes a second to the checkpoint that it saves, as one on a
 * disk of that speed would, whatever the real one is.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_of_checkpoint(int fd)
{
	char link[64], path[4096];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	return strstr(path, ".partial/") != NULL;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
	ssize_t (*real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	ssize_t written = real(fd, data, bytes);
	const char *limit = getenv("THROTTLE_BYTES_S");
	if (limit != NULL && written > 0 && is_of_checkpoint(fd)) {
		double seconds = (double)written / atof(limit), whole_s = floor(seconds);
		nanosleep(&(struct timespec){(time_t)whole_s, (long)(1e9 * (seconds - whole_s))}, NULL);
	}
	return written;
}
