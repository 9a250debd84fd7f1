#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/show.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/published.h"
#include "worker/checkpoint/shard_group.h"
#include "worker/checkpoint/shard_index.h"
#include "worker/checkpoint/shard_lists.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"

static int packer_path(const char *folder, char path[PATH_MAX], struct wlb_error *error)
{
	if (snprintf(path, PATH_MAX, "%s/" WLB_PACKER_NAME, folder) >= PATH_MAX)
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	return 0;
}

/* Checks that the packer's state has the size in the manifest; `bytes` is -1 where the manifest lists none. */
static int check_packer(const char *folder, int64_t bytes, struct wlb_error *error)
{
	char path[PATH_MAX];
	if (bytes < 0)
		return wlb_fail(error, "%s: its manifest lists no " WLB_PACKER_NAME, folder);
	return packer_path(folder, path, error) < 0 ? -1 : wlb_folder_check_file(path, bytes, error);
}

/* A wlb_shard_list_visit. */
static int check_files(void *context, struct wlb_weights *list, struct wlb_error *error)
{
	(void)context;
	return wlb_weights_check_files(list, 0, list->file_count, error);
}

/* Compares all indexes with the manifest. */
static int check_indexes(const char *path, const struct wlb_weights *weights, struct wlb_error *error)
{
	int rc = 0;
	for (int i = 0; rc == 0 && i < weights->index_count; i++)
		rc = wlb_shard_index_check(path, weights, i, error);
	return rc;
}

/* Checks the shards too, or of a checkpoint with indexes these alone. */
static int check(const char *path, bool has_shards, struct wlb_error *error)
{
	struct wlb_checkpoint_facts facts;
	struct wlb_weights weights = {0};
	int64_t packer_bytes;
	int rc = wlb_manifest_read(path, &facts, &weights, &packer_bytes, error);
	if (rc == 0)
		rc = has_shards || weights.index_count == 0
		             ? wlb_shard_lists_visit(path, &weights, check_files, NULL, error)
		             : check_indexes(path, &weights, error);
	if (rc == 0 && packer_bytes >= 0)
		rc = check_packer(path, packer_bytes, error);
	wlb_weights_free(&weights);
	return rc;
}

int wlb_checkpoint_check(const char *path, struct wlb_error *error)
{
	return check(path, true, error);
}

/* Checks the shards [begin, end) of all that are in the group whose first one is `first`. */
static int check_group(const char *path, const struct wlb_weights *weights, int group, int begin, int end,
                       struct wlb_error *error)
{
	struct wlb_weights list = {0};
	int first = group * wlb_shard_group_size();
	int rc = wlb_shard_index_read(path, weights, group, &list, error);
	if (rc == 0) {
		begin = begin > first ? begin - first : 0;
		end = end - first < list.file_count ? end - first : list.file_count;
		rc = wlb_weights_check_files(&list, begin, end, error);
		rc = rc == -1 ? WLB_DAMAGED : rc;
	}
	wlb_weights_free(&list);
	return rc;
}

int wlb_checkpoint_check_shards(const char *path, int share, int shares, struct wlb_error *error)
{
	struct wlb_weights weights = {0};
	int rc = wlb_manifest_read(path, NULL, &weights, NULL, error);
	int64_t all = wlb_weights_shards(&weights);
	/* Neighbours in the list are in few groups. */
	int begin = (int)(all * share / shares), end = (int)(all * (share + 1) / shares);
	for (int i = 0; rc == 0 && i < weights.index_count; i++)
		if (begin < (i + 1) * wlb_shard_group_size() && end > i * wlb_shard_group_size())
			rc = check_group(path, &weights, i, begin, end, error);
	wlb_weights_free(&weights);
	return rc;
}

static int has_file(const char *dir, const char *name)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && access(path, F_OK) == 0;
}

