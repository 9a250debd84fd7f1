#include "munged.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "coordinator/client/credential.h"

static char folder[] = "/tmp/wlb-client-XXXXXX";
static char socket_path[64];
static pid_t daemon_pid;

const char *munged_socket(void)
{
	return socket_path;
}

const char *munged_folder(void)
{
	return folder;
}

static void become_munged(void)
{
	char key[64], options[4][96];
	snprintf(key, sizeof(key), "--key-file=%s/key", folder);
	snprintf(options[0], sizeof(options[0]), "--socket=%s", socket_path);
	snprintf(options[1], sizeof(options[1]), "--pid-file=%s/pid", folder);
	snprintf(options[2], sizeof(options[2]), "--log-file=%s/log", folder);
	snprintf(options[3], sizeof(options[3]), "--seed-file=%s/seed", folder);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("PATH", "/usr/sbin:/usr/bin:/bin:/usr/local/sbin", 1);
	int quiet = open("/dev/null", O_WRONLY);
	dup2(quiet, STDERR_FILENO);
	/* --force: a folder below /tmp is good enough here. */
	execlp("munged", "munged", "--foreground", "--force", "--num-threads=1", key, options[0], options[1],
	       options[2], options[3], NULL);
	_exit(127);
}

int munged_start(void **state)
{
	char key[128], path[64];
	(void)state;
	if (mkdtemp(folder) == NULL || chmod(folder, 0755) != 0 || getrandom(key, sizeof(key), 0) != sizeof(key))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
	if (wlb_file_write(path, key, sizeof(key), 0600, NULL) != 0)
		return -1;
	daemon_pid = fork();
	if (daemon_pid == 0)
		become_munged();
	int64_t deadline_ms = wlb_clock_ms() + 10000;
	while (wlb_clock_left_ms(deadline_ms) > 0) {
		char *credential = wlb_credential_make(socket_path, "", 0, NULL);
		if (credential != NULL) {
			free(credential);
			return 0;
		}
		wlb_clock_sleep_ms(20);
	}
	return -1;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
	(void)about;
	(void)type;
	(void)where;
	return remove(path);
}

int munged_stop(void **state)
{
	(void)state;
	kill(daemon_pid, SIGTERM);
	waitpid(daemon_pid, NULL, 0);
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
