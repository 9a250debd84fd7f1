#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/show.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/manifest.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"

#define INDEX_NAME "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"

enum { LARGEST_INDEX_BYTES = 1 << 28 };

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

int wlb_checkpoint_check(const char *path, struct wlb_error *error)
{
	struct wlb_checkpoint_facts facts;
	struct wlb_weights weights = {0};
	int64_t packer_bytes;
	int rc = wlb_manifest_read(path, &facts, &weights, &packer_bytes, error);
	if (rc == 0)
		rc = wlb_weights_check_files(&weights, error);
	if (rc == 0 && packer_bytes >= 0)
		rc = check_packer(path, packer_bytes, error);
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
	if (has_file(dir, "model.safetensors") || has_file(dir, "model.safetensors.index.json"))
		return wlb_fail(error,
		                "%s: has weights and no checkpoint: training continues only from a directory of its "
		                "own checkpoints (--save)",
		                dir);
	return 0;
}

void wlb_checkpoint_skip(const char *path, const char *why)
{
	wlb_show_line(stderr, "wlb: checkpoint %s is skipped: %s", path, why);
}

int wlb_checkpoint_newest(const char *dir, char path[4096], struct wlb_error *error)
{
	return wlb_checkpoint_newest_before(dir, INT64_MAX, path, error);
}

int wlb_checkpoint_newest_before(const char *dir, int64_t step, char path[4096], struct wlb_error *error)
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
		int rc = found == 0 ? wlb_checkpoint_check(path, &why) : -1;
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

int wlb_checkpoint_verify(const char *path, int share, int shares, struct wlb_error *error)
{
	struct wlb_weights weights = {0};
	int rc = wlb_manifest_read(path, NULL, &weights, NULL, error);
	if (rc == 0)
		rc = wlb_weights_verify(&weights, share, shares, error);
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

/* Adds each file that Hugging Face's index names, once. */
static int add_indexed(const char *folder, const json_t *index, struct wlb_weights *weights, struct wlb_error *error)
{
	json_t *map = json_object_get(index, "weight_map"), *seen = json_object(), *value;
	const char *tensor;
	int rc = json_is_object(map) && seen ? 0 : wlb_fail(error, "weight_map is missing: it must be an object");
	json_object_foreach(map, tensor, value)
	{
		const char *file = json_string_value(value);
		if (rc == 0 && (file == NULL || strchr(file, '/') != NULL))
			rc = wlb_fail(error, "weight_map.%.200s is '%.100s': it must name a file of the directory",
			              tensor, file ? file : "not a string");
		if (rc < 0 || json_object_get(seen, file) != NULL)
			continue;
		json_object_set_new(seen, file, json_true());
		if (wlb_weights_add_file(weights, folder, file, -1, error) < 0)
			rc = -1;
	}
	json_decref(seen);
	return rc;
}

static int open_indexed(const char *folder, const char *path, struct wlb_weights *weights, struct wlb_error *error)
{
	char *text;
	size_t length;
	json_error_t json_error;
	wlb_file_report("reading", path);
	if (wlb_file_read(path, LARGEST_INDEX_BYTES, &text, &length, error) < 0)
		return -1;
	json_t *index = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
	free(text);
	int rc = index ? add_indexed(folder, index, weights, error)
	               : wlb_fail(error, "line %d: %s", json_error.line, json_error.text);
	json_decref(index);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}

/* Opens a checkpoint of wlb-worker by its manifest, or a folder of Hugging Face by its index or single file. */
static int open_weights(const char *folder, struct wlb_weights *weights, struct wlb_error *error)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) >= (int)sizeof(path) - 32)
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	if (access(path, F_OK) == 0)
		return wlb_manifest_read(folder, NULL, weights, NULL, error);
	snprintf(path, sizeof(path), "%s/" INDEX_NAME, folder);
	if (access(path, F_OK) == 0) {
		if (open_indexed(folder, path, weights, error) < 0)
			return -1;
	} else {
		snprintf(path, sizeof(path), "%s/" SINGLE_NAME, folder);
		if (access(path, F_OK) < 0)
			return wlb_fail(error,
			                "%s: holds neither " WLB_MANIFEST_NAME " nor " SINGLE_NAME "[.index.json]: %s",
			                folder, strerror(errno));
		if (wlb_weights_add_file(weights, folder, SINGLE_NAME, -1, error) < 0)
			return -1;
	}
	if (wlb_weights_scan(weights, error) < 0)
		return -1;
	return wlb_weights_finish(weights, error) < 0 ? wlb_fail_in(error, "%s", folder) : 0;
}

