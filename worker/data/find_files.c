#include "worker/data/find_files.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct file {
	struct wlb_found_file found;
	dev_t device;
	ino_t inode;
};

struct list {
	struct file *files;
	int64_t count;
	int64_t capacity;
};

static int append(struct list *list, const FTSENT *entry, struct wlb_error *error)
{
	if (list->count == list->capacity) {
		int64_t capacity = list->capacity ? 2 * list->capacity : 1024;
		struct file *files = reallocarray(list->files, (size_t)capacity, sizeof(*files));
		if (files == NULL)
			return wlb_fail(error, "out of memory for %lld files", (long long)capacity);
		list->files = files;
		list->capacity = capacity;
	}
	struct file *file = &list->files[list->count];
	const struct stat *about = entry->fts_statp;
	*file = (struct file){{strdup(entry->fts_path), about->st_size,
	                       INT64_C(1000000000) * about->st_mtim.tv_sec + about->st_mtim.tv_nsec},
	                      about->st_dev,
	                      about->st_ino};
	if (file->found.path == NULL)
		return wlb_fail(error, "out of memory for %lld files", (long long)list->count);
	list->count++;
	return 0;
}

static int walk(FTS *tree, struct list *list, struct wlb_found *found, struct wlb_error *error)
{
	for (;;) {
		errno = 0;
		const FTSENT *entry = fts_read(tree);
		if (entry == NULL)
			return errno == 0 ? 0 : wlb_fail(error, "cannot list the input: %s", strerror(errno));
		struct wlb_error why;
		switch (entry->fts_info) {
		case FTS_F:
			if (append(list, entry, error) < 0)
				return -1;
			continue;
		case FTS_NS:
		case FTS_DNR:
		case FTS_ERR:
			wlb_fail(&why, "%s: cannot be read: %s", entry->fts_path, strerror(entry->fts_errno));
			break;
		case FTS_SLNONE:
			wlb_fail(&why, "%s: the link leads nowhere", entry->fts_path);
			break;
		case FTS_SL:
			found->links++;
			continue;
		case FTS_DEFAULT:
			if (entry->fts_level > FTS_ROOTLEVEL)
				continue;
			wlb_fail(&why,
			         "%s: must be a regular file or a directory, not a pipe, a socket or a device: write "
			         "the text to a file",
			         entry->fts_path);
			break;
		default:
			continue;
		}
		if (entry->fts_level == FTS_ROOTLEVEL)
			return wlb_fail(error, "input %s", why.message);
		if (found->unreadable++ == 0)
			found->first_unreadable = why;
	}
}

static int by_inode(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return strcmp(x->found.path, y->found.path); /* of several links the first name stays */
}

static int by_path(const void *a, const void *b)
{
	const struct wlb_found_file *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* Moves the first path of each inode to `found`. */
static int take_unique(struct list *list, struct wlb_found *found, struct wlb_error *error)
{
	found->files = calloc((size_t)list->count + 1, sizeof(*found->files));
	if (found->files == NULL)
		return wlb_fail(error, "out of memory for %lld files", (long long)list->count);
	if (list->count > 0)
		qsort(list->files, (size_t)list->count, sizeof(*list->files), by_inode);
	for (int64_t i = 0; i < list->count; i++) {
		struct file *file = &list->files[i];
		if (i > 0 && file[-1].device == file->device && file[-1].inode == file->inode)
			continue;
		found->files[found->count++] = file->found;
		found->bytes += file->found.bytes;
		file->found.path = NULL;
	}
	qsort(found->files, (size_t)found->count, sizeof(*found->files), by_path);
	return 0;
}

int wlb_find_files(char *const *roots, struct wlb_found *found, struct wlb_error *error)
{
	struct list list = {0};
	*found = (struct wlb_found){0};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	if (tree == NULL)
		return wlb_fail(error, "cannot list the input: %s", strerror(errno));
	int rc = walk(tree, &list, found, error);
	fts_close(tree);
	if (rc == 0)
		rc = take_unique(&list, found, error);
	for (int64_t i = 0; i < list.count; i++)
		free(list.files[i].found.path);
	free(list.files);
	return rc;
}

void wlb_found_free(struct wlb_found *found)
{
	for (int64_t i = 0; i < found->count; i++)
		free(found->files[i].path);
	free(found->files);
	*found = (struct wlb_found){0};
}
