#include "worker/checkpoint/published.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "worker/checkpoint/manifest.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"

enum { LARGEST_INDEX_BYTES = 1 << 28 };

static int ends_in(const char *name, const char *end)
{
	size_t bytes = strlen(name), of_end = strlen(end);
	return bytes >= of_end && strcmp(name + bytes - of_end, end) == 0;
}

/* Adds each file that the index names, once. */
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

static int is_pickled(const struct dirent *entry)
{
	return ends_in(entry->d_name, ".bin") || ends_in(entry->d_name, ".pt") || ends_in(entry->d_name, ".pth");
}

/* Says why a folder without weights of a known name has none. `cause` is errno of the access to them. */
static int refuse_folder(const char *folder, int cause, struct wlb_error *error)
{
	struct dirent **pickled = NULL;
	int rc = wlb_input_failure(cause), count = scandir(folder, &pickled, is_pickled, alphasort);
	if (count > 0)
		wlb_fail(error,
		         "%.1000s: its weights are pickled Python objects (%.100s), and to read one can run any "
		         "program: "
		         "where you trust them, convert them by Python's transformers: "
		         "AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW_DIR)",
		         folder, pickled[0]->d_name);
	else
		wlb_fail(error, "%s: holds neither " WLB_MANIFEST_NAME " nor " WLB_PUBLISHED_FILE "[.index.json]: %s",
		         folder, strerror(cause));
	for (int i = 0; i < count; i++)
		free(pickled[i]);
	free(pickled);
	return rc;
}

static int list_files(const char *folder, struct wlb_weights *weights, struct wlb_error *error)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" WLB_PUBLISHED_INDEX, folder) >= (int)sizeof(path))
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	if (access(path, F_OK) == 0)
		return open_indexed(folder, path, weights, error);
	snprintf(path, sizeof(path), "%s/" WLB_PUBLISHED_FILE, folder);
	if (access(path, F_OK) < 0)
		return refuse_folder(folder, errno, error);
	return wlb_weights_add_file(weights, folder, WLB_PUBLISHED_FILE, -1, error) < 0 ? -1 : 0;
}

/* Appends the tensors of a file. A scalar, or a tensor without elements, is a weight of no model. */
static int add_tensors(struct wlb_weights *weights, int number, struct wlb_error *error)
{
	const char *path = weights->files[number].path;
	const struct wlb_stored_tensor *tensors;
	struct wlb_safetensors *file;
	int rc = wlb_safetensors_try_open(path, &file, error);
	int count = rc == 0 ? wlb_safetensors_tensors(file, &tensors) : 0;
	for (int i = 0; rc == 0 && i < count; i++) {
		const struct wlb_stored_tensor *t = &tensors[i];
		struct wlb_stored_block block = {
			.name = (char *)t->name, .file = number, .block = t->block, .range = t->range};
		if (ends_in(t->name, ".rotary_emb.inv_freq"))
			continue;
		if (t->stored == WLB_STORED_OTHER || t->range.end == t->range.begin)
			rc = wlb_fail(error,
			              "%s: tensor %.200s: %lld elements of %s: weights are F64, F32, BF16 or F16", path,
			              t->name, (long long)(t->range.end - t->range.begin), t->dtype_name);
		else
			rc = wlb_weights_add_block(weights, &block, error);
	}
	wlb_safetensors_close(file);
	return rc;
}

int wlb_published_open(const char *folder, struct wlb_weights *weights, struct wlb_error *error)
{
	int rc = list_files(folder, weights, error);
	for (int i = 0; rc == 0 && i < weights->file_count; i++)
		rc = add_tensors(weights, i, error);
	if (rc == 0 && wlb_weights_finish(weights, error) < 0)
		rc = wlb_fail_in(error, "%s", folder);
	return rc;
}

/* ---- comparison with a model ---- */