/* Training would begin with initial weights where its user meant others. */
static int check_no_weights(const char *dir, struct wlb_error *error)
{
	if (has_file(dir, WLB_MANIFEST_NAME))
		return wlb_fail(error, "%s: is a checkpoint itself: name the directory that it is in", dir);
	if (has_file(dir, WLB_PUBLISHED_FILE) || has_file(dir, WLB_PUBLISHED_INDEX))
		return wlb_fail(error,
		                "%s: has weights and no checkpoint: training continues only from a directory of its "
		                "own checkpoints (--save); --init-from begins with these weights",
		                dir);
	return 0;
}

void wlb_checkpoint_skip(const char *path, const char *why)
{
	wlb_show_line(stderr, "wlb: checkpoint %s is skipped: %s", path, why);
}

/* Finds the newest of before `step`, which the check must accept. */
static int find_newest(const char *dir, int64_t step, bool has_shards, char path[4096], struct wlb_error *error)
{
	int64_t *steps;
	int count = wlb_folder_steps(dir, &steps, error), found = 0;
	if (count < 0)
		return count;
	if (count == 0)
		found = check_no_weights(dir, error);
	for (int i = 0; found == 0 && i < count; i++) {
		struct wlb_error why;
		if (steps[i] >= step)
			continue;
		found = wlb_folder_path(dir, steps[i], WLB_FOLDER_FINAL, path, error);
		int rc = found == 0 ? check(path, has_shards, &why) : -1;
		if (rc == 0) {
			found = 1;
		} else if (rc == WLB_UNREADABLE) { /* an older one would cost steps that are not lost */
			wlb_fail(error, "%s", why.message);
			found = WLB_UNREADABLE;
		} else if (found == 0) {
			wlb_checkpoint_skip(path, why.message);
		}
	}
	free(steps);
	if (found == 0 && count > 0)
		return wlb_fail(error, "%s: none of its %d checkpoints is complete; remove them to begin at step 1",
		                dir, count);
	return found;
}

int wlb_checkpoint_newest(const char *dir, char path[4096], struct wlb_error *error)
{
	return find_newest(dir, INT64_MAX, true, path, error);
}

int wlb_checkpoint_newest_before(const char *dir, int64_t step, char path[4096], struct wlb_error *error)
{
	return find_newest(dir, step, false, path, error);
}

struct share {
	int number, count;
};

/* A wlb_shard_list_visit: of each group a share. */
static int verify(void *context, struct wlb_weights *list, struct wlb_error *error)
{
	const struct share *share = context;
	return wlb_weights_verify(list, share->number, share->count, error);
}

int wlb_checkpoint_verify(const char *path, int share, int shares, struct wlb_error *error)
{
	struct wlb_weights weights = {0};
	struct share of = {share, shares};
	int rc = wlb_manifest_read(path, NULL, &weights, NULL, error);
	if (rc == 0)
		rc = wlb_shard_lists_visit(path, &weights, verify, &of, error);
	wlb_weights_free(&weights);
	return rc;
}

void wlb_checkpoint_name_damage(const char *path, struct wlb_error *why)
{
	struct wlb_safetensors *file = wlb_safetensors_open(path, why);
	if (file == NULL)
		return;
	const struct wlb_stored_tensor *tensors;
	int count = wlb_safetensors_tensors(file, &tensors), rc = 0;
	for (int i = 0; rc == 0 && i < count; i++)
		rc = wlb_safetensors_verify(file, &tensors[i], 0, why);
	if (rc == 0)
		wlb_fail(why, "%s: its data had another checksum than the manifest says when they were read first",
		         path);
	wlb_safetensors_close(file);
}

int64_t wlb_checkpoint_newest_step(const char *dir, struct wlb_error *error)
{
	int64_t *steps;
	int count = wlb_folder_steps(dir, &steps, error);
	int64_t newest = count > 0 ? steps[0] : count;
	free(steps);
	return newest;
}

int wlb_checkpoint_read_facts(const char *path, struct wlb_checkpoint_facts *facts, struct wlb_error *error)
{
	return wlb_manifest_read(path, facts, NULL, NULL, error);
}

int wlb_checkpoint_read_packer(const char *path, void **state, size_t *bytes, struct wlb_error *error)
{
	char file[PATH_MAX], *data;
	int64_t listed;
	if (wlb_manifest_read(path, NULL, NULL, &listed, error) < 0 || check_packer(path, listed, error) < 0 ||
	    packer_path(path, file, error) < 0)
		return -1;
	wlb_file_report("reading", file);
	if (wlb_file_read(file, (size_t)listed, &data, bytes, error) < 0)
		return -1;
	*state = data;
	return 0;
}

