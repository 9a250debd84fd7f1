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
#include "coordinator/wlb/child_output.h"
#include "coordinator/wlb/delivery/start_self.h"

enum {
	FOLDERS_MAX = 256,
	CLUSTER_BYTES = 64,
	LIST_BYTES_MAX = FOLDERS_MAX * (CLUSTER_BYTES + PATH_MAX),
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

static int print_cluster(void)
{
	char name[CLUSTER_BYTES];
	if (wlb_slurm_open(NULL) != 0 || !wlb_slurm_config("ClusterName", name, sizeof(name)))
		return 1;
	printf("%s\n", name);
	return fflush(stdout);
}

/* The cluster of this process: in a job Slurm names it, elsewhere slurmctld is asked, once. "": not known. */
static const char *own_cluster(void)
{
	static char name[CLUSTER_BYTES];
	static bool is_asked;
	const char *of_job = getenv("SLURM_CLUSTER_NAME");
	if (of_job != NULL && *of_job != '\0')
		return of_job;
	if (!is_asked && wlb_output_of_function(print_cluster, name, sizeof(name)) != 0)
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	is_asked = true;
	return name;
}

/* A line is "CLUSTER:FOLDER", or the FOLDER alone where the cluster was not known. NULL: it is neither. */
static const char *folder_of(const char *line)
{
	const char *folder = strchr(line, '/');
	return folder == line || (folder != NULL && folder[-1] == ':') ? folder : NULL;
}

/* A folder of a cluster that was not known counts as one of every cluster. */
static bool is_of_cluster(const char *line, const char *cluster)
{
	size_t length = (size_t)(folder_of(line) - line);
	return length == 0 || (length == strlen(cluster) + 1 && strncmp(line, cluster, length - 1) == 0);
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
		if (folder_of(line) != NULL && (list[*count] = strdup(line)) != NULL)
			(*count)++;
	free(text);
	if (*count > 0)
		return list;
	free(list);
	return NULL;
}

/* Whether the folder is listed, for whichever cluster. */
static bool is_listed(char *const *list, int count, const char *dir)
{
	for (int i = 0; i < count; i++)
		if (strcmp(folder_of(list[i]), dir) == 0)
			return true;
	return false;
}

/* Removes the lines of `dir` that are of the cluster; returns whether one was there. */
static bool remove_lines(char **list, int *count, const char *dir, const char *cluster)
{
	int kept = 0;
	for (int i = 0; i < *count; i++) {
		if (strcmp(folder_of(list[i]), dir) == 0 && is_of_cluster(list[i], cluster))
			free(list[i]);
		else
			list[kept++] = list[i];
	}
	bool is_removed = kept < *count;
	*count = kept;
	return is_removed;
}

/* Writes the list, then `dir` of the cluster where it is not NULL; the oldest is dropped where there are too many. */
static void write_list(const char *path, char *const *list, int count, const char *cluster, const char *dir)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	if (out == NULL)
		return;
	for (int i = dir != NULL && count == FOLDERS_MAX ? 1 : 0; i < count; i++)
		fprintf(out, "%s\n", list[i]);
	if (dir != NULL)
		fprintf(out, "%s%s%s\n", cluster, *cluster != '\0' ? ":" : "", dir);
	if (fclose(out) == 0 && length > 0)
		wlb_file_write(path, text, length, 0600, NULL);
	else
		unlink(path);
	free(text);
}

/* Makes the folder of the list and returns its lock; -1: there is none. */
static int open_lock(const char *path)
{
	char folder[PATH_MAX], lock_path[PATH_MAX];
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (wlb_dir_make(folder, 0700, NULL) != 0 || list_path(lock_path, "pending.lock") != 0)
		return -1;
	return wlb_own_file_open(lock_path, O_RDWR | O_CREAT, NULL);
}

static void set_listed(const char *dir, bool present)
{
	char path[PATH_MAX];
	int count;
	if (dir[0] != '/' || strchr(dir, '\n') != NULL || strlen(dir) >= PATH_MAX || list_path(path, "pending") != 0 ||
	    (!present && access(path, F_OK) != 0))
		return;
	const char *cluster = own_cluster();
	int fd = open_lock(path);
	if (fd < 0)
		return;
	if (wlb_own_file_lock(fd, LOCK_MS)) {
		char **list = read_list(path, &count);
		bool stays = present && *cluster == '\0' && is_listed(list, count, dir);
		if (!stays && (remove_lines(list, &count, dir, cluster) || present))
			write_list(path, list, count, cluster, present ? dir : NULL);
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
	int lines = 0, kept = 0;
	char **list = list_path(path, "pending") == 0 ? read_list(path, &lines) : NULL;
	const char *cluster = list != NULL ? own_cluster() : "";
	for (int i = 0; i < lines; i++) {
		if (is_of_cluster(list[i], cluster)) {
			const char *folder = folder_of(list[i]);
			memmove(list[i], folder, strlen(folder) + 1);
			list[kept++] = list[i];
		} else {
			free(list[i]);
		}
	}
	*count = kept;
	return list;
}

void wlb_pending_deliver(void)
{
	char path[PATH_MAX];
	if (list_path(path, "pending") == 0 && access(path, R_OK) == 0)
		wlb_start_detached((const char *const[]){"wlb", "flush", "--quiet", "--wait", "10", NULL});
}