static int by_name(const void *a, const void *b)
{
	const struct wlb_tensor_part *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static void format_shape(const struct wlb_tensor_block *b, char *text, size_t size)
{
	int used = snprintf(text, size, "%lld", (long long)b->global_rows);
	if (b->dimensions > 1)
		used += snprintf(text + used, size - (size_t)used, " x %lld", (long long)b->global_cols);
	if (b->dimensions > 2)
		snprintf(text + used, size - (size_t)used, " (%d dimensions)", b->dimensions);
}

/* Compares a tensor of the folder with the model's of that name; NULL: it has none. */
static int check_tensor(const struct wlb_weights *weights, const struct wlb_stored_block *stored,
                        const struct wlb_tensor_part *part, struct wlb_error *error)
{
	const char *file = weights->files[stored->file].path;
	char found[96], needed[96];
	if (part == NULL && strcmp(stored->name, "lm_head.weight") == 0)
		return 0;
	if (part == NULL)
		return wlb_fail(error,
		                "%s: tensor %.200s: the model has none of that name, and it may change what the model "
		                "computes: is --model that of these weights?",
		                file, stored->name);
	if (wlb_tensor_block_same_whole(&stored->block, &part->block))
		return 0;
	format_shape(&stored->block, found, sizeof(found));
	format_shape(&part->block, needed, sizeof(needed));
	return wlb_fail(error, "%s: tensor %.200s is %s, the model needs %s: is --model that of these weights?", file,
	                stored->name, found, needed);
}

/* `sorted` are the model's, by name; the blocks are in that order, too, one of each tensor. */
static int check_tensors(const char *folder, const struct wlb_weights *weights,
                         const struct wlb_tensor_part *const *sorted, int count, struct wlb_error *error)
{
	int next = 0;
	for (int i = 0; i < weights->block_count; i++) {
		int order = 1; /* of the model's next tensor: less than 0 where the folder lacks it */
		if (next < count)
			order = strcmp(sorted[next]->name, weights->blocks[i].name);
		if (order < 0)
			break;
		if (check_tensor(weights, &weights->blocks[i], order == 0 ? sorted[next] : NULL, error) < 0)
			return -1;
		next += order == 0;
	}
	if (next == count)
		return 0;
	return wlb_fail(error, "%s: tensor %.200s is missing%s", folder, sorted[next]->name,
	                strcmp(sorted[next]->name, "lm_head.weight") == 0
	                        ? ": where the embedding is the head, tie_word_embeddings must say so"
	                        : ": is --model that of these weights?");
}

/* Of parts that are in one tensor keeps one. Returns how many are left. */
static int drop_repeated(const struct wlb_tensor_part **sorted, int count)
{
	int kept = 0;
	for (int i = 0; i < count; i++)
		if (kept == 0 || strcmp(sorted[kept - 1]->name, sorted[i]->name) != 0)
			sorted[kept++] = sorted[i];
	return kept;
}

int wlb_published_check(const char *folder, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	char path[PATH_MAX];
	struct wlb_weights weights = {0};
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) < (int)sizeof(path) &&
	    access(path, F_OK) == 0)
		return wlb_fail(
			error,
			"%s: is a checkpoint of wlb-worker: name its directory in --load, with --finetune for its "
			"weights alone",
			folder);
	const struct wlb_tensor_part **sorted = calloc((size_t)count + 1, sizeof(const struct wlb_tensor_part *));
	if (sorted == NULL)
		return wlb_fail(error, "out of memory for %d tensors", count);
	for (int i = 0; i < count; i++)
		sorted[i] = &parts[i];
	qsort(sorted, (size_t)count, sizeof(*sorted), by_name);
	count = drop_repeated(sorted, count);
	int rc = wlb_published_open(folder, &weights, error);
	if (rc == 0)
		rc = check_tensors(folder, &weights, sorted, count, error);
	wlb_weights_free(&weights);
	free(sorted);
	return rc;
}
