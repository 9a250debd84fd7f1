#include "coordinator/wlb/run/follow/hook.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether nobody but root and this account can change the file or folder. */
static bool is_safe(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat about;
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) || stat(path, &about) != 0)
		return false;
	return (about.st_uid == 0 || about.st_uid == geteuid()) && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool wlb_run_hook_folder(const struct wlb_run *run, char *folder, size_t size)
{
	char program[PATH_MAX], path[PATH_MAX + 64], resolved[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (run->options.no_hook || run->config.no_hook || length <= 0)
		return false;
	program[length] = '\0';
	*strrchr(program, '/') = '\0';
	snprintf(path, sizeof(path), "%s/../share/wlb/python/hook", program);
	/* PYTHONPATH has a colon between folders. */
	if (realpath(path, resolved) == NULL || strchr(resolved, ':') != NULL || strlen(resolved) >= size)
		return false;
	strcpy(folder, resolved);
	return is_safe(folder, ".") && is_safe(folder, "sitecustomize.py") && is_safe(folder, "torch_hook.py");
}

void wlb_run_hook_file(const char *attempt_id, char *path, size_t size)
{
	snprintf(path, size, "/tmp/wlb-hook-%s.jsonl", attempt_id);
}

bool wlb_run_hook_file_make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool wlb_run_hook_file_is_there(const char *path)
{
	struct stat about;
	return lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid();
}
