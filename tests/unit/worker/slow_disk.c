/*
 * wlb-worker on a disk that is slow or stops: takes the same arguments. The linker replaces the library's functions by
 * those below (--wrap) in all code of WLB. Of the calls of one kind on files whose path holds a text, the first are
 * not delayed and each later one waits. From the environment:
 *  - SLOW_DISK_CALL: write, pread or fsync
 *  - SLOW_DISK_PATH: the text that the path holds
 *  - SLOW_DISK_AFTER: how many calls are not delayed
 *  - SLOW_DISK_WAIT_S: how long each later one waits before it continues
 *  - SLOW_DISK_RANK: the rank whose disk it is; every rank where it is not set
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "worker/train/train.h"

static atomic_long calls;

static int is_slow(const char *call, int fd)
{
	const char *slow = getenv("SLOW_DISK_CALL"), *part = getenv("SLOW_DISK_PATH");
	const char *rank = getenv("SLOW_DISK_RANK"), *own = getenv("PMIX_RANK");
	char link[64], path[4096] = "";
	if (slow == NULL || part == NULL || strcmp(slow, call) != 0)
		return 0;
	if (rank != NULL && own != NULL && strcmp(rank, own) != 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, part) != NULL;
}

static void delay(const char *call, int fd)
{
	if (!is_slow(call, fd) || atomic_fetch_add(&calls, 1) < atol(getenv("SLOW_DISK_AFTER")))
		return;
	double wait_s = atof(getenv("SLOW_DISK_WAIT_S"));
	time_t whole_s = (time_t)wait_s;
	nanosleep(&(struct timespec){whole_s, (long)(1e9 * (wait_s - (double)whole_s))}, NULL);
}

ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
int __real_fsync(int fd);

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
	delay("write", fd);
	return __real_write(fd, data, bytes);
}

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
	delay("pread", fd);
	return __real_pread(fd, data, bytes, offset);
}

int __wrap_fsync(int fd)
{
	delay("fsync", fd);
	return __real_fsync(fd);
}

int main(int argc, char **argv)
{
	return wlb_train(argc, argv);
}
