#include "coordinator/wlb/run/follow/left_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/own_file.h"
#include "coordinator/client/spool.h"
#include "coordinator/wlb/run/follow/follower.h"
#include "coordinator/wlb/run/follow/hook.h"
#include "coordinator/wlb/run/follow/line_files.h"

enum {
	ID_BYTES = 36,
	ATTEMPTS_MOST = 16,
	TAKE_MS = 2000,
	LINES_MOST = 10000, /* read before the time is looked at */
};

struct left {
	int count;
	char ids[ATTEMPTS_MOST][ID_BYTES + 1];
};

static void add_id(struct left *left, const char *id)
{
	for (int i = 0; i < left->count; i++)
		if (strncmp(left->ids[i], id, ID_BYTES) == 0)
			return;
	if (left->count < ATTEMPTS_MOST)
		snprintf(left->ids[left->count++], sizeof(left->ids[0]), "%.*s", ID_BYTES, id);
}

static void find_attempts(const struct wlb_run_job *job, int64_t until_ms, struct left *left)
{
	char heads[2][64];
	DIR *folder = opendir(job->spool_dir);
	struct dirent *entry;
	if (folder == NULL)
		return;
	snprintf(heads[0], sizeof(heads[0]), "metrics-%u-", job->job_id);
	snprintf(heads[1], sizeof(heads[1]), "hook-%u-", job->job_id);
	while (wlb_clock_left_ms(until_ms) > 0 && (entry = readdir(folder)) != NULL)
		for (int i = 0; i < 2; i++) {
			size_t length = strlen(heads[i]);
			if (strncmp(entry->d_name, heads[i], length) == 0 && strlen(entry->d_name) > length + ID_BYTES)
				add_id(left, entry->d_name + length);
		}
	closedir(folder);
}

/* Opens the spool of an attempt. NULL: it is in use, or has gone, and with it the numbers of its records. */
static struct wlb_spool *open_spool(const struct wlb_run_job *job, const char *id)
{
	struct wlb_spool_identity identity;
	char path[PATH_MAX + 64];
	int64_t first_seq;
	snprintf(path, sizeof(path), "%s/%s.run.jsonl", job->spool_dir, id);
	int fd = wlb_own_file_open(path, O_RDONLY, NULL);
	bool is_free = fd >= 0 && wlb_own_file_lock(fd, 0);
	if (fd >= 0)
		close(fd);
	if (!is_free || wlb_spool_peek(path, &identity, &first_seq, NULL) != WLB_SPOOL_BEGINS)
		return NULL;
	return wlb_spool_open(job->spool_dir, &identity, NULL);
}

static void append(void *spool, const char *type, json_t *data, double time_s)
{
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	if (text != NULL)
		wlb_spool_append_of(spool, type, text, time_s, NULL);
	free(text);
}

/* Reads the files, and removes them where there was time for all. */
static void read_all(struct wlb_line_files *files, struct wlb_merged_records *records, int64_t until_ms)
{
	bool has_more = files != NULL;
	while (has_more && wlb_clock_left_ms(until_ms) > 0)
		has_more = wlb_line_files_poll(files, records, wlb_clock_unix_s(), LINES_MOST);
	if (files != NULL && !has_more)
		wlb_line_files_remove(files);
	wlb_line_files_close(files);
}

static void tell(const struct wlb_run_job *job, const char *id, struct wlb_spool *spool, int64_t until_ms)
{
	struct wlb_merged_records records;
	char metrics[PATH_MAX], copy[PATH_MAX];
	wlb_run_metrics_files(job, id, metrics, sizeof(metrics));
	wlb_run_hook_copy(job, id, copy);
	if (metrics[0] == '\0' || copy[0] == '\0' || wlb_merged_records_open(&records, append, spool) != 0)
		return;
	read_all(wlb_line_files_open(metrics, WLB_SOURCE_LOG), &records, until_ms);
	read_all(wlb_line_files_open_one(copy, WLB_SOURCE_HOOK), &records, until_ms);
	wlb_merged_records_close(&records);
}

void wlb_run_take_left_files(const struct wlb_run_job *job)
{
	struct left left = {0};
	int64_t until_ms = wlb_clock_ms() + TAKE_MS;
	find_attempts(job, until_ms, &left);
	for (int i = 0; i < left.count && wlb_clock_left_ms(until_ms) > 0; i++) {
		struct wlb_spool *spool = open_spool(job, left.ids[i]);
		if (spool == NULL)
			continue;
		tell(job, left.ids[i], spool, until_ms);
		wlb_spool_sync(spool, NULL);
		wlb_spool_close(spool, false);
	}
}
