#include "coordinator/wlb/run/state/old_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"

enum {
	FILES_MAX = 64,   /* that are looked at */
	REMOVED_MAX = 16, /* of them; more than a job leaves */
	SCAN_MS = 500,    /* for the names of a folder with many files */
	UNTOUCHED_S = 30 * 24 * 3600,
};

/* The files of the lowest job ids, which are the oldest, in their order. */
struct files {
	int count;
	struct {
		uint32_t job_id;
		char name[NAME_MAX + 1];
	} list[FILES_MAX];
};

/* Returns the job of a file as "12.json", "machine-12.2.json", "machine-12-h100.json", "error-12-ATTEMPT-3.json",
 * "metrics-12-ATTEMPT-0.jsonl", "stop-12-ATTEMPT.step" or "trainer-12.2.yaml"; 0: it is no such file. */
static uint32_t job_of(const char *name)
{
	enum part { NONE, MAY, MUST };
	static const struct {
		const char *begin, *end;
		enum part launch, more; /* after the job's id: ".2", "-h100" */
	} kinds[] = {{"machine-", ".json", MAY, MAY},
	             {"error-", ".json", NONE, MAY},
	             {"trainer-", ".yaml", MAY, NONE},
	             {"metrics-", ".jsonl", NONE, MUST},
	             {"stop-", "", NONE, MUST},
	             {"", ".json", NONE, NONE}};
	static const char digits[] = "0123456789";
	size_t kind = 0;
	while (strncmp(name, kinds[kind].begin, strlen(kinds[kind].begin)) != 0)
		kind++;
	const char *at = name + strlen(kinds[kind].begin), *end = at + strspn(at, digits), *last = kinds[kind].end;
	unsigned long long job_id = strtoull(at, NULL, 10);
	if (end == at || job_id > UINT32_MAX)
		return 0;
	size_t launch = kinds[kind].launch != NONE && end[0] == '.' ? strspn(end + 1, digits) : 0;
	if (launch > 0)
		end += 1 + launch;
	size_t length = strlen(end);
	bool is_ours = kinds[kind].more != NONE && end[0] == '-'
	                       ? length > strlen(last) && strcmp(end + length - strlen(last), last) == 0
	                       : kinds[kind].more != MUST && strcmp(end, last) == 0;
	return is_ours ? (uint32_t)job_id : 0;
}

static void keep_lowest(struct files *files, uint32_t job_id, const char *name)
{
	int at = files->count;
	if (at == FILES_MAX && files->list[--at].job_id <= job_id)
		return;
	for (; at > 0 && files->list[at - 1].job_id > job_id; at--)
		files->list[at] = files->list[at - 1];
	files->list[at].job_id = job_id;
	snprintf(files->list[at].name, sizeof(files->list[at].name), "%s", name);
	files->count += files->count < FILES_MAX;
}

static void list_files(DIR *folder, uint32_t own_job_id, struct files *files)
{
	int64_t until_ms = wlb_clock_ms() + SCAN_MS;
	struct dirent *entry;
	files->count = 0;
	while (wlb_clock_left_ms(until_ms) > 0 && (entry = readdir(folder)) != NULL) {
		uint32_t job_id = job_of(entry->d_name);
		if (job_id != 0 && job_id != own_job_id)
			keep_lowest(files, job_id, entry->d_name);
	}
}

static bool is_untouched(int folder, const char *name)
{
	struct stat about;
	return fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode) &&
	       about.st_uid == geteuid() && time(NULL) - about.st_mtime >= UNTOUCHED_S;
}

static void remove_files(int folder, const struct files *files)
{
	struct wlb_slurm_job job;
	uint32_t asked = 0;
	int found = -1, removed = 0;
	for (int i = 0; i < files->count && removed < REMOVED_MAX; i++) {
		uint32_t job_id = files->list[i].job_id;
		if (!is_untouched(folder, files->list[i].name))
			continue;
		if (job_id != asked) {
			found = wlb_slurm_job(job_id, &job, NULL);
			wlb_slurm_job_free(&job);
			asked = job_id;
		}
		if (found < 0)
			return;
		if (found == 0)
			removed += unlinkat(folder, files->list[i].name, 0) == 0;
	}
}

void wlb_run_old_files_remove(const struct wlb_run_job *job)
{
	struct files files;
	DIR *folder = opendir(job->spool_dir);
	if (folder == NULL)
		return;
	list_files(folder, job->job_id, &files);
	remove_files(dirfd(folder), &files);
	closedir(folder);
}
