#include "coordinator/wlb/delivery/pending.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "common/own_file.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/delivery/start_self.h"

enum {
	FOLDERS_MAX = 256,
	LIST_BYTES_MAX = FOLDERS_MAX * PATH_MAX,
	LOCK_MS = 200 /* longer than a small write takes */
};

static int list_path(char path[PATH_MAX], const char *name)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	const struct passwd *user = home == NULL ? getpwuid(getuid()) : NULL;
	int n;
	if (state != NULL && state[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/wlb/%s", state, name);
	else if (home != NULL || user != NULL)
		n = snprintf(path, PATH_MAX, "%s/.local/state/wlb/%s", home != NULL ? home : user->pw_dir, name);
	else
		return -1;
	return n < PATH_MAX && path[0] == '/' ? 0 : -1;
}

static char **read_list(const char *path, int *count)
{
	char *text, *rest;
	*count = 0;
	if (wlb_file_read(path, LIST_BYTES_MAX, &text, NULL, NULL) != 0)
		return NULL;
	char **list = calloc(FOLDERS_MAX, sizeof(*list));
	for (char *line = strtok_r(text, "\n", &rest); list != NULL && line != NULL && *count < FOLDERS_MAX;
	     line = strtok_r(NULL, "\n", &rest))
		if (line[0] == '/' && (list[*count] = strdup(line)) != NULL)
			(*count)++;
	free(text);
	if (*count > 0)
		return list;
	free(list);
	return NULL;
}

/* Writes the list without `dir`, then `dir` at the end if it is `present`. */
static void write_list(const char *path, char *const *list, int count, const char *dir, bool present)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	if (out == NULL)
		return;
	for (int i = present && count == FOLDERS_MAX ? 1 : 0; i < count; i++)
		if (strcmp(list[i], dir) != 0)
			fprintf(out, "%s\n", list[i]);
	if (present)
		fprintf(out, "%s\n", dir);
	if (fclose(out) == 0 && length > 0)
		wlb_file_write(path, text, length, 0600, NULL);
	else
		unlink(path);
	free(text);
}

static bool contains(char *const *list, int count, const char *dir)
{
	for (int i = 0; i < count; i++)
		if (strcmp(list[i], dir) == 0)
			return true;
	return false;
}

static void set_listed(const char *dir, bool present)
{
	char path[PATH_MAX], lock_path[PATH_MAX], folder[PATH_MAX];
	int count;
	if (dir[0] != '/' || strchr(dir, '\n') != NULL || strlen(dir) >= PATH_MAX || list_path(path, "pending") != 0 ||
	    list_path(lock_path, "pending.lock") != 0)
		return;
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (!present && access(path, F_OK) != 0)
		return;
	if (wlb_dir_make(folder, 0700, NULL) != 0)
		return;
	int fd = wlb_own_file_open(lock_path, O_RDWR | O_CREAT, NULL);
	if (fd < 0)
		return;
	if (wlb_own_file_lock(fd, LOCK_MS)) {
		char **list = read_list(path, &count);
		if (contains(list, count, dir) != present)
			write_list(path, list, count, dir, present);
		wlb_strings_free(list, count);
	}
	close(fd);
}

void wlb_pending_add(const char *dir)
{
	set_listed(dir, true);
}

void wlb_pending_remove(const char *dir)
{
	set_listed(dir, false);
}

char **wlb_pending_list(int *count)
{
	char path[PATH_MAX];
	*count = 0;
	return list_path(path, "pending") == 0 ? read_list(path, count) : NULL;
}

void wlb_pending_deliver(void)
{
	char path[PATH_MAX];
	if (list_path(path, "pending") == 0 && access(path, R_OK) == 0)
		wlb_start_detached((const char *const[]){"wlb", "flush", "--quiet", "--wait", "10", NULL});
}
