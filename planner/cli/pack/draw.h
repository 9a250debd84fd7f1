/* Draws a packed step as SVG. */
#ifndef PLANNER_CLI_PACK_DRAW_H
#define PLANNER_CLI_PACK_DRAW_H

#include <stdint.h>

#include "libwlb/wlb.h"

/* Writes a picture in which each micro-batch is a row and each document a box, as wide as its work on the left and as
 * its tokens on the right. */
int wlb_pack_draw(const char *path, const struct wlb_step *step, const struct wlb_model *model, int64_t seq_length,
                  struct wlb_error *error);

#endif
