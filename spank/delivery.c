#include "spank/delivery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/slurm.h> /* SLURM_BATCH_SCRIPT */

#include "coordinator/client/spool_dir.h"
#include "spank/environment.h"
#include "spank/state_dir.h"
#include "spank/user_process.h"

enum {
	FOLDERS_MAX = 32,
	WORDS = 7,     /* of the command before the folders */
	WAIT_WORD = 4, /* the place of the time for which it waits */
	NOTE_BYTES_MAX = FOLDERS_MAX * PATH_MAX,
	SESSION_MS = 1000, /* for the child to have a session of its own; takes microseconds */
	PROCESSES_MOST =
		16, /* of a user that wait for the coordinator: they are in no job, and so in no job's limits */
};

static const char wait_s[] = "86400", no_wait_s[] = "1";

/* ---- the note ------------------------------------------------------------------------------------------------- */

static bool is_noted(int fd, const char *folder)
{
	char text[NOTE_BYTES_MAX + 1];
	ssize_t length = pread(fd, text, NOTE_BYTES_MAX, 0);
	size_t want = strlen(folder);
	text[length > 0 ? length : 0] = '\0';
	for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL)
		if (strncmp(line, folder, want) == 0 && line[want] == '\n')
			return true;
	return false;
}

static void append_folder(int fd, const char *folder)
{
	char line[PATH_MAX + 1];
	struct stat about;
	int length = snprintf(line, sizeof(line), "%s\n", folder);
	if (folder[0] != '/' || strchr(folder, '\n') != NULL || length >= (int)sizeof(line))
		return;
	if (fstat(fd, &about) == 0 && about.st_size + length <= NOTE_BYTES_MAX && !is_noted(fd, folder))
		(void)!write(fd, line, (size_t)length);
}

/* Notes the folders in which `wlb run` and the workers of this step may keep their records, as far as the environment
 * names such folders. Nothing is looked at there: this is root, and a file system may not answer. */
static void append_folders(spank_t sp, int fd, uid_t owner)
{
	char named[PATH_MAX], submitted[PATH_MAX], folders[WLB_SPOOL_DIRS][PATH_MAX];
	wlb_environment_get(sp, "WLB_SPOOL_DIR", named, sizeof(named));
	if (named[0] == '\0')
		wlb_environment_get(sp, "SLURM_WLB_SPOOL_DIR", named, sizeof(named));
	wlb_environment_get(sp, "SLURM_SUBMIT_DIR", submitted, sizeof(submitted));
	int count = wlb_spool_dir_names(named, submitted, owner, folders);
	for (int i = 0; i < count; i++)
		append_folder(fd, folders[i]);
}

