#include "planner/cli/pack/draw.h"

#include <inttypes.h>
#include <math.h>

#include "planner/cli/svg.h"

enum {
	ROWS_MAX = 256, /* more could not be distinguished */
	ROW = 18,
	GAP = 4,
	MARGIN = 48,
	PANEL = 520,
	BETWEEN = 40,
	TOP = 64,
	BOTTOM = 48,
};

/* A panel has the boxes of each row side by side; `full` units are as wide as the panel. */
struct panel {
	double x;
	double full;
	double used[ROWS_MAX];
};

static void add_box(struct wlb_svg *svg, struct panel *panel, const struct wlb_packed_span *span, double value,
                    const char *title)
{
	double x = panel->x + panel->used[span->micro_batch] / panel->full * PANEL;
	double y = TOP + span->micro_batch * (ROW + GAP);
	/* Longer documents are darker; documents that waited have another colour. */
	double shade = log2((double)span->span.tokens) / 17.0;
	wlb_svg_box(svg, x, y, value / panel->full * PANEL, ROW, span->waited_steps > 0 ? WLB_INK_ORANGE : WLB_INK_BLUE,
	            shade * shade * shade, title);
	panel->used[span->micro_batch] += value;
}

static void add_frame(struct wlb_svg *svg, const struct panel *panel, int rows, double mark, const char *title,
                      const char *mark_name)
{
	double x = panel->x + mark / panel->full * PANEL, bottom = TOP + rows * (ROW + GAP);
	wlb_svg_text(svg, panel->x, TOP - 12, 13, WLB_SVG_LEFT, title);
	wlb_svg_line(svg, x, TOP - 6, x, bottom + 4);
	wlb_svg_text(svg, x, bottom + 18, 11, WLB_SVG_MIDDLE, mark_name);
}

static void add_legend(struct wlb_svg *svg, double y)
{
	wlb_svg_box(svg, MARGIN, y - 10, 12, 12, WLB_INK_BLUE, 0.7, NULL);
	wlb_svg_text(svg, MARGIN + 18, y, 11, WLB_SVG_LEFT, "came with this step");
	wlb_svg_box(svg, MARGIN + 150, y - 10, 12, 12, WLB_INK_ORANGE, 0.7, NULL);
	wlb_svg_text(svg, MARGIN + 168, y, 11, WLB_SVG_LEFT, "waited for it; the longer a document, the darker");
}

static void draw(struct wlb_svg *svg, const struct wlb_step *step, int rows, const struct wlb_model *model,
                 int64_t seq_length)
{
	struct panel work = {.x = MARGIN}, tokens = {.x = MARGIN + PANEL + BETWEEN, .full = (double)seq_length};
	double mean = 0.0;
	for (int32_t b = 0; b < step->micro_batches; b++) {
		mean += step->loads[b].work / step->micro_batches;
		work.full = fmax(work.full, step->loads[b].work);
		tokens.full = fmax(tokens.full, (double)step->loads[b].tokens);
	}
	char text[160];
	for (size_t i = 0; i < step->count && step->spans[i].micro_batch < rows; i++) {
		const struct wlb_packed_span *span = &step->spans[i];
		snprintf(text, sizeof(text), "document %" PRId64 ": %" PRId64 " tokens, waited %d steps",
		         span->span.document, span->span.tokens, span->waited_steps);
		add_box(svg, &work, span, wlb_cost_document(model, span->span.tokens), text);
		add_box(svg, &tokens, span, (double)span->span.tokens, text);
	}
	for (int b = 0; b < rows; b++) {
		snprintf(text, sizeof(text), "%d", b);
		wlb_svg_text(svg, MARGIN - 8, TOP + b * (ROW + GAP) + ROW - 5, 11, WLB_SVG_RIGHT, text);
	}
	add_frame(svg, &work, rows, mean, "predicted work", "mean");
	snprintf(text, sizeof(text), "%" PRId64, seq_length);
	add_frame(svg, &tokens, rows, (double)seq_length, "tokens", text);
}

int wlb_pack_draw(const char *path, const struct wlb_step *step, const struct wlb_model *model, int64_t seq_length,
                  struct wlb_error *error)
{
	struct wlb_svg svg;
	char title[160];
	int rows = step->micro_batches < ROWS_MAX ? step->micro_batches : ROWS_MAX;
	double height = TOP + rows * (ROW + GAP) + BOTTOM;
	if (wlb_svg_begin(&svg, path, 2 * (MARGIN + PANEL) + BETWEEN, height, error) < 0)
		return -1;
	snprintf(title, sizeof(title), "Step %" PRId64 ": %d micro-batches, imbalance %.4f%s", step->index,
	         step->micro_batches, wlb_step_imbalance(step), rows < step->micro_batches ? " (the first shown)" : "");
	wlb_svg_text(&svg, MARGIN, 28, 16, WLB_SVG_LEFT, title);
	draw(&svg, step, rows, model, seq_length);
	add_legend(&svg, height - 10);
	return wlb_svg_commit(&svg, error);
}