static int first_element_bytes(const struct wlb_weights *weights, struct wlb_error *error)
{
	if (weights->block_count == 0)
		return wlb_fail(error, "it lists no tensors");
	const struct wlb_stored_block *first = &weights->blocks[0];
	struct wlb_safetensors *file = wlb_safetensors_open(weights->files[first->file].path, error);
	if (file == NULL)
		return -1;
	const struct wlb_stored_tensor *tensor = wlb_safetensors_find(file, first->name);
	int bytes = tensor != NULL ? wlb_stored_bytes(tensor->stored) : 0;
	wlb_safetensors_close(file);
	return bytes > 0 ? bytes : wlb_fail(error, "tensor %.200s has no element type of a weight", first->name);
}

int wlb_checkpoint_element_bytes(const char *path, struct wlb_error *error)
{
	struct wlb_weights weights = {0};
	int bytes = wlb_manifest_read(path, NULL, &weights, NULL, error);
	if (bytes == 0 && (bytes = first_element_bytes(&weights, error)) < 0)
		wlb_fail_in(error, "%s", path);
	wlb_weights_free(&weights);
	return bytes;
}

/* ---- readers ---- */

struct wlb_checkpoint_reader {
	char *path;
	struct wlb_weights weights;
};

struct wlb_checkpoint_reader *wlb_checkpoint_open(const char *path, struct wlb_error *error)
{
	struct wlb_checkpoint_reader *reader = calloc(1, sizeof(*reader));
	int rc = reader != NULL && (reader->path = strdup(path)) != NULL ? 0 : wlb_fail(error, "out of memory");
	if (rc == 0)
		rc = open_weights(path, &reader->weights, error);
	if (rc == 0)
		return reader;
	wlb_checkpoint_close(reader);
	return NULL;
}

void wlb_checkpoint_close(struct wlb_checkpoint_reader *reader)
{
	if (reader == NULL)
		return;
	wlb_weights_free(&reader->weights);
	free(reader->path);
	free(reader);
}

int wlb_checkpoint_read_parts(struct wlb_checkpoint_reader *reader, const struct wlb_tensor_part *parts, int count,
                              struct wlb_error *error)
{
	if (wlb_weights_read(&reader->weights, parts, count, error) < 0)
		return wlb_fail_in(error, "%s", reader->path);
	return 0;
}

int wlb_checkpoint_has_checksums(const struct wlb_checkpoint_reader *reader)
{
	for (int i = 0; i < reader->weights.file_count; i++)
		if (!reader->weights.files[i].has_checksum)
			return 0;
	return 1;
}

/* Of each file: the two halves of the checksum, and the elements. */
enum { FILE_SUMS = 3 };

size_t wlb_checkpoint_sum_count(const struct wlb_checkpoint_reader *reader)
{
	return FILE_SUMS * (size_t)reader->weights.file_count;
}

void wlb_checkpoint_sums(const struct wlb_checkpoint_reader *reader, double *sums)
{
	for (int i = 0; i < reader->weights.file_count; i++) {
		const struct wlb_weights_file *file = &reader->weights.files[i];
		*sums++ = (double)(file->read_checksum & UINT32_MAX);
		*sums++ = (double)(file->read_checksum >> 32);
		*sums++ = (double)file->read_elements;
	}
}

const char *wlb_checkpoint_find_damaged(const struct wlb_checkpoint_reader *reader, const double *sums)
{
	for (int i = 0; i < reader->weights.file_count; i++) {
		const struct wlb_weights_file *file = &reader->weights.files[i];
		const double *of_file = &sums[FILE_SUMS * i];
		uint64_t checksum = (uint64_t)of_file[0] + ((uint64_t)of_file[1] << 32);
		if (file->has_checksum && of_file[2] == (double)file->elements && checksum != file->checksum)
			return file->path;
	}
	return NULL;
}

int wlb_checkpoint_read(const char *path, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	struct wlb_checkpoint_reader *reader = wlb_checkpoint_open(path, error);
	int rc = reader != NULL ? wlb_checkpoint_read_parts(reader, parts, count, error) : -1;
	wlb_checkpoint_close(reader);
	return rc;
}
