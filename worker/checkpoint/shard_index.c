#include "worker/checkpoint/shard_index.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/element_checksum.h"
#include "common/file.h"
#include "common/word_digest.h"
#include "libwlb/capacity.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/shard_group.h"
#include "worker/checkpoint/shard_lists.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"

enum { LARGEST_INDEX_BYTES = 1 << 30 };

int wlb_shard_groups(int shards)
{
	int size = wlb_shard_group_size();
	return (shards + size - 1) / size;
}

static int first_of(int group)
{
	return group * wlb_shard_group_size();
}

/* How many of all shards a group has. */
static int count_of(int group, int shards)
{
	int left = shards - first_of(group);
	return left < wlb_shard_group_size() ? left : wlb_shard_group_size();
}

static int index_path(const char *folder, int group, char path[PATH_MAX], struct wlb_error *error)
{
	char name[48];
	wlb_shard_index_name(group, name);
	if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	return 0;
}

/* ---- writing ---- */

static int write_json(const char *folder, const char *path, const struct wlb_weights *list, int first,
                      struct wlb_error *error)
{
	json_t *json = json_pack("{s:o, s:o}", "shards", wlb_shard_list_format(list, first), "tensors",
	                         wlb_tensor_list_format(list));
	char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	if (text == NULL)
		return wlb_fail(error, "%s: out of memory", path);
	wlb_file_report("writing", path);
	int rc = wlb_file_write(path, text, strlen(text), wlb_folder_file_mode(folder), error);
	free(text);
	return rc;
}

int wlb_shard_index_write(const char *folder, int group, int shards, struct wlb_error *error)
{
	struct wlb_weights list = {0};
	char path[PATH_MAX];
	int first = first_of(group), rc = index_path(folder, group, path, error);
	for (int i = 0; rc == 0 && i < count_of(group, shards); i++) {
		char name[48];
		wlb_shard_name(first + i, name);
		rc = wlb_weights_add_file(&list, folder, name, -1, error) < 0 ? -1 : 0;
	}
	if (rc == 0 && (rc = wlb_weights_scan(&list, error)) == 0) {
		wlb_weights_sort(&list);
		rc = write_json(folder, path, &list, first, error);
	}
	wlb_weights_free(&list);
	return rc;
}

/* ---- reading ---- */

static int parse(const char *folder, int group, const char *text, size_t length, struct wlb_weights *list,
                 struct wlb_error *error)
{
	json_error_t json_error;
	json_t *shards, *tensors, *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
	int rc = json != NULL ? 0 : wlb_fail(error, "line %d: %s: it must be JSON", json_error.line, json_error.text);
	if (rc == 0 && json_unpack_ex(json, &json_error, 0, "{s:o, s:o}", "shards", &shards, "tensors", &tensors) < 0)
		rc = wlb_fail(error, "%s", json_error.text);
	if (rc == 0)
		rc = wlb_shard_list_parse(folder, shards, first_of(group), list, error);
	if (rc == 0)
		rc = wlb_tensor_list_parse(tensors, list->file_count, list, error);
	json_decref(json);
	for (int i = 0; rc == 0 && i < list->file_count; i++)
		if (!list->files[i].has_checksum)
			rc = wlb_fail(error, "shards[%d] has no checksum", i);
	if (rc == 0)
		wlb_weights_sort(list);
	return rc;
}

/* Reads the file. Sets size and checksum in *index. */
static int read_index(const char *path, char **text, struct wlb_weights_index *index, struct wlb_error *error)
{
	size_t length;
	int rc = wlb_input_read_all(path, LARGEST_INDEX_BYTES, text, &length, error);
	if (rc < 0)
		return rc;
	index->bytes = (int64_t)length;
	index->checksum = wlb_element_checksum(*text, 1, 0, (int64_t)length);
	return 0;
}

static int check_listed(const char *path, const struct wlb_weights_index *listed, const struct wlb_weights_index *found,
                        struct wlb_error *error)
{
	if (found->bytes != listed->bytes)
		return wlb_fail(error, "%s: has %lld bytes: the manifest says %lld", path, (long long)found->bytes,
		                (long long)listed->bytes);
	if (found->checksum != listed->checksum)
		return wlb_fail(error,
		                "%s: is damaged: it has the checksum %016" PRIx64 ", the manifest says %016" PRIx64,
		                path, found->checksum, listed->checksum);
	return 0;
}

/* Reads the file and compares it with the manifest. The caller frees *text. */
static int read_listed(const char *path, const struct wlb_weights_index *listed, char **text, struct wlb_error *error)
{
	struct wlb_weights_index found;
	int rc = read_index(path, text, &found, error);
	if (rc < 0)
		return rc;
	rc = check_listed(path, listed, &found, error);
	if (rc < 0) {
		free(*text);
		*text = NULL;
	}
	return rc;
}

int wlb_shard_index_check(const char *folder, const struct wlb_weights *whole, int group, struct wlb_error *error)
{
	char path[PATH_MAX], *text = NULL;
	int rc = index_path(folder, group, path, error);
	if (rc == 0)
		rc = read_listed(path, &whole->indexes[group], &text, error);
	free(text);
	return rc;
}