void wlb_delivery_note(spank_t sp, const struct wlb_spank_args *args)
{
	uint32_t job_id = 0, step_id = 0;
	uid_t owner = 0;
	if (spank_get_item(sp, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_UID, &owner) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS)
		return;
	bool batch = step_id == SLURM_BATCH_SCRIPT;
	/* A step on another host than the batch script's finds no note, and makes none. */
	int fd = wlb_state_note_open(args, job_id, "", O_RDWR | O_APPEND | (batch ? O_CREAT | O_TRUNC : 0));
	if (fd >= 0)
		append_folders(sp, fd, owner);
	else if (batch)
		slurm_debug("wlb: %s: cannot be written: records that wait at the job's end wait for the user's next "
		            "wlb command: %s",
		            args->state_dir, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* ---- the process ---------------------------------------------------------------------------------------------- */

struct delivery {
	const struct wlb_spank_args *args;
	uint32_t job_id;
	uid_t uid;
	char *folders[FOLDERS_MAX + 1];
	int count;
	char *note;
	int started; /* closed once the child has a session of its own */
};

/* Each job leaves other files in the folder, too: all of them are looked at. */
static bool has_spool(const char *path)
{
	struct dirent *entry;
	bool found = false;
	DIR *folder = opendir(path);
	if (folder == NULL)
		return false;
	while (!found && (entry = readdir(folder)) != NULL) {
		size_t length = strlen(entry->d_name);
		found = length > 6 && strcmp(entry->d_name + length - 6, ".jsonl") == 0;
	}
	closedir(folder);
	return found;
}

static void set(const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		setenv(name, value, 1);
}

static void make_environment(const struct delivery *delivery, const struct passwd *user, bool from_root)
{
	/* A program that ends all processes of a node finds this one by these two variables. */
	static const char *const kept[] = {"SLURM_CONF", "SLURMD_NODENAME"};
	char *values[2];
	for (int i = 0; i < 2; i++)
		values[i] = getenv(kept[i]) != NULL ? strdup(getenv(kept[i])) : NULL;
	clearenv();
	for (int i = 0; i < 2; i++)
		set(kept[i], values[i]);
	set("PATH", "/usr/local/bin:/usr/bin:/bin");
	set("HOME", user->pw_dir);
	set("USER", user->pw_name);
	set("LOGNAME", user->pw_name);
	/* It is in no job, and so in no job's limits, which a job of the user would leave by tracing it. */
	set("WLB_UNTRACEABLE", from_root ? "yes" : "");
	set("WLB_COORDINATOR", delivery->args->coordinator);
	set("WLB_MUNGE_SOCKET", delivery->args->client.munge_socket);
	set("WLB_COORDINATOR_USER", delivery->args->client.coordinator_user);
}

/* Takes one of the user's places, until the process has ended: its descriptor stays open in `wlb flush`. Returns false
 * if all are taken; the folders are listed then for the user's next command. */
static bool take_place(const struct delivery *delivery)
{
	char name[64];
	int fd = -1, state = wlb_state_dir_open(delivery->args, false);
	for (int i = 0; state >= 0 && fd < 0 && i < PROCESSES_MOST; i++) {
		snprintf(name, sizeof(name), "delivery.uid%u.%d", delivery->uid, i);
		fd = openat(state, name, O_RDONLY | O_CREAT | O_NOFOLLOW, 0600);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
			close(fd);
			fd = -1;
		}
	}
	if (state >= 0)
		close(state);
	return fd >= 0;
}

/* Runs in the child. A user directory may be slow to answer, and so may a folder, but nothing waits for this
 * process. */
static _Noreturn void run_delivery(struct delivery *delivery)
{
	char job_id[16];
	const char *argv[WORDS + FOLDERS_MAX + 1] = {"wlb",  "flush",       "--quiet", "--wait",
	                                             wait_s, "--ended-job", job_id};
	int count = WORDS;
	bool from_root = geteuid() == 0;
	snprintf(job_id, sizeof(job_id), "%" PRIu32, delivery->job_id);
	setsid();
	close(delivery->started);
	wlb_user_process_detach();
	if (!take_place(delivery))
		argv[WAIT_WORD] = no_wait_s;
	const struct passwd *user = getpwuid(delivery->uid);
	if (user == NULL || wlb_user_process_become(user) != 0)
		_exit(1);
	for (int i = 0; i < delivery->count; i++)
		if (has_spool(delivery->folders[i]))
			argv[count++] = delivery->folders[i];
	argv[count] = NULL;
	if (count == WORDS)
		_exit(0);
	make_environment(delivery, user, from_root);
	execv(delivery->args->wlb, (char *const *)argv);
	_exit(127);
}

/* Reads the note and removes it. */
static int read_note(struct delivery *delivery)
{
	char *rest;
	FILE *note = wlb_state_note_take(delivery->args, delivery->job_id, "");
	delivery->note = note != NULL ? calloc(1, NOTE_BYTES_MAX + 1) : NULL;
	if (delivery->note != NULL && fread(delivery->note, 1, NOTE_BYTES_MAX, note) > 0)
		for (char *line = strtok_r(delivery->note, "\n", &rest); line != NULL && delivery->count < FOLDERS_MAX;
		     line = strtok_r(NULL, "\n", &rest))
			delivery->folders[delivery->count++] = line;
	if (note != NULL)
		fclose(note);
	return delivery->count;
}

/* slurmd kills what is left of the epilog's process group, so the child must have left the group before this
 * returns. */
static void start_process(struct delivery *delivery)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	delivery->started = ends[1];
	pid_t child = fork();
	if (child == 0)
		run_delivery(delivery);
	close(ends[1]);
	struct pollfd closed = {.fd = ends[0], .events = POLLIN};
	if (child > 0)
		poll(&closed, 1, SESSION_MS);
	else
		slurm_error("wlb: records of this job are not delivered now: fork: %s", strerror(errno));
	close(ends[0]);
}

void wlb_delivery_start(spank_t sp, const struct wlb_spank_args *args)
{
	struct delivery delivery = {.args = args};
	if (spank_get_item(sp, S_JOB_ID, &delivery.job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_UID, &delivery.uid) != ESPANK_SUCCESS)
		return;
	if (read_note(&delivery) > 0)
		start_process(&delivery);
	free(delivery.note);
}
