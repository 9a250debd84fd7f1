/*
 * Preloaded into slurmd, and so into its slurmstepds, where the host has version 1 of cgroups beside version 2: Slurm's
 * cgroup/v2 reads /proc/self/cgroup, and refuses a host that lists anything but the line of version 2 there.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_line_of_version_2(void)
{
	char line[4096];
	FILE *all = fopen("/proc/self/cgroup", "re");
	int fd = memfd_create("cgroup", MFD_CLOEXEC);
	while (all != NULL && fgets(line, sizeof(line), all) != NULL)
		if (strncmp(line, "0::", strlen("0::")) == 0)
			(void)!write(fd, line, strlen(line));
	if (all != NULL)
		fclose(all);
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
	return strcmp(path, "/proc/self/cgroup") == 0 ? open_line_of_version_2() : openat(AT_FDCWD, path, flags, mode);
}
