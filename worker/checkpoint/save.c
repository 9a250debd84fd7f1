#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard_index.h"
#include "worker/checkpoint/shard_lists.h"
#include "worker/data/file_progress.h"

enum {
	HIDDEN_MAX = 100, /* folders of one step that could not be removed */
	HIDDEN_BYTES = 4096 + 16,
	SHARD_PATH_BYTES = 4096 + 48,
};

/* Renames a folder to a hidden name, which it writes into `hidden`: not to that of a folder that could not be removed,
 * such as one with a file that another process has open on NFS. Returns -1 with errno. */
static int hide(const char *path, const char *replaced, char hidden[HIDDEN_BYTES])
{
	snprintf(hidden, HIDDEN_BYTES, "%s", replaced);
	int rc = rename(path, hidden);
	for (int i = 1; rc < 0 && (errno == EEXIST || errno == ENOTEMPTY) && i < HIDDEN_MAX; i++) {
		snprintf(hidden, HIDDEN_BYTES, "%s.%d", replaced, i);
		rc = rename(path, hidden);
	}
	return rc;
}

/* What an ended attempt has left may be open in a process of it that does not end. */
static int hide_partial(const struct wlb_save_place *place, int64_t step, const char *partial)
{
	char replaced[4096], hidden[HIDDEN_BYTES];
	if (wlb_folder_path(place->dir, step, WLB_FOLDER_REPLACED, replaced, NULL) < 0)
		return -1;
	return hide(partial, replaced, hidden);
}

int wlb_checkpoint_begin(const struct wlb_save_place *place, int64_t step, struct wlb_error *error)
{
	char partial[4096];
	wlb_file_report("creating", place->dir);
	if (wlb_folder_partial(place, step, partial, error) < 0 || wlb_dir_make(place->dir, 0777, error) < 0)
		return -1;
	if (wlb_folder_remove(partial, error) < 0 && hide_partial(place, step, partial) < 0)
		return -1; /* with the error of the removal */
	/* Other folders than this step's are in nobody's way, and the commit says which of them stay: a file that
	 * another process has open on NFS, and a folder of another account, cannot be removed. */
	wlb_folder_remove_hidden(place, NULL);
	wlb_file_report("creating", partial);
	if (mkdir(partial, 0777) < 0)
		return wlb_fail(error, "%s: cannot be created: %s", partial, strerror(errno));
	return 0;
}

/* Makes the folder that is the first `length` characters of the path, unless another writer has. */
static int make_subfolder(char *path, size_t length, struct wlb_error *error)
{
	path[length] = '\0';
	wlb_file_report("creating", path);
	int rc = mkdir(path, 0777) == 0 || errno == EEXIST
	                 ? 0
	                 : wlb_fail(error, "%s: cannot be created: %s", path, strerror(errno));
	path[length] = '/';
	return rc;
}

/* Writes the path of a shard of a partial folder, and makes the folder that it is in. */
static int make_shard_path(const struct wlb_save_place *place, int64_t step, int shard, char path[SHARD_PATH_BYTES],
                           struct wlb_error *error)
{
	char partial[4096], name[48];
	if (wlb_folder_partial(place, step, partial, error) < 0)
		return -1;
	wlb_shard_name(shard, name);
	snprintf(path, SHARD_PATH_BYTES, "%s/%s", partial, name);
	char *slash = strchr(name, '/');
	return slash != NULL ? make_subfolder(path, (size_t)(slash - name) + strlen(partial) + 1, error) : 0;
}

int wlb_checkpoint_create_shard(const struct wlb_save_place *place, int64_t step, int shard,
                                const struct wlb_tensor_part *parts, int count, struct wlb_safetensors_output **output,
                                struct wlb_error *error)
{
	char path[SHARD_PATH_BYTES];
	*output = NULL;
	if (make_shard_path(place, step, shard, path, error) < 0)
		return -1;
	return wlb_safetensors_create(path, parts, count, output, error);
}

/* 0, or -1 with errno. */
static int copy_data(int from, int to, const char *path)
{
	static const size_t piece_bytes = 4 << 20;
	ssize_t bytes = 1;
	char *piece = malloc(piece_bytes);
	while (piece != NULL && bytes > 0) {
		bytes = read(from, piece, piece_bytes);
		wlb_file_report("writing", path);
		if (bytes > 0 && wlb_write_all(to, piece, (size_t)bytes) < 0)
			bytes = -1;
	}
	free(piece);
	wlb_file_report("syncing", path);
	return piece == NULL || bytes < 0 ? -1 : fsync(to);
}

