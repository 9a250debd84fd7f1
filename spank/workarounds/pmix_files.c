#include "spank/workarounds/pmix_files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/child.h"

enum {
	DESCRIPTORS_MOST = 256, /* slurmstepd has a few when the plugins are loaded; its socket is among the first */
	REMOVE_MS = 10000,
	KILL_MS = 500, /* of REMOVE_MS */
};

/* Writes the path of a bound socket; "" for any other descriptor. */
static void get_socket_path(int fd, char *path, size_t size)
{
	struct sockaddr_un address = {0};
	socklen_t length = sizeof(address);
	path[0] = '\0';
	if (getsockname(fd, (struct sockaddr *)&address, &length) == 0 && address.sun_family == AF_UNIX)
		snprintf(path, size, "%.*s", (int)sizeof(address.sun_path), address.sun_path);
}

bool wlb_pmix_files_find_spool(uint32_t job_id, uint32_t step_id, char *spool, char *node, size_t size)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1], end[32];
	size_t end_length = (size_t)snprintf(end, sizeof(end), "_%u.%u", job_id, step_id);
	for (int fd = 0; fd < DESCRIPTORS_MOST; fd++) {
		get_socket_path(fd, path, sizeof(path));
		char *name = strrchr(path, '/');
		size_t length = name != NULL ? strlen(name + 1) : 0;
		if (length <= end_length || strcmp(name + 1 + length - end_length, end) != 0)
			continue;
		snprintf(spool, size, "%.*s", (int)(name - path), path);
		snprintf(node, size, "%.*s", (int)(length - end_length), name + 1);
		return true;
	}
	return false;
}

bool wlb_pmix_socket_is_stale(const char *socket_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	if (lstat(socket_path, &status) != 0 || !S_ISSOCK(status.st_mode) ||
	    strlen(socket_path) >= sizeof(address.sun_path))
		return false;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	strcpy(address.sun_path, socket_path);
	bool refused =
		fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return refused;
}

/* Waits for REMOVE_MS at most, since a file system may not answer; the child is ended then. Returns whether it has done
 * its work. */
static bool wait_for_child(pid_t pid)
{
	int status;
	if (wlb_child_wait(pid, REMOVE_MS - KILL_MS, &status) == 0) {
		kill(pid, SIGKILL);
		wlb_child_wait(pid, KILL_MS, &status);
	}
	return wlb_child_code(status) == 0;
}

/* rm follows no link, also while somebody replaces a directory by one. It has no descriptor of slurmstepd: a process of
 * the job's user can be traced by that user. */
static _Noreturn void become_rm(uid_t user, gid_t group, const char *path)
{
	if (user != geteuid() && (setgroups(0, NULL) != 0 || setgid(group) != 0 || setuid(user) != 0))
		_exit(1);
	closefrom(0);
	if (open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2 && chdir("/") == 0)
		execl("/bin/rm", "rm", "-rf", "--one-file-system", "--", path, NULL);
	_exit(1);
}

/* Returns whether nothing is left. Only rm looks at the path: slurmstepd, which is root and cannot be ended, would wait
 * for a file system that the job's user has chosen. */
static bool remove_as(uid_t user, gid_t group, const char *path)
{
	pid_t pid = fork();
	if (pid == 0)
		become_rm(user, group, path);
	return pid > 0 && wait_for_child(pid);
}

bool wlb_pmix_files_remove(const struct wlb_pmix_files *files, uid_t user, gid_t group)
{
	bool are_removed = remove_as(user, group, files->tasks_dir);
	are_removed = remove_as(geteuid(), getegid(), files->server_dir) && are_removed;
	/* As the last, as the plugin does: while it is there, the next step tries again. */
	return (unlink(files->socket) == 0 || errno == ENOENT) && are_removed;
}
