#include "planner/cli/sim/draw.h"

#include <math.h>
#include <stdio.h>

#include "planner/cli/svg.h"

enum {
	STAGES_MAX = 64,
	ROW = 20,
	GAP = 3,
	LEFT = 70,
	WIDTH = 1100,
	RIGHT = 30,
	HEAD = 34, /* above the rows of each strategy */
	TOP = 40,
	BOTTOM = 60,
};

static double last_end_s(const struct wlb_sim_report *report)
{
	double end_s = 0.0;
	for (int i = 0; i < report->count; i++)
		for (size_t k = 0; k < report->runs[i].bar_count; k++)
			end_s = fmax(end_s, report->runs[i].bars[k].end_s);
	return end_s > 0.0 ? end_s : 1.0;
}

static void draw_bar(struct wlb_svg *svg, const struct wlb_sim_event *bar, double top, double pixels_per_s, int chunks)
{
	double x = LEFT + bar->start_s * pixels_per_s, width = (bar->end_s - bar->start_s) * pixels_per_s;
	double y = top + bar->stage * (ROW + GAP);
	double shade = chunks > 1 ? 0.35 + 0.65 * bar->chunk / (chunks - 1) : 0.8;
	char text[96];
	snprintf(text, sizeof(text), "micro-batch %d, %s, chunk %d: %.4f s", bar->micro_batch,
	         bar->backward ? "backward" : "forward", bar->chunk, bar->end_s - bar->start_s);
	wlb_svg_box(svg, x, y, width, ROW, bar->backward ? WLB_INK_ORANGE : WLB_INK_BLUE, shade, text);
	snprintf(text, sizeof(text), "%d", bar->micro_batch);
	if (width > 16.0)
		wlb_svg_text(svg, x + width / 2, y + ROW - 6, 10, WLB_SVG_MIDDLE, text);
}

static void draw_run(struct wlb_svg *svg, const struct wlb_sim_report *report, int i, double top, double pixels_per_s)
{
	const struct wlb_sim_run *run = &report->runs[i];
	char text[160];
	double end_s = 0.0;
	for (size_t k = 0; k < run->bar_count; k++) {
		if (run->bars[k].stage < STAGES_MAX)
			draw_bar(svg, &run->bars[k], top, pixels_per_s, report->plan.interleave);
		end_s = fmax(end_s, run->bars[k].end_s);
	}
	int stages = report->plan.layout.pp < STAGES_MAX ? report->plan.layout.pp : STAGES_MAX;
	for (int stage = 0; stage < stages; stage++) {
		snprintf(text, sizeof(text), "stage %d", stage);
		wlb_svg_text(svg, LEFT - 8, top + stage * (ROW + GAP) + ROW - 6, 11, WLB_SVG_RIGHT, text);
	}
	double bottom = top + stages * (ROW + GAP);
	wlb_svg_line(svg, LEFT + end_s * pixels_per_s, top - 4, LEFT + end_s * pixels_per_s, bottom);
	snprintf(text, sizeof(text), "%s: the slowest replica's pipeline ends after %.3f s", run->strategy->name,
	         end_s);
	wlb_svg_text(svg, LEFT, top - 10, 13, WLB_SVG_LEFT, text);
}

int wlb_sim_draw(const char *path, const struct wlb_sim_report *report, struct wlb_error *error)
{
	struct wlb_svg svg;
	char text[160], layout[64];
	int stages = report->plan.layout.pp < STAGES_MAX ? report->plan.layout.pp : STAGES_MAX;
	double run_height = HEAD + stages * (ROW + GAP), height = TOP + report->count * run_height + BOTTOM;
	double pixels_per_s = WIDTH / last_end_s(report);
	if (wlb_svg_begin(&svg, path, LEFT + WIDTH + RIGHT, height, error) < 0)
		return -1;
	wlb_layout_format(&report->plan.layout, layout, sizeof(layout));
	snprintf(text, sizeof(text), "Pipelines of the last step, %s, interleave %d", layout, report->plan.interleave);
	wlb_svg_text(&svg, LEFT, 26, 16, WLB_SVG_LEFT, text);
	for (int i = 0; i < report->count; i++)
		draw_run(&svg, report, i, TOP + i * run_height + HEAD - 4, pixels_per_s);
	wlb_svg_box(&svg, LEFT, height - 30, 12, 12, WLB_INK_BLUE, 0.8, NULL);
	wlb_svg_text(&svg, LEFT + 18, height - 20, 11, WLB_SVG_LEFT, "forward");
	wlb_svg_box(&svg, LEFT + 90, height - 30, 12, 12, WLB_INK_ORANGE, 0.8, NULL);
	wlb_svg_text(&svg, LEFT + 108, height - 20, 11, WLB_SVG_LEFT,
	             "backward; numbers are micro-batches, darker are later chunks of layers");
	return wlb_svg_commit(&svg, error);
}