int wlb_checkpoint_copy_shard(const struct wlb_save_place *place, int64_t step, int shard, const char *file,
                              struct wlb_error *error)
{
	char path[SHARD_PATH_BYTES];
	if (make_shard_path(place, step, shard, path, error) < 0)
		return -1;
	int from = open(file, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return wlb_fail(error, "%s: cannot be opened: %s", file, strerror(errno));
	wlb_file_report("creating", path);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int rc = to >= 0 ? copy_data(from, to, path) : -1, why = errno;
	if (to >= 0 && close(to) < 0 && rc == 0) {
		rc = -1;
		why = errno;
	}
	close(from);
	return rc < 0 ? wlb_fail(error, "%s: cannot be copied from %s: %s", path, file, strerror(why)) : 0;
}

int wlb_checkpoint_write_packer(const struct wlb_save_place *place, int64_t step, const void *state, size_t bytes,
                                struct wlb_error *error)
{
	char partial[4096], path[4096 + 32];
	if (wlb_folder_partial(place, step, partial, error) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/" WLB_PACKER_NAME, partial);
	wlb_file_report("writing", path);
	return wlb_file_write(path, state, bytes, wlb_folder_file_mode(partial), error);
}

/* Sets *bytes to the size of the packer's state in the folder, -1 where there is none. */
static int find_packer(const char *partial, int64_t *bytes, struct wlb_error *error)
{
	char path[4096 + 32];
	struct stat st;
	snprintf(path, sizeof(path), "%s/" WLB_PACKER_NAME, partial);
	*bytes = -1;
	if (stat(path, &st) == 0)
		*bytes = st.st_size;
	else if (errno != ENOENT)
		return wlb_fail(error, "%s: %s", path, strerror(errno));
	return 0;
}

int wlb_checkpoint_has_indexes(int shards)
{
	return wlb_shard_groups(shards) > 1;
}

int wlb_checkpoint_write_index(const struct wlb_save_place *place, int64_t step, int group, int shards,
                               struct wlb_error *error)
{
	char partial[4096];
	if (wlb_folder_partial(place, step, partial, error) < 0)
		return -1;
	return wlb_shard_index_write(partial, group, shards, error);
}

/* Reads back the headers of all shards, which are of one group. */
static int scan_shards(const char *partial, int shards, struct wlb_weights *weights, int64_t *bytes,
                       struct wlb_error *error)
{
	for (int i = 0; i < shards; i++) {
		char name[48];
		wlb_shard_name(i, name);
		if (wlb_weights_add_file(weights, partial, name, -1, error) < 0)
			return -1;
	}
	if (wlb_weights_scan(weights, error) < 0)
		return -1;
	for (int i = 0; i < shards; i++)
		*bytes += weights->files[i].bytes;
	return 0;
}

/* Writes what all shards hold together into the manifest. */
static int write_manifest(const char *partial, const struct wlb_checkpoint_facts *facts, int shards, int64_t *bytes,
                          struct wlb_error *error)
{
	/* A checkpoint of a diverged model must not replace good ones. */
	if (!isfinite(facts->train_loss))
		return wlb_fail(error, "train_loss of step %lld is %g: it must be finite for a checkpoint to be of use",
		                (long long)facts->step, facts->train_loss);
	struct wlb_weights weights = {0};
	int64_t packer_bytes, manifest_bytes = 0;
	int rc = find_packer(partial, &packer_bytes, error);
	if (rc == 0)
		rc = wlb_checkpoint_has_indexes(shards)
		             ? wlb_shard_indexes_collect(partial, shards, &weights, bytes, error)
		             : scan_shards(partial, shards, &weights, bytes, error);
	if (rc == 0 && (wlb_weights_finish(&weights, error) < 0 ||
	                wlb_manifest_write(partial, facts, &weights, packer_bytes, &manifest_bytes, error) < 0))
		rc = -1;
	*bytes += manifest_bytes + (packer_bytes > 0 ? packer_bytes : 0);
	wlb_weights_free(&weights);
	return rc;
}

/* Renames the finished folder to its final name. An existing folder of that name is exchanged atomically where the file
 * system supports it, so that one of the two always exists. */
static int publish(const char *dir, int64_t step, const char *partial, const char *final, struct wlb_error *error)
{
	char replaced[4096], hidden[HIDDEN_BYTES];
	if (wlb_folder_path(dir, step, WLB_FOLDER_REPLACED, replaced, error) < 0)
		return -1;
	wlb_file_report("renaming", partial);
	int rc = renameat2(AT_FDCWD, partial, AT_FDCWD, final, RENAME_EXCHANGE);
	if (rc < 0 && errno == EINVAL)
		rc = hide(final, replaced, hidden) == 0 || errno == ENOENT ? rename(partial, final) : -1;
	else if (rc < 0 && errno == ENOENT)
		rc = rename(partial, final);
	if (rc < 0)
		return wlb_fail(error, "%s: cannot be renamed to %s: %s", partial, final, strerror(errno));
	wlb_file_report("syncing", dir);
	return wlb_dir_sync(dir, error);
}

int wlb_checkpoint_remove(const char *dir, int64_t step, struct wlb_error *error)
{
	char final[4096], replaced[4096], hidden[HIDDEN_BYTES];
	if (wlb_folder_path(dir, step, WLB_FOLDER_FINAL, final, error) < 0 ||
	    wlb_folder_path(dir, step, WLB_FOLDER_REPLACED, replaced, error) < 0)
		return -1;
	wlb_file_report("renaming", final);
	if (hide(final, replaced, hidden) < 0)
		return wlb_fail(error, "%s: cannot be renamed: %s", final, strerror(errno));
	return wlb_folder_remove(hidden, error);
}

int wlb_checkpoint_select_old(int64_t *steps, int count, int keep, int64_t keep_every)
{
	int old = 0;
	for (int i = 0; i < count; i++) {
		bool stays = i < keep || (keep_every > 0 && steps[i] % keep_every == 0);
		if (!stays)
			steps[old++] = steps[i];
	}
	return old;
}

/* Removes the old checkpoints up to `step`, also where one of them cannot be removed; the error is that of the first.
 * Later ones, which exist where the run resumed from an older checkpoint, are unchanged: if they counted, the
 * checkpoint just written would be removed. */
static int remove_old_checkpoints(const struct wlb_save_place *place, int64_t step, int keep, struct wlb_error *error)
{
	int64_t *steps;
	int count = keep > 0 ? wlb_folder_steps(place->dir, &steps, error) : 0, later = 0, rc = 0;
	if (count <= 0)
		return count;
	while (later < count && steps[later] > step)
		later++;
	int old = wlb_checkpoint_select_old(steps + later, count - later, keep, place->keep_every);
	for (int i = later; i < later + old; i++) {
		if (wlb_checkpoint_remove(place->dir, steps[i], rc == 0 ? error : NULL) < 0)
			rc = -1;
	}
	free(steps);
	return rc;
}

int wlb_checkpoint_commit(const struct wlb_save_place *place, const struct wlb_checkpoint_facts *facts, int shards,
                          int keep, char path[4096], int64_t *bytes, struct wlb_error *error)
{
	char partial[4096];
	*bytes = 0;
	if (wlb_folder_partial(place, facts->step, partial, error) < 0 ||
	    wlb_folder_path(place->dir, facts->step, WLB_FOLDER_FINAL, path, error) < 0)
		return -1;
	if (write_manifest(partial, facts, shards, bytes, error) < 0 ||
	    publish(place->dir, facts->step, partial, path, error) < 0)
		return -1;
	/* The checkpoint is complete; folders that cannot be removed now are removed after the next save. */
	struct wlb_error left = {0};
	int rc = wlb_folder_remove_hidden(place, &left);
	if (remove_old_checkpoints(place, facts->step, keep, rc == 0 ? &left : NULL) < 0)
		rc = -1;
	if (rc < 0)
		fprintf(stderr, "wlb: an old checkpoint stays: %s\n", left.message);
	return 0;
}

void wlb_checkpoint_abandon(const struct wlb_save_place *place, int64_t step)
{
	char partial[4096];
	/* The first error is the one to report; the next save removes what remains. */
	if (wlb_folder_partial(place, step, partial, NULL) == 0)
		wlb_folder_remove(partial, NULL);
}
