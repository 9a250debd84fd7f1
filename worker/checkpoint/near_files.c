#include "worker/checkpoint/near_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/file_progress.h"

enum { TEMPORARY_BYTES = 4096 + 16 };

void wlb_near_file(const char *path, enum wlb_near_kind kind, int shard, char file[4096])
{
	static const char *const names[WLB_NEAR_KINDS] = {"shard", "copies"};
	snprintf(file, 4096, "%.4000s/%s_%05d.safetensors", path, names[kind], shard);
}

int wlb_near_make(const char *path, struct wlb_error *error)
{
	wlb_file_report("creating", path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return wlb_fail(error, "%s: cannot be created: %s", path, strerror(errno));
	return 0;
}

int wlb_near_write_facts(const char *path, const struct wlb_checkpoint_facts *facts, const void *packer_state,
                         size_t packer_bytes, struct wlb_error *error)
{
	char file[4096];
	const struct wlb_weights none = {0};
	int64_t bytes;
	snprintf(file, sizeof(file), "%.4000s/" WLB_PACKER_NAME, path);
	wlb_file_report("writing", file);
	if (wlb_file_write(file, packer_state, packer_bytes, 0600, error) < 0)
		return -1;
	return wlb_manifest_write(path, facts, &none, (int64_t)packer_bytes, &bytes, error);
}

/* ---- writing a rank's file --------------------------------------------------------------------------------------- */

static void format_temporary(const char *file, char temporary[TEMPORARY_BYTES])
{
	snprintf(temporary, TEMPORARY_BYTES, "%s.partial", file);
}

static int publish(const char *temporary, const char *file, struct wlb_error *error)
{
	wlb_file_report("renaming", temporary);
	if (chmod(temporary, 0600) == 0 && rename(temporary, file) == 0)
		return 0;
	wlb_fail(error, "%s: cannot be renamed to %s: %s", temporary, file, strerror(errno));
	unlink(temporary);
	return -1;
}

int wlb_near_write_parts(const char *file, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	char temporary[TEMPORARY_BYTES];
	struct wlb_safetensors_output *output;
	format_temporary(file, temporary);
	if (wlb_safetensors_create(temporary, parts, count, &output, error) < 0)
		return -1;
	if (wlb_safetensors_append(output, parts, count, error) < 0) {
		wlb_safetensors_discard(output);
		return -1;
	}
	return wlb_safetensors_finish(output, error) < 0 ? -1 : publish(temporary, file, error);
}

static int write_bytes(const char *temporary, const void *data, size_t bytes, struct wlb_error *error)
{
	enum { WRITE_BYTES = 4 << 20 };
	wlb_file_report("creating", temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600), rc = fd < 0 ? -1 : 0;
	for (size_t done = 0; rc == 0 && done < bytes; done += WRITE_BYTES) {
		wlb_file_report("writing", temporary);
		rc = wlb_write_all(fd, (const char *)data + done,
		                   bytes - done < WRITE_BYTES ? bytes - done : WRITE_BYTES);
	}
	wlb_file_report("syncing", temporary);
	if (rc == 0)
		rc = fsync(fd);
	if (rc < 0)
		wlb_fail(error, "%s: cannot be written: %s", temporary, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

int wlb_near_write_bytes(const char *file, const void *data, size_t bytes, struct wlb_error *error)
{
	char temporary[TEMPORARY_BYTES];
	format_temporary(file, temporary);
	if (write_bytes(temporary, data, bytes, error) < 0 || wlb_near_verify(temporary, error) < 0) {
		unlink(temporary);
		return -1;
	}
	return publish(temporary, file, error);
}

/* ---- reading it -------------------------------------------------------------------------------------------------- */

int wlb_near_verify(const char *file, struct wlb_error *error)
{
	const struct wlb_stored_tensor *tensors;
	struct wlb_safetensors *stored = wlb_safetensors_open(file, error);
	if (stored == NULL)
		return -1;
	int count = wlb_safetensors_tensors(stored, &tensors), rc = 0;
	for (int i = 0; rc == 0 && i < count; i++)
		rc = wlb_safetensors_verify(stored, &tensors[i], 0, error);
	wlb_safetensors_close(stored);
	return rc == 0 ? 0 : -1;
}

static bool is_same(const struct wlb_stored_tensor *tensor, const struct wlb_tensor_part *part)
{
	const struct wlb_tensor_block *a = &tensor->block, *b = &part->block;
	const struct wlb_element_range range = wlb_tensor_part_range(part);
	return a->row_start == b->row_start && a->rows == b->rows && a->col_start == b->col_start &&
	       a->cols == b->cols && a->global_rows == b->global_rows && a->global_cols == b->global_cols &&
	       tensor->range.begin == range.begin && tensor->range.end == range.end &&
	       wlb_stored_bytes(tensor->stored) == (int)wlb_dtype_bytes(part->dtype);
}

/* Returns the tensor that is the part; NULL with the reason. */
static const struct wlb_stored_tensor *find_part(const struct wlb_safetensors *stored, const char *file,
                                                 const struct wlb_tensor_part *part, struct wlb_error *error)
{
	const struct wlb_stored_tensor *tensor = wlb_safetensors_find(stored, part->name);
	if (tensor != NULL && is_same(tensor, part))
		return tensor;
	wlb_fail(error, "%s: it has not this rank's part of tensor %s", file, part->name);
	return NULL;
}

int wlb_near_matches(const char *file, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	const struct wlb_stored_tensor *tensors;
	struct wlb_safetensors *stored = wlb_safetensors_open(file, error);
	if (stored == NULL)
		return -1;
	int rc = wlb_safetensors_tensors(stored, &tensors) == count
	                 ? 0
	                 : wlb_fail(error, "%s: it has not the %d tensors of this rank", file, count);
	for (int i = 0; rc == 0 && i < count; i++)
		rc = find_part(stored, file, &parts[i], error) != NULL ? 0 : -1;
	wlb_safetensors_close(stored);
	return rc;
}

static int read_part(const struct wlb_safetensors *stored, const char *file, const struct wlb_tensor_part *part,
                     struct wlb_error *error)
{
	uint64_t checksum = 0;
	const struct wlb_stored_tensor *tensor = find_part(stored, file, part, error);
	if (tensor == NULL ||
	    wlb_safetensors_read_all(stored, tensor, part->dtype, part->data_host, &checksum, error) < 0)
		return -1;
	if (tensor->has_checksum && checksum == tensor->checksum)
		return 0;
	return wlb_fail(error, "%s: tensor %s: its data are not those that were saved: they are damaged", file,
	                part->name);
}

int wlb_near_read_parts(const char *file, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	struct wlb_safetensors *stored = wlb_safetensors_open(file, error);
	int rc = stored != NULL ? 0 : -1;
	for (int i = 0; rc == 0 && i < count; i++)
		rc = read_part(stored, file, &parts[i], error);
	wlb_safetensors_close(stored);
	return rc;
}
