#include "checks/node/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks/node/bounds.h"
#include "checks/node/children.h"
#include "checks/node/random.h"
#include "common/file.h"
#include "common/seconds.h"

enum { BLOCK_BYTES = 1 << 20, BLOCK_WORDS = BLOCK_BYTES / (int)sizeof(uint64_t) };

struct work {
	const char *const *dirs;
	int blocks;
	uint64_t seed;
};

struct result {
	double write_s, read_s; /* with fsync; without the time in which what is compared is made */
	int differs;
};

/* Opens a new file without a name: where the file system lacks such files, one whose name is removed at once. */
static int open_unnamed(const char *dir, struct wlb_error *error)
{
	char path[PATH_MAX];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/.wlb-check-node-XXXXXX", dir) >= (int)sizeof(path))
		return wlb_fail(error, "the path is longer than %d bytes", PATH_MAX - 24);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return wlb_fail(error, "no file can be made: %s", strerror(errno));
	if (unlink(path) == 0)
		return fd;
	wlb_fail(error, "file %s cannot be removed: %s", path, strerror(errno));
	close(fd);
	return -1;
}

static int write_blocks(int fd, const struct work *work, uint64_t *block, struct result *result,
                        struct wlb_error *error)
{
	for (int at = 0; at < work->blocks; at++) {
		wlb_fill_random(block, BLOCK_WORDS, work->seed, at);
		double from_s = wlb_now_s();
		if (wlb_pwrite_all(fd, block, BLOCK_BYTES, (off_t)at * BLOCK_BYTES) < 0)
			return wlb_fail(error, "write after %d MiB: %s", at, strerror(errno));
		result->write_s += wlb_now_s() - from_s;
	}
	double from_s = wlb_now_s();
	if (fsync(fd) < 0)
		return wlb_fail(error, "fsync of %d MiB: %s", work->blocks, strerror(errno));
	result->write_s += wlb_now_s() - from_s;
	return 0;
}

static int read_block(int fd, char *block, off_t from)
{
	size_t have = 0;
	while (have < BLOCK_BYTES) {
		ssize_t n = pread(fd, block + have, BLOCK_BYTES - have, from + (off_t)have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO; /* the file is shorter than what was written */
		if (n <= 0)
			return -1;
		have += (size_t)n;
	}
	return 0;
}

static int read_blocks(int fd, const struct work *work, uint64_t *block, uint64_t *read, struct result *result,
                       struct wlb_error *error)
{
	/* What is read is to come from the disk, where the kernel follows the advice. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (int at = 0; at < work->blocks; at++) {
		wlb_fill_random(block, BLOCK_WORDS, work->seed, at);
		double from_s = wlb_now_s();
		if (read_block(fd, (char *)read, (off_t)at * BLOCK_BYTES) < 0)
			return wlb_fail(error, "read after %d MiB: %s", at, strerror(errno));
		result->read_s += wlb_now_s() - from_s;
		result->differs |= memcmp(block, read, BLOCK_BYTES) != 0;
	}
	return 0;
}

static int check_dir(int index, const void *context, void *result, struct wlb_error *error)
{
	const struct work *work = context;
	uint64_t *blocks = malloc((size_t)2 * BLOCK_BYTES);
	if (blocks == NULL)
		return wlb_fail(error, "out of memory for what is written");
	int fd = open_unnamed(work->dirs[index], error);
	int rc = fd >= 0 ? write_blocks(fd, work, blocks, result, error) : -1;
	if (rc == 0)
		rc = read_blocks(fd, work, blocks, blocks + BLOCK_WORDS, result, error);
	if (fd >= 0 && close(fd) < 0 && rc == 0)
		rc = wlb_fail(error, "close: %s", strerror(errno));
	free(blocks);
	return rc;
}

static void judge(const struct wlb_children *children, int index, const char *dir,
                  const struct wlb_check_options *options, struct wlb_check_report *report)
{
	char check[80], text[WLB_FINDING_BYTES];
	snprintf(check, sizeof(check), "disk %.70s", dir);
	if (children->list[index].end != WLB_CHILD_DONE) {
		wlb_child_describe(children, index, text, sizeof(text));
		wlb_report_add(report, check, WLB_CHECK_FAILED, "%s", text);
		return;
	}
	const struct result *result = wlb_child_result(children, index);
	double write = options->disk_mib / result->write_s, read = options->disk_mib / result->read_s;
	int slow = write < options->disk_mib_per_s || read < options->disk_mib_per_s;
	struct wlb_finding *finding =
		result->differs ? wlb_report_add(report, check, WLB_CHECK_FAILED,
	                                         "what was read of %d MiB is not what was written", options->disk_mib)
				: wlb_report_add(report, check, slow ? WLB_CHECK_FAILED : WLB_CHECK_OK,
	                                         "%.4g MiB/s written with fsync, %.4g MiB/s read", write, read);
	if (!result->differs)
		wlb_finding_limit(finding, "%g MiB/s", options->disk_mib_per_s);
}

/* The folders that are checked without --dir. */
static int default_dirs(const char *dirs[2])
{
	const char *spool = getenv("WLB_SPOOL_DIR"), *temporary = getenv("TMPDIR");
	int count = 0;
	if (spool != NULL && *spool != '\0')
		dirs[count++] = spool;
	dirs[count++] = temporary != NULL && *temporary != '\0' ? temporary : "/tmp";
	return count;
}

int wlb_check_disk(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error)
{
	const char *defaults[2];
	int count = options->dirs.count > 0 ? options->dirs.count : default_dirs(defaults);
	const char *const *dirs = options->dirs.count > 0 ? (const char *const *)options->dirs.texts : defaults;
	const struct work work = {dirs, options->disk_mib, (uint64_t)options->seed};
	struct wlb_children children = {0};
	double limit_s = WLB_CHECK_FOLDER_ANSWER_S + 2.0 * options->disk_mib / options->disk_mib_per_s;
	int rc = wlb_children_run(&children, count, sizeof(struct result), check_dir, &work, limit_s, error);
	for (int i = 0; i < count && rc == 0; i++)
		judge(&children, i, dirs[i], options, report);
	wlb_children_free(&children);
	return rc;
}
