#include "coordinator/wlb/run/follow/hook.h"

#include <fcntl.h>
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

static bool find_folder(const struct wlb_run *run, char *folder)
{
	char program[PATH_MAX], path[PATH_MAX + 64], resolved[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (run->options.no_hook || run->config.no_hook || length <= 0)
		return false;
	program[length] = '\0';
	*strrchr(program, '/') = '\0';
	snprintf(path, sizeof(path), "%s/../share/wlb/python/hook", program);
	/* PYTHONPATH has a colon between folders. */
	if (realpath(path, resolved) == NULL || strchr(resolved, ':') != NULL)
		return false;
	strcpy(folder, resolved);
	return is_safe(folder, ".") && is_safe(folder, "sitecustomize.py") && is_safe(folder, "torch_hook.py");
}

void wlb_run_hook_copy(const struct wlb_run_job *job, const char *attempt_id, char path[PATH_MAX])
{
	int length = snprintf(path, PATH_MAX, "%s/hook-%u-%s.jsonl", job->spool_dir, job->job_id, attempt_id);
	if (job->spool_dir[0] != '/' || length < 0 || length >= PATH_MAX)
		path[0] = '\0';
}

static bool has_node(const struct wlb_attempt *attempt, const char *node)
{
	for (int i = 0; i < attempt->node_count; i++)
		if (strcmp(attempt->nodes[i], node) == 0)
			return true;
	return false;
}

bool wlb_run_hook_find(const struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_run_hook *hook)
{
	*hook = (struct wlb_run_hook){.node = run->job.this_node};
	snprintf(hook->file, sizeof(hook->file), "/tmp/wlb-hook-%s.jsonl", attempt->id);
	if (!find_folder(run, hook->folder))
		return false;
	if (attempt->node_count == 0 || has_node(attempt, run->job.this_node))
		return true;
	hook->node = attempt->nodes[0];
	wlb_run_hook_copy(&run->job, attempt->id, hook->copy);
	return hook->copy[0] != '\0';
}

const char *wlb_run_hook_read_from(const struct wlb_run_hook *hook)
{
	return hook->copy[0] != '\0' ? hook->copy : hook->file;
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
