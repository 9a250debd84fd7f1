#include "coordinator/client/node_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shared by programs of several releases: members keep their offsets, new ones are added at the end. */
struct shared {
	char magic[8];
	_Atomic int64_t step;
	_Atomic int32_t must_end; /* set after the reason */
	char attempt_id[44];
	char reason[WLB_NODE_PAGE_REASON_SIZE];
	/* Areas of so many bytes begin at AREAS_OFFSET. */
	uint32_t area_bytes;
};

enum { AREAS_OFFSET = 4096 };

_Static_assert(offsetof(struct shared, step) == 8 && offsetof(struct shared, must_end) == 16 &&
                       offsetof(struct shared, attempt_id) == 20 && offsetof(struct shared, reason) == 64 &&
                       offsetof(struct shared, area_bytes) == 576 && sizeof(struct shared) <= AREAS_OFFSET,
               "docs/trainers.md has the layout, for other trainers");

/* Other processes can change the memory at any time: its size is this process's own. */
struct wlb_node_page {
	struct shared *shared;
	size_t bytes;
	int areas;
};

static const char magic[8] = "wlbpage1";

/* No two areas share a cache line. */
static size_t area_bytes(void)
{
	return (wlb_rank_trace_bytes() + AREAS_OFFSET - 1) / AREAS_OFFSET * AREAS_OFFSET;
}

/* The size is sealed: if the page shrank, SIGBUS would end every process that reads it. */
static int make_file(int ranks, struct wlb_error *error)
{
	int fd = memfd_create("wlb-node-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return wlb_fail(error, "node page: no memory file: %s", strerror(errno));
	off_t bytes = AREAS_OFFSET + (off_t)ranks * (off_t)area_bytes();
	if (ftruncate(fd, bytes) == 0 && fchmod(fd, 0600) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	wlb_fail(error, "node page: %s", strerror(errno));
	close(fd);
	return -1;
}

static struct wlb_node_page *map(int fd, size_t bytes, struct wlb_error *error)
{
	struct wlb_node_page *page = calloc(1, sizeof(*page));
	void *memory = page != NULL ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (memory == MAP_FAILED) {
		wlb_fail(error, "node page: %s", strerror(errno));
		free(page);
		return NULL;
	}
	*page = (struct wlb_node_page){.shared = memory, .bytes = bytes};
	return page;
}

/* Of the areas that the page has, those of this release's form. */
static void find_areas(struct wlb_node_page *page)
{
	if (page->bytes > AREAS_OFFSET && page->shared->area_bytes == area_bytes())
		page->areas = (int)((page->bytes - AREAS_OFFSET) / area_bytes());
}

struct wlb_node_page *wlb_node_page_create(const char *attempt_id, int ranks, int *fd, struct wlb_error *error)
{
	*fd = make_file(ranks, error);
	if (*fd < 0)
		return NULL;
	struct wlb_node_page *page = map(*fd, AREAS_OFFSET + (size_t)ranks * area_bytes(), error);
	if (page == NULL) {
		close(*fd);
		*fd = -1;
		return NULL;
	}
	memcpy(page->shared->magic, magic, sizeof(magic));
	snprintf(page->shared->attempt_id, sizeof(page->shared->attempt_id), "%s", attempt_id);
	page->shared->area_bytes = (uint32_t)area_bytes();
	find_areas(page);
	return page;
}

static struct wlb_node_page *open_file(int fd, const char *path, const char *attempt_id, struct wlb_error *error)
{
	struct stat status;
	if (fstat(fd, &status) != 0 || status.st_size < (off_t)offsetof(struct shared, area_bytes)) {
		wlb_fail(error, "node page %.100s: is no page of wlb-agent", path);
		return NULL;
	}
	struct wlb_node_page *page = map(fd, (size_t)status.st_size, error);
	if (page == NULL)
		return NULL;
	if (memcmp(page->shared->magic, magic, sizeof(magic)) == 0 &&
	    strncmp(page->shared->attempt_id, attempt_id, sizeof(page->shared->attempt_id)) == 0) {
		find_areas(page);
		return page;
	}
	wlb_fail(error, "node page %.100s: is not that of attempt %.40s", path, attempt_id);
	wlb_node_page_close(page);
	return NULL;
}

struct wlb_node_page *wlb_node_page_open(const char *path, const char *attempt_id, struct wlb_error *error)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		wlb_fail(error, "node page %.100s: %s", path, strerror(errno));
		return NULL;
	}
	struct wlb_node_page *page = open_file(fd, path, attempt_id, error);
	close(fd);
	return page;
}

void wlb_node_page_close(struct wlb_node_page *page)
{
	if (page == NULL)
		return;
	munmap(page->shared, page->bytes);
	free(page);
}

static struct wlb_rank_trace *area_at(const struct wlb_node_page *page, int i)
{
	if (i < 0 || i >= page->areas)
		return NULL;
	return (struct wlb_rank_trace *)((char *)page->shared + AREAS_OFFSET + (size_t)i * area_bytes());
}

const struct wlb_rank_trace *wlb_node_page_area(const struct wlb_node_page *page, int i)
{
	return area_at(page, i);
}

struct wlb_rank_trace *wlb_node_page_take_area(struct wlb_node_page *page, int rank)
{
	struct wlb_rank_trace *area;
	for (int i = 0; (area = area_at(page, i)) != NULL; i++)
		if (wlb_rank_trace_rank(area) == rank) {
			wlb_rank_trace_clear(area);
			return area;
		}
	for (int i = 0; (area = area_at(page, i)) != NULL; i++)
		if (wlb_rank_trace_take(area, rank) == 0)
			return area;
	return NULL;
}

void wlb_node_page_set_step(struct wlb_node_page *page, int64_t step)
{
	atomic_store_explicit(&page->shared->step, step, memory_order_relaxed);
}

int64_t wlb_node_page_step(const struct wlb_node_page *page)
{
	int64_t step = atomic_load_explicit(&page->shared->step, memory_order_relaxed);
	return step > 0 ? step : 0;
}

void wlb_node_page_order_end(struct wlb_node_page *page, const char *reason)
{
	if (atomic_load(&page->shared->must_end) != 0)
		return;
	wlb_text_show(page->shared->reason, sizeof(page->shared->reason), reason);
	atomic_store(&page->shared->must_end, 1);
}

bool wlb_node_page_must_end(const struct wlb_node_page *page, const char **reason)
{
	if (atomic_load(&page->shared->must_end) == 0)
		return false;
	if (reason != NULL)
		*reason = page->shared->reason;
	return true;
}
