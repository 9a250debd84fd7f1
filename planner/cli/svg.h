/* A picture as an SVG file. */
#ifndef PLANNER_CLI_SVG_H
#define PLANNER_CLI_SVG_H

#include "common/atomic_file.h"

/* The inks of the pictures; all stand out from white and from each other, in grey too. */
enum wlb_ink { WLB_INK_BLUE, WLB_INK_ORANGE, WLB_INK_GREEN, WLB_INK_RED, WLB_INK_PURPLE, WLB_INK_GREY };

struct wlb_svg {
	struct wlb_atomic_file file;
};

enum wlb_svg_align { WLB_SVG_LEFT, WLB_SVG_MIDDLE, WLB_SVG_RIGHT };

/* Starts a picture of that many pixels on white. `path` must outlive it. */
int wlb_svg_begin(struct wlb_svg *svg, const char *path, double width, double height, struct wlb_error *error);

/* A filled box; `shade` from 0 (pale) to 1 (full ink). `title` is shown when the mouse rests on it; may be NULL. */
void wlb_svg_box(struct wlb_svg *svg, double x, double y, double width, double height, enum wlb_ink ink, double shade,
                 const char *title);
void wlb_svg_line(struct wlb_svg *svg, double x0, double y0, double x1, double y1);
/* `y` is the baseline. */
void wlb_svg_text(struct wlb_svg *svg, double x, double y, double size, enum wlb_svg_align align, const char *text);

/* Ends the picture. The file is then complete, or unchanged on error. */
int wlb_svg_commit(struct wlb_svg *svg, struct wlb_error *error);

#endif