int wlb_shard_index_read(const char *folder, const struct wlb_weights *whole, int group, struct wlb_weights *list,
                         struct wlb_error *error)
{
	const struct wlb_weights_index *listed = &whole->indexes[group];
	char path[PATH_MAX], *text;
	int rc = index_path(folder, group, path, error);
	if (rc < 0 || (rc = read_listed(path, listed, &text, error)) < 0)
		return rc;
	rc = parse(folder, group, text, (size_t)listed->bytes, list, error);
	free(text);
	if (rc == 0 && list->file_count != listed->shards)
		rc = wlb_fail(error, "it lists %d shards: the manifest says %d", list->file_count, listed->shards);
	if (rc == 0)
		rc = wlb_weights_check_group(whole, group, list, error);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}

int wlb_shard_lists_visit(const char *folder, struct wlb_weights *whole, wlb_shard_list_visit *visit, void *context,
                          struct wlb_error *error)
{
	int rc = whole->index_count == 0 ? visit(context, whole, error) : 0;
	for (int i = 0; rc == 0 && i < whole->index_count; i++) {
		struct wlb_weights list = {0};
		rc = wlb_shard_index_read(folder, whole, i, &list, error);
		if (rc == 0)
			rc = visit(context, &list, error);
		wlb_weights_free(&list);
	}
	return rc;
}

/* ---- the manifest's list ---- */

static int add_index(struct wlb_weights *whole, const struct wlb_weights_index *index, struct wlb_error *error)
{
	if (wlb_grow((void **)&whole->indexes, &whole->index_capacity, (size_t)whole->index_count + 1,
	             sizeof(*whole->indexes)) < 0)
		return wlb_fail(error, "out of memory for %d indexes", whole->index_count + 1);
	whole->indexes[whole->index_count++] = *index;
	return 0;
}

/* Reads an index that has just been written, of a group of so many shards. */
static int collect(const char *folder, int group, int shards, struct wlb_weights *whole, int64_t *bytes,
                   struct wlb_error *error)
{
	struct wlb_weights list = {0};
	struct wlb_weights_index index;
	char path[PATH_MAX], *text;
	if (index_path(folder, group, path, error) < 0 || read_index(path, &text, &index, error) < 0)
		return -1;
	int rc = parse(folder, group, text, (size_t)index.bytes, &list, error);
	free(text);
	index.shards = list.file_count;
	if (rc == 0 && list.file_count != shards)
		rc = wlb_fail(error, "it lists %d shards: it must list %d", list.file_count, shards);
	if (rc < 0)
		wlb_fail_in(error, "%s", path);
	else if (add_index(whole, &index, error) < 0 || wlb_weights_add_group(whole, group, &list, error) < 0)
		rc = -1;
	*bytes += index.bytes;
	for (int i = 0; i < list.file_count; i++)
		*bytes += list.files[i].bytes;
	wlb_weights_free(&list);
	return rc;
}

int wlb_shard_indexes_collect(const char *folder, int shards, struct wlb_weights *whole, int64_t *bytes,
                              struct wlb_error *error)
{
	for (int i = 0; i < wlb_shard_groups(shards); i++)
		if (collect(folder, i, count_of(i, shards), whole, bytes, error) < 0)
			return -1;
	return 0;
}

json_t *wlb_shard_indexes_format(const struct wlb_weights *whole)
{
	json_t *indexes = json_array();
	for (int i = 0; i < whole->index_count; i++) {
		const struct wlb_weights_index *index = &whole->indexes[i];
		char name[48];
		wlb_shard_index_name(i, name);
		json_array_append_new(indexes, json_pack("{s:s, s:i, s:I, s:o}", "file", name, "shards", index->shards,
		                                         "bytes", (json_int_t)index->bytes, "checksum",
		                                         json_sprintf("%016" PRIx64, index->checksum)));
	}
	return indexes;
}

/* The name is checked, not followed: a manifest cannot point out of its folder. */
static int parse_index(json_t *json, int group, int is_last, struct wlb_weights_index *index, struct wlb_error *error)
{
	json_error_t json_error;
	const char *file, *checksum;
	char expected[48];
	int size = wlb_shard_group_size();
	json_int_t bytes;
	wlb_shard_index_name(group, expected);
	if (json_unpack_ex(json, &json_error, 0, "{s:s, s:i, s:I, s:s}", "file", &file, "shards", &index->shards,
	                   "bytes", &bytes, "checksum", &checksum) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (strcmp(file, expected) != 0 || bytes < 0)
		return wlb_fail(error, "it is '%.100s' of %lld bytes: it must be %s", file, (long long)bytes, expected);
	if (index->shards < 1 || index->shards > size || (index->shards < size && !is_last))
		return wlb_fail(error, "shards is %d: it must be %d, in the last group at most that", index->shards,
		                size);
	if (wlb_word_digest_parse(checksum, &index->checksum) < 0)
		return wlb_fail(error, "checksum is '%.40s': it must be 16 hexadecimal digits", checksum);
	index->bytes = bytes;
	return 0;
}

int wlb_shard_indexes_parse(json_t *json, struct wlb_weights *whole, struct wlb_error *error)
{
	size_t count = json_array_size(json);
	if (count == 0 || count > INT_MAX / (size_t)wlb_shard_group_size())
		return wlb_fail(error, "indexes must be a list of at least one");
	for (size_t i = 0; i < count; i++) {
		struct wlb_weights_index index;
		if (parse_index(json_array_get(json, i), (int)i, i + 1 == count, &index, error) < 0)
			return wlb_fail_in(error, "indexes[%zu]", i);
		if (add_index(whole, &index, error) < 0)
			return -1;
	}
	return 0;
}
