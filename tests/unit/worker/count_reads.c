/*
 * wlb-worker's training, with the same arguments, that counts what it reads: when it ends it appends a line with the
 * bytes that pread returned of files whose path holds the text COUNT_READS_PATH to the file COUNT_READS_TO. Without it
 * it counts nothing. The linker replaces pread in all code of WLB (--wrap).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/train/train.h"

static atomic_long bytes_read;

ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
	char link[64], path[4096] = "";
	const char *part = getenv("COUNT_READS_PATH");
	ssize_t got = __real_pread(fd, data, bytes, offset);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (part != NULL && got > 0 && readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, part) != NULL)
		atomic_fetch_add(&bytes_read, got);
	return got;
}

int main(int argc, char **argv)
{
	int code = wlb_train(argc, argv);
	const char *name = getenv("COUNT_READS_TO");
	FILE *to = name != NULL ? fopen(name, "a") : NULL;
	if (to != NULL) {
		fprintf(to, "%ld\n", atomic_load(&bytes_read));
		fclose(to);
	}
	return code;
}
