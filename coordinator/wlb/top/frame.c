#include "coordinator/wlb/top/frame.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "common/output/wrap.h"

/* ECMA-48: select graphic rendition. */
static const char *const codes[] = {
	[WLB_TOP_PLAIN] = "",    [WLB_TOP_STRONG] = "1",   [WLB_TOP_FAINT] = "2",
	[WLB_TOP_YELLOW] = "33", [WLB_TOP_MAGENTA] = "35", [WLB_TOP_RED] = "1;31",
};

/* The line is cleared before its text: after a text of the full width the cursor is still in its last column. */
static void begin_line(struct wlb_top_frame *frame)
{
	if (frame->is_begun)
		return;
	if (frame->is_live)
		fputs(frame->line == 0 ? "\033[H\033[K" : "\r\n\033[K", frame->out);
	frame->is_begun = true;
}

static bool is_full(const struct wlb_top_frame *frame)
{
	return frame->rows > 0 && frame->line >= frame->rows;
}

static void put_text(struct wlb_top_frame *frame, enum wlb_top_style style, const char *text, int columns)
{
	int used;
	bool is_styled = frame->is_coloured && style != WLB_TOP_PLAIN;
	if (is_full(frame))
		return;
	begin_line(frame);
	int left = frame->columns - frame->column;
	size_t bytes = wlb_text_fit(text, columns < left ? columns : left, &used);
	if (bytes == 0)
		return;
	if (is_styled)
		fprintf(frame->out, "\033[%sm", codes[style]);
	fwrite(text, 1, bytes, frame->out);
	if (is_styled)
		fputs("\033[0m", frame->out);
	frame->column += used;
}

void wlb_top_put(struct wlb_top_frame *frame, enum wlb_top_style style, const char *format, ...)
{
	char text[2048];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put_text(frame, style, text, INT_MAX);
}

void wlb_top_put_padded(struct wlb_top_frame *frame, enum wlb_top_style style, const char *text, int width)
{
	int begin = frame->column;
	put_text(frame, style, text, width);
	wlb_top_put(frame, WLB_TOP_PLAIN, "%*s", width - (frame->column - begin), "");
}

void wlb_top_end_line(struct wlb_top_frame *frame)
{
	if (is_full(frame))
		return;
	begin_line(frame);
	if (!frame->is_live)
		fputc('\n', frame->out);
	frame->line++;
	frame->column = 0;
	frame->is_begun = false;
}

int wlb_top_lines_left(const struct wlb_top_frame *frame)
{
	return frame->rows > 0 ? frame->rows - frame->line : INT_MAX;
}

void wlb_top_end_page(struct wlb_top_frame *frame)
{
	if (frame->is_live && !is_full(frame))
		fputs("\r\n\033[J", frame->out);
}