/* Opens a checkpoint of wlb-worker by its manifest, or the folder of a published model. */
static int open_weights(const char *folder, struct wlb_weights *weights, struct wlb_error *error)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) >= (int)sizeof(path))
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	if (access(path, F_OK) == 0)
		return wlb_manifest_read(folder, NULL, weights, NULL, error);
	return wlb_published_open(folder, weights, error);
}

/* Sets *bytes to the size of the elements of a shard's first tensor; 0 where it has none. */
static int read_element_bytes(const char *path, int shard, int *bytes, struct wlb_error *error)
{
	char name[48], file[PATH_MAX];
	const struct wlb_stored_tensor *tensors;
	wlb_shard_name(shard, name);
	if (snprintf(file, sizeof(file), "%s/%s", path, name) >= (int)sizeof(file))
		return wlb_fail(error, "%.100s...: the path is too long", path);
	struct wlb_safetensors *opened = wlb_safetensors_open(file, error);
	if (opened == NULL)
		return -1;
	int count = wlb_safetensors_tensors(opened, &tensors);
	*bytes = count > 0 ? wlb_stored_bytes(tensors[0].stored) : 0;
	int rc = count == 0 || *bytes > 0
	                 ? 0
	                 : wlb_fail(error, "%s: tensor %.200s has no element type of a weight", file, tensors[0].name);
	wlb_safetensors_close(opened);
	return rc;
}

int wlb_checkpoint_element_bytes(const char *path, struct wlb_error *error)
{
	struct wlb_weights weights = {0};
	int bytes = 0, rc = wlb_manifest_read(path, NULL, &weights, NULL, error);
	/* A rank may keep nothing. */
	for (int i = 0; rc == 0 && bytes == 0 && i < wlb_weights_shards(&weights); i++)
		rc = read_element_bytes(path, i, &bytes, error);
	if (rc == 0 && bytes == 0)
		rc = wlb_fail(error, "%s: its shards have no tensors", path);
	wlb_weights_free(&weights);
	return rc == 0 ? bytes : -1;
}

/* ---- readers ---- */

/* What is known of a file, and what was read of it, without copies. */
struct file_sums {
	bool is_known; /* the two members below: the index that lists it was read, and it has a checksum */
	uint64_t checksum;
	int64_t elements;
	uint64_t read_checksum;
	int64_t read_elements;
};

struct wlb_checkpoint_reader {
	char *path;
	struct wlb_weights weights;
	int file_count;
	struct file_sums *sums;
	/* The index that was read last, since most ranks need one: of group 0 and on; -1: none. */
	int group;
	struct wlb_weights list;
	char *file_path; /* wlb_checkpoint_file_path */
};

struct wlb_checkpoint_reader *wlb_checkpoint_open(const char *path, struct wlb_error *error)
{
	struct wlb_checkpoint_reader *reader = calloc(1, sizeof(*reader));
	int rc = reader != NULL && (reader->path = strdup(path)) != NULL ? 0 : wlb_fail(error, "out of memory");
	if (rc == 0)
		rc = open_weights(path, &reader->weights, error);
	if (rc == 0) {
		reader->group = -1;
		reader->file_count = wlb_weights_shards(&reader->weights);
		reader->sums = calloc((size_t)reader->file_count + 1, sizeof(*reader->sums));
		if (reader->sums != NULL)
			return reader;
		wlb_fail(error, "out of memory for %d shards", reader->file_count);
	}
	wlb_checkpoint_close(reader);
	return NULL;
}

void wlb_checkpoint_close(struct wlb_checkpoint_reader *reader)
{
	if (reader == NULL)
		return;
	wlb_weights_free(&reader->weights);
	wlb_weights_free(&reader->list);
	free(reader->sums);
	free(reader->file_path);
	free(reader->path);
	free(reader);
}

