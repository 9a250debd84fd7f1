#include "worker/data/gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "worker/data/input.h"

enum { INPUT_BYTES = 1 << 16 };

struct wlb_gunzip {
	int fd;
	int at_end;        /* of the file: no byte follows those of `input` */
	int is_known;      /* whether the file is compressed */
	int is_compressed; /* it begins as gzip does */
	int in_member;
	int64_t member_bytes; /* decompressed, of this member */
	z_stream stream; /* its next_in and avail_in are what is left of `input`, also where nothing is compressed */
	gz_header header;
	unsigned char extra[8]; /* the first bytes of the header's extra field */
	unsigned char input[INPUT_BYTES];
};

struct wlb_gunzip *wlb_gunzip_open(int fd)
{
	struct wlb_gunzip *g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	g->fd = fd;
	if (inflateInit2(&g->stream, 15 + 16) != Z_OK) { /* windows of any size; gzip alone */
		free(g);
		return NULL;
	}
	return g;
}

int wlb_gunzip_release(struct wlb_gunzip *g)
{
	int fd = g->fd;
	lseek(fd, 0, SEEK_SET);
	inflateEnd(&g->stream);
	free(g);
	return fd;
}

void wlb_gunzip_close(struct wlb_gunzip *g)
{
	if (g != NULL)
		close(wlb_gunzip_release(g));
}

int64_t wlb_gunzip_position(const struct wlb_gunzip *g)
{
	off_t position = lseek(g->fd, 0, SEEK_CUR);
	return position < 0 ? 0 : position;
}

/* Reads until `input` has at least `least` bytes, or the file ends. */
static int fill(struct wlb_gunzip *g, unsigned least, struct wlb_error *error)
{
	if (g->stream.avail_in >= least)
		return 0;
	if (g->stream.avail_in > 0)
		memmove(g->input, g->stream.next_in, g->stream.avail_in);
	g->stream.next_in = g->input;
	while (g->stream.avail_in < least && !g->at_end) {
		ssize_t got = read(g->fd, g->input + g->stream.avail_in, INPUT_BYTES - g->stream.avail_in);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			wlb_fail(error, "%s", strerror(errno));
			return WLB_UNREADABLE;
		}
		g->at_end = got == 0;
		g->stream.avail_in += (unsigned)got;
	}
	return 0;
}

/* Whether a member begins here. */
static int begins_member(const struct wlb_gunzip *g)
{
	return g->stream.avail_in >= 2 && g->stream.next_in[0] == 0x1f && g->stream.next_in[1] == 0x8b;
}

/* bgzip marks its members by an extra field, and the end of a file by one without data. */
static int lacks_last_block(const struct wlb_gunzip *g)
{
	return g->header.extra_len >= 6 && memcmp(g->extra, "BC\2\0", 4) == 0 && g->member_bytes > 0;
}

/* Passes over zero bytes behind a member, which gzip(1) takes for the padding of a tape or a block. */
static int skip_padding(struct wlb_gunzip *g, struct wlb_error *error)
{
	int rc = 0;
	while (rc == 0 && g->stream.avail_in > 0 && g->stream.next_in[0] == 0) {
		g->stream.next_in++;
		g->stream.avail_in--;
		rc = fill(g, 2, error);
	}
	return rc;
}

/* Begins the next member. Returns 1; 0 at the end of the file; -1 where something else follows. */
static int begin_member(struct wlb_gunzip *g, struct wlb_error *error)
{
	int rc = skip_padding(g, error);
	if (rc < 0)
		return rc;
	if (g->stream.avail_in == 0)
		return lacks_last_block(g)
		               ? wlb_fail(error, "it ends without the empty block that bgzip writes last: it was cut")
		               : 0;
	if (!begins_member(g))
		return wlb_fail(error, "what follows its compressed data is not compressed");
	g->header = (gz_header){.extra = g->extra, .extra_max = sizeof(g->extra)};
	if (inflateReset(&g->stream) != Z_OK || inflateGetHeader(&g->stream, &g->header) != Z_OK)
		return wlb_fail(error, "zlib refuses a stream");
	g->in_member = 1;
	g->member_bytes = 0;
	return 1;
}

/* Decompresses up to `bytes` bytes, and sets *got. */
static int decompress(struct wlb_gunzip *g, char *to, int64_t bytes, int64_t *got, struct wlb_error *error)
{
	g->stream.next_out = (unsigned char *)to;
	g->stream.avail_out = (unsigned)bytes;
	int code = inflate(&g->stream, Z_NO_FLUSH);
	*got = bytes - (int64_t)g->stream.avail_out;
	g->member_bytes += *got;
	if (code == Z_MEM_ERROR) {
		wlb_fail(error, "out of memory to decompress it");
		return WLB_UNREADABLE;
	}
	g->in_member = code != Z_STREAM_END;
	if (*got > 0 || code == Z_STREAM_END || code == Z_OK)
		return 0;
	if (code == Z_BUF_ERROR) /* neither input nor output made progress */
		return wlb_fail(error, "the compressed data end too early");
	return wlb_fail(error, "%s", g->stream.msg != NULL ? g->stream.msg : "its compressed data are damaged");
}

static int copy(struct wlb_gunzip *g, char *to, int64_t bytes, int64_t *got, struct wlb_error *error)
{
	int rc = fill(g, 1, error);
	*got = rc == 0 && bytes > (int64_t)g->stream.avail_in ? (int64_t)g->stream.avail_in : rc == 0 ? bytes : 0;
	if (*got > 0)
		memcpy(to, g->stream.next_in, (size_t)*got);
	g->stream.next_in += *got;
	g->stream.avail_in -= (unsigned)*got;
	return rc;
}

/* Makes progress in the file, if only in its headers. Returns 1; 0 at the end of the file; else as wlb_gunzip_read. */
static int read_some(struct wlb_gunzip *g, char *to, int64_t bytes, int64_t *got, struct wlb_error *error)
{
	*got = 0;
	int rc = fill(g, 2, error);
	if (rc == 0 && !g->is_known) {
		g->is_known = 1;
		g->is_compressed = begins_member(g);
	}
	if (rc == 0 && g->is_compressed && !g->in_member) {
		rc = begin_member(g, error);
		if (rc <= 0)
			return rc;
		rc = 0;
	}
	if (rc == 0)
		rc = g->is_compressed ? decompress(g, to, bytes, got, error) : copy(g, to, bytes, got, error);
	return rc < 0 ? rc : g->is_compressed || *got > 0;
}

int64_t wlb_gunzip_read(struct wlb_gunzip *g, char *to, int64_t bytes, struct wlb_error *error)
{
	int64_t done = 0, got;
	while (done < bytes) {
		int rc = read_some(g, to + done, bytes - done, &got, error);
		done += got;
		if (rc <= 0)
			return done > 0 ? done : rc;
	}
	return done;
}
