#include "coordinator/client/node_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shared by programs of several releases: members keep their offsets, new ones are added at the end. */
struct wlb_node_page {
	char magic[8];
	_Atomic int64_t step;
	_Atomic int32_t must_end; /* set after the reason */
	char attempt_id[44];
	char reason[WLB_NODE_PAGE_REASON_SIZE];
};

_Static_assert(offsetof(struct wlb_node_page, step) == 8 && offsetof(struct wlb_node_page, must_end) == 16 &&
                       offsetof(struct wlb_node_page, attempt_id) == 20 && offsetof(struct wlb_node_page, reason) == 64,
               "docs/api.md has the layout, for other trainers");

static const char magic[8] = "wlbpage1";

/* The size is sealed: if the page shrank, SIGBUS would end every process that reads it. */
static int make_file(struct wlb_error *error)
{
	int fd = memfd_create("wlb-node-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return wlb_fail(error, "node page: no memory file: %s", strerror(errno));
	if (ftruncate(fd, sizeof(struct wlb_node_page)) == 0 && fchmod(fd, 0600) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	wlb_fail(error, "node page: %s", strerror(errno));
	close(fd);
	return -1;
}

static struct wlb_node_page *map(int fd)
{
	void *page = mmap(NULL, sizeof(struct wlb_node_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return page != MAP_FAILED ? page : NULL;
}

struct wlb_node_page *wlb_node_page_create(const char *attempt_id, int *fd, struct wlb_error *error)
{
	*fd = make_file(error);
	if (*fd < 0)
		return NULL;
	struct wlb_node_page *page = map(*fd);
	if (page == NULL) {
		wlb_fail(error, "node page: %s", strerror(errno));
		close(*fd);
		*fd = -1;
		return NULL;
	}
	memcpy(page->magic, magic, sizeof(magic));
	snprintf(page->attempt_id, sizeof(page->attempt_id), "%s", attempt_id);
	return page;
}

static struct wlb_node_page *open_file(int fd, const char *path, const char *attempt_id, struct wlb_error *error)
{
	struct stat status;
	if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(struct wlb_node_page)) {
		wlb_fail(error, "node page %.100s: is no page of wlb-agent", path);
		return NULL;
	}
	struct wlb_node_page *page = map(fd);
	if (page == NULL) {
		wlb_fail(error, "node page %.100s: %s", path, strerror(errno));
		return NULL;
	}
	if (memcmp(page->magic, magic, sizeof(magic)) == 0 &&
	    strncmp(page->attempt_id, attempt_id, sizeof(page->attempt_id)) == 0)
		return page;
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
	if (page != NULL)
		munmap(page, sizeof(*page));
}

void wlb_node_page_set_step(struct wlb_node_page *page, int64_t step)
{
	atomic_store_explicit(&page->step, step, memory_order_relaxed);
}

int64_t wlb_node_page_step(const struct wlb_node_page *page)
{
	int64_t step = atomic_load_explicit(&page->step, memory_order_relaxed);
	return step > 0 ? step : 0;
}

void wlb_node_page_order_end(struct wlb_node_page *page, const char *reason)
{
	if (atomic_load(&page->must_end) != 0)
		return;
	snprintf(page->reason, sizeof(page->reason), "%s", reason);
	atomic_store(&page->must_end, 1);
}

bool wlb_node_page_must_end(const struct wlb_node_page *page, const char **reason)
{
	if (atomic_load(&page->must_end) == 0)
		return false;
	if (reason != NULL)
		*reason = page->reason;
	return true;
}
