#include "worker/data/loss_mask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/data/input.h"

enum { CHUNK_BYTES = 8192 };

static int check_size(const struct wlb_loss_mask *mask, int64_t tokens, struct wlb_error *error)
{
	if (mask->bytes == tokens)
		return 0;
	return wlb_fail(
		error,
		"%s: has %lld bytes, and the dataset %lld tokens: it must have a byte for each; build both together, "
		"or remove it to train all tokens",
		mask->path, (long long)mask->bytes, (long long)tokens);
}

int wlb_loss_mask_open(struct wlb_loss_mask *mask, const char *prefix, int64_t tokens, struct wlb_error *error)
{
	*mask = (struct wlb_loss_mask){.fd = -1};
	if (asprintf(&mask->path, "%s.loss_mask", prefix) < 0) {
		mask->path = NULL;
		wlb_fail(error, "%s: out of memory", prefix);
		return WLB_UNREADABLE;
	}
	if (access(mask->path, F_OK) < 0 && errno == ENOENT)
		return 0;
	mask->fd = wlb_input_open(mask->path, &mask->bytes, error);
	return mask->fd < 0 ? mask->fd : check_size(mask, tokens, error);
}

void wlb_loss_mask_close(struct wlb_loss_mask *mask)
{
	if (mask->fd >= 0)
		close(mask->fd);
	free(mask->path);
}

/* Applies a part of the mask, of which token `first` has the first byte. */
static int64_t apply_bytes(const struct wlb_loss_mask *mask, const unsigned char *bytes, int64_t first, int64_t count,
                           int32_t *targets, struct wlb_error *error)
{
	int64_t counted = 0;
	for (int64_t i = 0; i < count; i++) {
		if (bytes[i] > 1)
			return wlb_fail(error, "%s: byte %lld is %d: each must be 0 or 1", mask->path,
			                (long long)(first + i), bytes[i]);
		counted += bytes[i];
		if (targets != NULL && bytes[i] == 0)
			targets[i] = -1;
	}
	return counted;
}

int64_t wlb_loss_mask_apply(const struct wlb_loss_mask *mask, int64_t first, int64_t count, int32_t *targets,
                            struct wlb_error *error)
{
	unsigned char bytes[CHUNK_BYTES];
	int64_t total = 0;
	if (mask->fd < 0)
		return count;
	for (int64_t done = 0, n; done < count; done += n) {
		n = count - done < CHUNK_BYTES ? count - done : CHUNK_BYTES;
		int rc = wlb_input_read(mask->fd, mask->path, bytes, (size_t)n, first + done, error);
		if (rc < 0)
			return rc;
		int64_t counted =
			apply_bytes(mask, bytes, first + done, n, targets != NULL ? targets + done : NULL, error);
		if (counted < 0)
			return counted;
		total += counted;
	}
	return total;
}
