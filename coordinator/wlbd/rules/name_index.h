/* The index of a name in a list, found in O(log n). */
#ifndef COORDINATOR_WLBD_RULES_NAME_INDEX_H
#define COORDINATOR_WLBD_RULES_NAME_INDEX_H

struct wlbd_indexed_name {
	const char *name;
	int index;
};

struct wlbd_name_index {
	struct wlbd_indexed_name *list; /* sorted by name */
	int count;
};

/* The texts must live as long as the index; the array of them need not. Returns -1 if out of memory.
 * wlbd_name_index_free releases the index. */
int wlbd_name_index_make(struct wlbd_name_index *index, const char *const *names, int count);
void wlbd_name_index_free(struct wlbd_name_index *index);

/* Returns the index of the name in the list, any of them where it is there more than once; -1: it is not there. */
int wlbd_name_index_find(const struct wlbd_name_index *index, const char *name);

/* Returns a name that the list has more than once; NULL: there is none. */
const char *wlbd_name_index_repeated(const struct wlbd_name_index *index);

#endif
