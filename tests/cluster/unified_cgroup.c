/*
 * Preloaded into the slurmds of `scripts/cluster start --cgroup`, and so into their slurmstepds, which run in a
 * namespace of cgroups. Slurm's cgroup/v2 refuses a host whose /proc/self/cgroup lists version 1 beside version 2, and
 * takes the cgroup of process 1 for the root, which is outside of the namespace.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void copy_line_of_version_2(int fd)
{
	char line[4096];
	FILE *all = fopen("/proc/self/cgroup", "re");
	while (all != NULL && fgets(line, sizeof(line), all) != NULL)
		if (strncmp(line, "0::", strlen("0::")) == 0)
			(void)!write(fd, line, strlen(line));
	if (all != NULL)
		fclose(all);
}

static int open_cgroup(bool of_process_1)
{
	int fd = memfd_create("cgroup", MFD_CLOEXEC);
	if (of_process_1)
		(void)!write(fd, "0::/\n", strlen("0::/\n"));
	else
		copy_line_of_version_2(fd);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* fopen() of the C library does not come here. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
	va_end(more);
	bool of_process_1 = strcmp(path, "/proc/1/cgroup") == 0;
	return of_process_1 || strcmp(path, "/proc/self/cgroup") == 0 ? open_cgroup(of_process_1)
	                                                              : openat(AT_FDCWD, path, flags, mode);
}