/* Reads from files of which the first one has the number `first`. */
static int read_list(struct wlb_checkpoint_reader *reader, struct wlb_weights *list, int first,
                     const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	int rc = wlb_weights_read(list, parts, count, error);
	for (int i = 0; i < list->file_count; i++) {
		struct wlb_weights_file *file = &list->files[i];
		struct file_sums *sums = &reader->sums[first + i];
		sums->is_known = file->has_checksum;
		sums->checksum = file->checksum;
		sums->elements = file->elements;
		sums->read_checksum += file->read_checksum;
		sums->read_elements += file->read_elements;
		file->read_checksum = 0;
		file->read_elements = 0;
	}
	return rc;
}

/* Reads the group's index, unless it was the last one. */
static int take_group(struct wlb_checkpoint_reader *reader, int group, struct wlb_error *error)
{
	if (reader->group == group)
		return 0;
	wlb_weights_free(&reader->list);
	reader->group = -1;
	if (wlb_shard_index_read(reader->path, &reader->weights, group, &reader->list, error) < 0)
		return -1;
	reader->group = group;
	return 0;
}

int wlb_checkpoint_read_parts(struct wlb_checkpoint_reader *reader, const struct wlb_tensor_part *parts, int count,
                              struct wlb_error *error)
{
	struct wlb_weights *weights = &reader->weights;
	int rc = wlb_weights_check_parts(weights, parts, count, error);
	if (rc == 0 && weights->index_count == 0)
		rc = read_list(reader, weights, 0, parts, count, error);
	if (rc < 0)
		return wlb_fail_in(error, "%s", reader->path);
	for (int i = 0; rc == 0 && i < weights->index_count; i++)
		if (wlb_weights_overlaps(weights, i, parts, count) && (rc = take_group(reader, i, error)) == 0)
			rc = read_list(reader, &reader->list, i * wlb_shard_group_size(), parts, count, error);
	return rc;
}

wlb_checkpoint_share_check *wlb_checkpoint_check_before_reading(const struct wlb_checkpoint_reader *reader)
{
	if (reader->weights.index_count > 0)
		return wlb_checkpoint_check_shards;
	for (int i = 0; i < reader->weights.file_count; i++)
		if (!reader->weights.files[i].has_checksum)
			return wlb_checkpoint_verify;
	return NULL;
}

/* Of each file: the two halves of the checksum, and the elements. */
enum { FILE_SUMS = 3 };

size_t wlb_checkpoint_sum_count(const struct wlb_checkpoint_reader *reader)
{
	return FILE_SUMS * (size_t)reader->file_count;
}

void wlb_checkpoint_sums(const struct wlb_checkpoint_reader *reader, double *sums)
{
	for (int i = 0; i < reader->file_count; i++) {
		const struct file_sums *file = &reader->sums[i];
		*sums++ = (double)(file->read_checksum & UINT32_MAX);
		*sums++ = (double)(file->read_checksum >> 32);
		*sums++ = (double)file->read_elements;
	}
}

int wlb_checkpoint_find_damaged(const struct wlb_checkpoint_reader *reader, const double *sums)
{
	for (int i = 0; i < reader->file_count; i++) {
		const struct file_sums *file = &reader->sums[i];
		const double *of_file = &sums[FILE_SUMS * i];
		uint64_t checksum = (uint64_t)of_file[0] + ((uint64_t)of_file[1] << 32);
		if (file->is_known && of_file[2] == (double)file->elements && checksum != file->checksum)
			return i;
	}
	return -1;
}

const char *wlb_checkpoint_file_path(struct wlb_checkpoint_reader *reader, int number)
{
	char name[48];
	wlb_shard_name(number, name);
	free(reader->file_path);
	if (asprintf(&reader->file_path, "%s/%s", reader->path, name) < 0)
		reader->file_path = NULL;
	return reader->file_path;
}

int wlb_checkpoint_read(const char *path, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	struct wlb_checkpoint_reader *reader = wlb_checkpoint_open(path, error);
	int rc = reader != NULL ? wlb_checkpoint_read_parts(reader, parts, count, error) : -1;
	wlb_checkpoint_close(reader);
	return rc;
}
