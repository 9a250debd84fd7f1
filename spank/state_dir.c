#include "spank/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a folder that is ours and that no other user may write; -1 otherwise. */
static int open_folder(const char *path, bool make)
{
	struct stat about;
	if (make && mkdir(path, 0755) != 0 && errno != EEXIST)
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &about) == 0 && about.st_uid == geteuid() && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* If slurmd does not run as root, its user may be unable to write state_dir. */
int wlb_state_dir_open(const struct wlb_spank_args *args, bool make)
{
	char own[64];
	int fd = open_folder(args->state_dir, make);
	if (fd >= 0 || geteuid() == 0)
		return fd;
	snprintf(own, sizeof(own), "/tmp/wlb-%u", geteuid());
	return open_folder(own, make);
}

/* From slurmstepd's own environment: in the job's environment it is the node of the script. */
static bool name_note(uint32_t job_id, const char *end, char *name, size_t size)
{
	const char *node = getenv("SLURMD_NODENAME");
	errno = EINVAL;
	if (node == NULL || node[0] == '\0' || node[0] == '.' || strchr(node, '/') != NULL)
		return false;
	return snprintf(name, size, "%s.%u%s", node, job_id, end) < (int)size;
}

/* Opens the note, and then removes its name if so wished. */
static int open_note(const struct wlb_spank_args *args, uint32_t job_id, const char *end, int flags, bool take)
{
	char name[NAME_MAX + 1];
	if (!name_note(job_id, end, name, sizeof(name)))
		return -1;
	int state = wlb_state_dir_open(args, (flags & O_CREAT) != 0);
	if (state < 0)
		return -1;
	int fd = openat(state, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600), failed = errno;
	if (fd >= 0 && take)
		unlinkat(state, name, 0);
	close(state);
	errno = failed;
	return fd;
}

int wlb_state_note_open(const struct wlb_spank_args *args, uint32_t job_id, const char *end, int flags)
{
	return open_note(args, job_id, end, flags, false);
}

FILE *wlb_state_note_take(const struct wlb_spank_args *args, uint32_t job_id, const char *end)
{
	int fd = open_note(args, job_id, end, O_RDONLY, true);
	FILE *note = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (fd >= 0 && note == NULL)
		close(fd);
	return note;
}
