#include "follow/event_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct search {
	wlb_event_folder_take *take;
	void *context;
	int entries;
	int64_t unread;
};

/* A folder in the search. The texts are those of the path below the folder that is searched. */
struct place {
	char name[WLB_EVENT_NAME_SIZE];   /* "" or ends in / */
	char prefix[WLB_EVENT_NAME_SIZE]; /* from the next folder above that has event files; else a word, or "" */
	int depth;
	bool is_below_files; /* a folder above has event files */
};

static void search_folder(struct search *search, int fd, const struct place *place);

static bool is_word(const char *name)
{
	static const char *const words[] = {"train", "validation", "val", "eval", "test"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(name, words[i]) == 0)
			return true;
	return false;
}

/* Returns whether both texts have room there. */
static bool join(char to[WLB_EVENT_NAME_SIZE], const char *first, const char *second, const char *end)
{
	return snprintf(to, WLB_EVENT_NAME_SIZE, "%s%s%s", first, second, end) < WLB_EVENT_NAME_SIZE;
}

static bool next_entry(struct search *search, DIR *dir, struct dirent **entry)
{
	do {
		if (search->entries == WLB_EVENT_ENTRIES_MOST || (*entry = readdir(dir)) == NULL)
			return false;
		search->entries++;
	} while ((*entry)->d_name[0] == '.');
	return true;
}

/* Returns whether there was one. */
static bool take_files(struct search *search, DIR *dir, const struct place *place)
{
	struct dirent *entry;
	struct stat about;
	char name[WLB_EVENT_NAME_SIZE];
	bool is_found = false;
	while (next_entry(search, dir, &entry)) {
		if (strstr(entry->d_name, "tfevents") == NULL || !join(name, place->name, entry->d_name, "") ||
		    fstatat(dirfd(dir), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(about.st_mode))
			continue;
		search->take(search->context, name, place->prefix,
		             (double)about.st_mtim.tv_sec + 1e-9 * (double)about.st_mtim.tv_nsec);
		is_found = true;
	}
	return is_found;
}

static void enter(struct search *search, DIR *dir, const struct place *place, const char *name, bool has_files)
{
	struct place below = {.depth = place->depth + 1, .is_below_files = has_files || place->is_below_files};
	bool is_added = below.is_below_files || is_word(name);
	if (below.depth > WLB_EVENT_DEPTH_MOST || !join(below.name, place->name, name, "/") ||
	    !join(below.prefix, has_files ? "" : place->prefix, is_added ? name : "", is_added ? "/" : ""))
		return;
	int fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		search_folder(search, fd, &below);
	else
		search->unread++;
}

/* Closes the descriptor. */
static void search_folder(struct search *search, int fd, const struct place *place)
{
	struct dirent *entry;
	struct stat about;
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		search->unread++;
		return;
	}
	bool has_files = take_files(search, dir, place);
	rewinddir(dir);
	while (next_entry(search, dir, &entry))
		if (entry->d_type == DT_DIR ||
		    (entry->d_type == DT_UNKNOWN &&
		     fstatat(dirfd(dir), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode)))
			enter(search, dir, place, entry->d_name, has_files);
	closedir(dir);
}

int64_t wlb_event_folder_search(const char *folder, wlb_event_folder_take *take, void *context)
{
	struct search search = {take, context, 0, 0};
	struct place place = {.depth = 0};
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		search_folder(&search, fd, &place);
	return search.unread;
}
