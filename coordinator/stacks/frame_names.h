/* The texts of frames. A search in the symbols of a large library takes milliseconds and ranks have the same frames, so
 * each text is made once. */
#ifndef COORDINATOR_STACKS_FRAME_NAMES_H
#define COORDINATOR_STACKS_FRAME_NAMES_H

#include <stdint.h>

struct wlb_frame_names;

struct wlb_frame {
	const char *module;       /* path of its file; NULL: the address is in none */
	uint64_t offset;          /* in the module, or the address */
	const char *function;     /* NULL: it has no symbol */
	uint64_t function_offset; /* in the function */
	const char *source;       /* "train.c:101"; NULL: not known */
};

struct wlb_frame_names *wlb_frame_names_new(void); /* NULL if out of memory */
void wlb_frame_names_free(struct wlb_frame_names *names);

/* Returns the text that was made for this module and offset, NULL where none was. */
const char *wlb_frame_name_known(const struct wlb_frame_names *names, const struct wlb_frame *frame);

/* Returns "function+0x12 (file)", "function+0x12 at train.c:101 (file)" where the line is known, or "0x1234 (file)"
 * without a symbol: printable ASCII, at most 200 bytes. NULL if out of memory. */
const char *wlb_frame_name(struct wlb_frame_names *names, const struct wlb_frame *frame);

#endif
