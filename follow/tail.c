#include "follow/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/own_file.h"
#include "follow/crc32c.h"

/* Whether the file still begins as it did, and has what was read of it. Returns -1 where it cannot be read. */
static int is_same(int fd, const struct wlb_tail_place *place)
{
	char head[WLB_TAIL_HEAD_BYTES];
	struct stat status;
	if (fstat(fd, &status) < 0)
		return -1;
	if (status.st_size < place->offset || status.st_size < place->head_bytes)
		return 0;
	if (wlb_pread_all(fd, head, (size_t)place->head_bytes, 0) < 0)
		return errno == EIO ? 0
		                    : -1; /* EIO: it was cut meanwhile, or the disk fails, which the next read says */
	return wlb_crc32c(0, head, (size_t)place->head_bytes) == place->head_crc;
}

static void extend_head(struct wlb_tail_place *place, const char *bytes, size_t count)
{
	int64_t begin = place->head_bytes - place->offset; /* in `bytes`, which are at the offset */
	int64_t room = WLB_TAIL_HEAD_BYTES - place->head_bytes, more = (int64_t)count - begin;
	if (begin < 0 || more <= 0 || room == 0)
		return;
	more = more < room ? more : room;
	place->head_crc = wlb_crc32c(place->head_crc, bytes + begin, (size_t)more);
	place->head_bytes += (int)more;
}

static enum wlb_tail_result read_open(int fd, struct wlb_tail_place *place, char *to, size_t size, size_t *count)
{
	int same = is_same(fd, place);
	if (same < 0)
		return WLB_TAIL_FAILED;
	if (same == 0) {
		*place = (struct wlb_tail_place){.generation = place->generation + 1};
		return WLB_TAIL_ANOTHER;
	}
	ssize_t bytes;
	do {
		bytes = pread(fd, to, size, place->offset);
	} while (bytes < 0 && errno == EINTR);
	if (bytes <= 0)
		return bytes < 0 ? WLB_TAIL_FAILED : WLB_TAIL_NONE;
	extend_head(place, to, (size_t)bytes);
	place->offset += bytes;
	*count = (size_t)bytes;
	return WLB_TAIL_BYTES;
}

enum wlb_tail_result wlb_tail_read(const char *path, struct wlb_tail_place *place, char *to, size_t size, size_t *count,
                                   struct wlb_error *error)
{
	*count = 0;
	int fd = wlb_own_file_open(path, O_RDONLY, error);
	if (fd < 0)
		return errno == ENOENT ? WLB_TAIL_NONE : WLB_TAIL_FAILED;
	enum wlb_tail_result result = read_open(fd, place, to, size, count);
	if (result == WLB_TAIL_FAILED)
		wlb_fail(error, "%s: cannot be read: %s", path, strerror(errno));
	close(fd);
	return result;
}
