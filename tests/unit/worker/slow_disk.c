/*
 * A disk that is slow or stops, for wlb-worker. The linker replaces the library's functions by those below (--wrap) in
 * all code of WLB. Of the calls of one kind on files whose path holds a text, the first are not delayed and each later
 * one waits. From the environment:
 *  - SLOW_DISK_CALL: write, pwrite, read, pread, fsync, scandir, mkdir, rename or renameat2
 *  - SLOW_DISK_PATH: the text that the path holds
 *  - SLOW_DISK_AFTER: how many calls are not delayed
 *  - SLOW_DISK_WAIT_S: how long each later one waits before it continues
 *  - SLOW_DISK_RANK: the rank whose disk it is; every rank where it is not set
 *
 * SLOW_DISK_HOLD names a file of one line that is made and removed while the ranks run: as long as it is there, calls
 * of every kind on files whose path holds its text wait. SLOW_DISK_REFUSE names such a file, too: then calls that write
 * fail as those of an account whose quota is used up.
 */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static void wait_for(double seconds)
{
	time_t whole_s = (time_t)seconds;
	nanosleep(&(struct timespec){whole_s, (long)(1e9 * (seconds - (double)whole_s))}, NULL);
}

static int is_slow(const char *call, const char *path)
{
	const char *slow = getenv("SLOW_DISK_CALL"), *part = getenv("SLOW_DISK_PATH");
	const char *rank = getenv("SLOW_DISK_RANK"), *own = getenv("PMIX_RANK");
	if (slow == NULL || part == NULL || strcmp(slow, call) != 0)
		return 0;
	return (rank == NULL || own == NULL || strcmp(rank, own) == 0) && strstr(path, part) != NULL;
}

/* Whether there is the file that the variable names, and the path holds the text in it. */
static int is_named_by(const char *variable, const char *path)
{
	char part[256] = "";
	const char *name = getenv(variable);
	FILE *file = name != NULL ? fopen(name, "re") : NULL;
	if (file == NULL)
		return 0;
	int has_line = fgets(part, sizeof(part), file) != NULL;
	fclose(file);
	part[strcspn(part, "\n")] = '\0';
	return has_line && part[0] != '\0' && strstr(path, part) != NULL;
}

static void delay(const char *call, const char *path)
{
	while (is_named_by("SLOW_DISK_HOLD", path))
		wait_for(0.01);
	if (is_slow(call, path) && atomic_fetch_add(&calls, 1) >= atol(getenv("SLOW_DISK_AFTER")))
		wait_for(atof(getenv("SLOW_DISK_WAIT_S")));
}

static void find_path(int fd, char path[4096])
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, 4095);
	path[length > 0 ? length : 0] = '\0';
}

static void delay_file(const char *call, int fd)
{
	char path[4096];
	if (getenv("SLOW_DISK_CALL") == NULL && getenv("SLOW_DISK_HOLD") == NULL)
		return;
	find_path(fd, path);
	delay(call, path);
}

/* Returns whether the write fails, with errno. */
static int is_refused(int fd)
{
	char path[4096];
	if (getenv("SLOW_DISK_REFUSE") == NULL)
		return 0;
	find_path(fd, path);
	errno = EDQUOT;
	return is_named_by("SLOW_DISK_REFUSE", path);
}

ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __real_pwrite(int fd, const void *data, size_t bytes, off_t offset);
ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __real_read(int fd, void *data, size_t bytes);
int __real_fsync(int fd);
int __real_mkdir(const char *path, mode_t mode);
int __real_rename(const char *from, const char *to);
int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __real_scandir(const char *dir, struct dirent ***list, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **));

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
	delay_file("write", fd);
	return is_refused(fd) ? -1 : __real_write(fd, data, bytes);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
	delay_file("pwrite", fd);
	return __real_pwrite(fd, data, bytes, offset);
}

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
	delay_file("pread", fd);
	return __real_pread(fd, data, bytes, offset);
}

ssize_t __wrap_read(int fd, void *data, size_t bytes)
{
	delay_file("read", fd);
	return __real_read(fd, data, bytes);
}

int __wrap_scandir(const char *dir, struct dirent ***list, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **))
{
	delay("scandir", dir);
	return __real_scandir(dir, list, filter, compare);
}

int __wrap_fsync(int fd)
{
	delay_file("fsync", fd);
	return __real_fsync(fd);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	delay("mkdir", path);
	return __real_mkdir(path, mode);
}

int __wrap_rename(const char *from, const char *to)
{
	delay("rename", from);
	return __real_rename(from, to);
}

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	delay("renameat2", from);
	return __real_renameat2(from_dir, from, to_dir, to, flags);
}
