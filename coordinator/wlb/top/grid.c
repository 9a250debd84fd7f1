#include "coordinator/wlb/top/grid.h"

#include <string.h>

#include "coordinator/wlb/top/rank_state.h"

enum { LABEL_MAX = 20, CELL_COLUMNS = 2, GAP_COLUMNS = 2 };

struct grid {
	struct wlb_top_frame *frame;
	const struct wlb_top_ranks *ranks;
	const struct wlb_top_sections *sections;
	int label_columns;
	int cells_in_line; /* behind a label */
};

enum wlb_top_style wlb_top_style_of(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank)
{
	static const enum wlb_top_style styles[] = {[WLB_TOP_FINE] = WLB_TOP_PLAIN,
	                                            [WLB_TOP_NOTED] = WLB_TOP_YELLOW,
	                                            [WLB_TOP_LATE] = WLB_TOP_MAGENTA,
	                                            [WLB_TOP_LATEST] = WLB_TOP_RED};
	bool is_unknown = !rank->is_reported && rank->verdict < 0;
	return is_unknown ? WLB_TOP_FAINT : styles[wlb_top_state_of(ranks, rank).level];
}

static void put_cell(const struct grid *grid, const struct wlb_top_rank *rank)
{
	struct wlb_top_state state = wlb_top_state_of(grid->ranks, rank);
	wlb_top_put(grid->frame, wlb_top_style_of(grid->ranks, rank), "%c%c", state.letter, state.mark);
}

static void put_label(const struct grid *grid, const char *label)
{
	wlb_top_put_padded(grid->frame, WLB_TOP_PLAIN, label, grid->label_columns);
	wlb_top_put(grid->frame, WLB_TOP_PLAIN, " ");
}

static int divide_up(int a, int b)
{
	return (a + b - 1) / b;
}

/* ---- a cell for each rank ---------------------------------------------------------------------------------------- */

static int widest_section(const struct wlb_top_sections *sections)
{
	int most = 1;
	for (int i = 0; i < sections->count; i++)
		most = sections->list[i].count > most ? sections->list[i].count : most;
	return most;
}

/* Returns how many sections are side by side; 1 also where a section needs several lines. */
static int sections_in_line(const struct grid *grid)
{
	int block = grid->label_columns + 1 + CELL_COLUMNS * widest_section(grid->sections) + GAP_COLUMNS;
	int count = (grid->frame->columns + GAP_COLUMNS) / block;
	return count > 1 ? count : 1;
}

static int rank_lines(const struct grid *grid)
{
	int lines = 0, side_by_side = sections_in_line(grid);
	if (side_by_side > 1)
		return divide_up(grid->sections->count, side_by_side);
	for (int i = 0; i < grid->sections->count; i++)
		lines += divide_up(grid->sections->list[i].count, grid->cells_in_line);
	return lines;
}

static void draw_section(const struct grid *grid, const struct wlb_top_section *section)
{
	put_label(grid, section->label);
	for (int i = 0; i < section->count; i++) {
		if (i > 0 && i % grid->cells_in_line == 0) {
			wlb_top_end_line(grid->frame);
			put_label(grid, "");
		}
		put_cell(grid, &grid->ranks->list[grid->sections->members[section->first + i]]);
	}
}

static void draw_ranks(const struct grid *grid)
{
	int side_by_side = sections_in_line(grid), widest = widest_section(grid->sections);
	for (int i = 0; i < grid->sections->count; i++) {
		const struct wlb_top_section *section = &grid->sections->list[i];
		draw_section(grid, section);
		if ((i + 1) % side_by_side == 0 || i + 1 == grid->sections->count)
			wlb_top_end_line(grid->frame);
		else
			wlb_top_put(grid->frame, WLB_TOP_PLAIN, "%*s",
			            CELL_COLUMNS * (widest - section->count) + GAP_COLUMNS, "");
	}
}

/* ---- a cell for each section ------------------------------------------------------------------------------------- */

/* The sections from `first` on, for which there are no lines. */
static void put_rest(const struct grid *grid, int first)
{
	const struct wlb_top_rank *worst = wlb_top_section_worst(grid->ranks, grid->sections, first);
	for (int i = first + 1; i < grid->sections->count; i++) {
		const struct wlb_top_rank *rank = wlb_top_section_worst(grid->ranks, grid->sections, i);
		if (wlb_top_is_worse(grid->ranks, rank, worst))
			worst = rank;
	}
	wlb_top_put(grid->frame, WLB_TOP_PLAIN, "%d more, the worst: rank %d on %s ", grid->sections->count - first,
	            worst->rank, wlb_top_rank_node(grid->ranks, worst));
	put_cell(grid, worst);
	wlb_top_end_line(grid->frame);
}

static void draw_sections(const struct grid *grid, int lines_max)
{
	int count = grid->sections->count;
	bool all_fit = divide_up(count, grid->cells_in_line) <= lines_max;
	int shown = all_fit ? count : (lines_max - 1) * grid->cells_in_line;
	for (int i = 0; i < shown; i++) {
		if (i % grid->cells_in_line == 0)
			put_label(grid, grid->sections->list[i].label);
		put_cell(grid, wlb_top_section_worst(grid->ranks, grid->sections, i));
		if ((i + 1) % grid->cells_in_line == 0 || i + 1 == shown)
			wlb_top_end_line(grid->frame);
	}
	if (!all_fit)
		put_rest(grid, shown);
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

void wlb_top_grid_draw(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks,
                       const struct wlb_top_sections *sections, int lines_max)
{
	struct grid grid = {.frame = frame, .ranks = ranks, .sections = sections, .label_columns = 1};
	lines_max = lines_max < 2 ? 2 : lines_max;
	for (int i = 0; i < sections->count; i++) {
		int length = (int)strlen(sections->list[i].label);
		grid.label_columns = length > grid.label_columns ? length : grid.label_columns;
	}
	if (grid.label_columns > LABEL_MAX)
		grid.label_columns = LABEL_MAX;
	int cells = (frame->columns - grid.label_columns - 1) / CELL_COLUMNS;
	grid.cells_in_line = cells > 1 ? cells : 1;
	if (ranks->count <= WLB_TOP_CELLS_MAX && rank_lines(&grid) <= lines_max) {
		draw_ranks(&grid);
		return;
	}
	wlb_top_put(frame, WLB_TOP_FAINT, "a cell is the worst rank of a group; a line begins with its first group");
	wlb_top_end_line(frame);
	draw_sections(&grid, lines_max - 1 < 2 ? 2 : lines_max - 1);
}
